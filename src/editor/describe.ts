import type { Asking, SessionState } from '../session/state.ts';
import type { LiveSession } from './live-session.ts';

/** "$0.42"; a cost below a cent is not rounded away. */
export function money(usd: number): string {
  if (usd === 0) return '$0';
  return usd < 0.01 ? '<$0.01' : `$${usd.toFixed(2)}`;
}

/** How long ago, in one unit: "now", "5 min", "3 h", "2 d". */
export function age(since: string, now: number): string {
  const minutes = Math.floor((now - Date.parse(since)) / 60_000);
  if (minutes < 1) return 'now';
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h`;
  return `${Math.floor(minutes / (24 * 60))} d`;
}

export const count = (tokens: number): string =>
  tokens < 1000 ? String(tokens) : tokens < 1e6 ? `${(tokens / 1000).toFixed(1)}k` : `${(tokens / 1e6).toFixed(2)}M`;

/** A call as one line: the command, or the file, or the tool's name and the start of its input. */
export function summary(call: Pick<Asking, 'name' | 'input'>): string {
  const { command, file_path: path, pattern, task, question } = call.input;
  const what = [command, path, pattern, task, question].find((value) => typeof value === 'string');
  const line = (typeof what === 'string' ? what : JSON.stringify(call.input)).replace(/\s+/g, ' ').trim();
  return `${call.name}: ${line.length > 200 ? `${line.slice(0, 199)}…` : line}`;
}

/** Who asks: the agent of the call's thread, by name. */
export const asker = (state: SessionState, call: Pick<Asking, 'thread'>): string =>
  state.threads.get(call.thread)?.agentName ?? state.agent.name;

export type Standing =
  | 'waiting'
  | 'interrupted'
  | 'followed'
  | 'rescheduling'
  | 'running'
  | 'stopped'
  | 'done'
  | 'terminated'
  | 'read-only';

/** Where a session stands, in one word for people. */
export function standing(session: LiveSession): Standing {
  const { state } = session;
  if (!state || session.newer || session.broken) return 'read-only';
  const elsewhere = session.holder !== null && !session.holder.ours;
  if (elsewhere && (session.running || session.pending.length > 0)) return 'followed';
  if (session.pending.length > 0) return 'waiting';
  if (session.interrupted) return 'interrupted';
  if (state.status === 'rescheduling') return 'rescheduling';
  if (state.status === 'running') return 'running';
  if (state.status === 'terminated') return 'terminated';
  const stop = state.stopReason?.type;
  return stop === undefined || stop === 'end_turn' ? 'done' : 'stopped';
}

export const standingText: Record<Standing, string> = {
  waiting: 'waiting for you',
  interrupted: 'interrupted',
  followed: 'in another window',
  rescheduling: 'waiting to ask the model again',
  running: 'running',
  stopped: 'stopped',
  done: 'idle',
  terminated: 'ended',
  'read-only': 'read-only',
};
