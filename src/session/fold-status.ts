import type { EventOf } from '../protocol/event.ts';
import type { ThreadId } from '../protocol/ids.ts';
import type { LogRecord } from '../protocol/record.ts';
import { atRest } from './rest.ts';
import type { SessionState, Status } from './state.ts';

export type Statuses = EventOf<
  | 'session.status_running'
  | 'session.status_rescheduled'
  | 'session.status_terminated'
  | 'session.status_idle'
  | 'session.thread_status_running'
  | 'session.thread_status_rescheduled'
  | 'session.thread_status_terminated'
  | 'session.thread_status_idle'
>;

interface Timed {
  status: Status;
  activeMs: number;
  runningSince: string | null;
}

function setStatus(of: Timed, status: Status, at: string): void {
  if (of.runningSince !== null && status !== 'running') {
    of.activeMs += Math.max(0, Date.parse(at) - Date.parse(of.runningSince));
    of.runningSince = null;
  }
  if (status === 'running') of.runningSince ??= at;
  of.status = status;
}

export function foldStatus(state: SessionState, record: LogRecord, event: Statuses): void {
  if (!('session_thread_id' in event)) {
    setStatus(state, statusOf(event.type), record.at);
    if (event.type === 'session.status_idle') state.stopReason = event.stop_reason;
    if (event.type === 'session.status_running') state.stopReason = null;
    return;
  }
  const thread = state.threads.get(event.session_thread_id);
  if (!thread) return;
  setStatus(thread, statusOf(event.type), record.at);
  if (event.type === 'session.thread_status_running') thread.stopReason = null;
  if (event.type !== 'session.thread_status_idle') return;
  thread.stopReason = event.stop_reason;
  // The turn is over: what the model has not seen waits for the next one.
  if (event.stop_reason.type !== 'requires_action') thread.unseenAt = -1;
}

function statusOf(type: Statuses['type']): Status {
  if (type.endsWith('_running')) return 'running';
  if (type.endsWith('_rescheduled')) return 'rescheduling';
  return type.endsWith('_terminated') ? 'terminated' : 'idle';
}

/** The time between a crash and the next waker is nobody's work: running stretches end where the log did. */
export function foldWoke(state: SessionState, record: LogRecord, previousAt: string): void {
  for (const timed of [state, ...state.threads.values()]) {
    if (timed.runningSince === null) continue;
    timed.activeMs += Math.max(0, Date.parse(previousAt) - Date.parse(timed.runningSince));
    timed.runningSince = record.at;
  }
}

/** An interrupt is for one thread or, without an id, for all that work; where all rest, the primary just takes note of it. */
export function foldInterrupt(state: SessionState, record: LogRecord, event: EventOf<'user.interrupt'>): void {
  interrupt(state, record, event.session_thread_id ?? null);
}

/** The answer to a tripwire can end every turn, as an interrupt does. */
export const interruptAll = (state: SessionState, record: LogRecord): void => interrupt(state, record, null);

function interrupt(state: SessionState, record: LogRecord, only: ThreadId | null): void {
  const { event } = record;
  const all = [...state.threads.values()].filter((thread) => thread.status !== 'terminated');
  const named = only ? all.filter((thread) => thread.id === only) : all;
  const busy = named.filter((thread) => !atRest(thread));
  const primary = state.threads.get(state.primary);
  for (const thread of busy.length > 0 ? busy : primary ? [primary] : []) {
    thread.interrupts.push(event.id);
    thread.entries.push({
      type: 'notice',
      id: event.id,
      seq: record.seq,
      at: record.at,
      notice: { kind: 'interrupted', actor: record.local?.actor ?? null },
    });
  }
}
