import type { StopReason } from '../protocol/event.ts';
import type { ThreadId } from '../protocol/ids.ts';
import { type Draft, draft } from '../protocol/record.ts';
import { type SessionUsage, toMoney } from '../protocol/usage.ts';
import type { Step } from '../session/decide.ts';
import type { SessionState, ThreadState } from '../session/state.ts';

/** The status records that must stand before `steps` are taken: whoever works is running, and the log says so. */
export function announceRunning(state: SessionState, steps: readonly Step[]): Draft[] {
  const drafts: Draft[] = [];
  const working = new Set<ThreadId>();
  for (const step of steps) {
    const works = step.type !== 'idle_session' && step.type !== 'idle_thread' && step.type !== 'close_request';
    if (works && !(step.type === 'apply_interrupt' && step.calls.length === 0)) working.add(step.thread);
  }
  // A child that works keeps the session running, its waiting parents' threads as they are.
  if (working.size > 0 && state.status !== 'running') drafts.push(draft('session.status_running', {}));
  for (const id of working) {
    const thread = state.threads.get(id);
    if (thread && thread.status !== 'running') drafts.push(threadRunning(thread));
  }
  return drafts;
}

const named = (thread: ThreadState) => ({ session_thread_id: thread.id, agent_name: thread.agentName });

export const threadRunning = (thread: ThreadState): Draft =>
  draft('session.thread_status_running', named(thread), { thread: thread.id });

/** A thread waits to ask the model again; the session too, unless another thread is still at work. */
export function rescheduled(state: SessionState, thread: ThreadState): Draft[] {
  const others = [...state.threads.values()].some((one) => one.id !== thread.id && one.status === 'running');
  const drafts = [draft('session.thread_status_rescheduled', named(thread), { thread: thread.id })];
  return others ? drafts : [...drafts, draft('session.status_rescheduled', {})];
}

export const threadIdle = (thread: ThreadState, stop_reason: StopReason): Draft =>
  draft(
    'session.thread_status_idle',
    { ...named(thread), stop_reason, stop_details: refusal(stop_reason) },
    { thread: thread.id },
  );

const refusal = (reason: StopReason) =>
  reason.type === 'refusal' ? { type: 'refusal' as const, category: null, explanation: null } : null;

/** The usage directly before every idle, as the public stream has it. */
export const sessionIdle = (state: SessionState, stop_reason: StopReason, now: number): Draft[] => [
  draft('session.usage', { usage: publicUsage(state, now) }),
  draft('session.status_idle', { stop_reason, stop_details: null }),
];

function publicUsage(state: SessionState, now: number): SessionUsage {
  const open = state.runningSince === null ? 0 : Math.max(0, now - Date.parse(state.runningSince));
  return {
    input_tokens: state.usage.input_tokens,
    output_tokens: state.usage.output_tokens,
    cache_read_input_tokens: state.usage.cache_read_input_tokens,
    cache_creation: {
      ephemeral_5m_input_tokens: state.usage.cache_creation_input_tokens,
      ephemeral_1h_input_tokens: 0,
    },
    list_cost: toMoney(state.costUsd),
    active_seconds: (state.activeMs + open) / 1000,
  };
}
