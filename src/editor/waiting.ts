import type { ToolCall } from '../session/state.ts';
import type { LiveSession } from './live-session.ts';
import type { Sessions } from './sessions.ts';

/** A call that waits for the person at this window. */
export interface Waiting {
  session: LiveSession;
  call: ToolCall;
}

/** All calls that wait for a person, of all sessions, oldest first. */
export function waitingCalls(sessions: Sessions): Waiting[] {
  const all = sessions.active().flatMap((session) => session.pending.map((call) => ({ session, call })));
  return all.sort((a, b) => a.call.at.localeCompare(b.call.at));
}
