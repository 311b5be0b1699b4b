import * as vscode from 'vscode';
import type { Asking } from '../session/state.ts';
import type { LiveSession } from './live-session.ts';
import type { Sessions } from './sessions.ts';

/** A call or a question that waits for the person at this window. */
export interface Waiting {
  session: LiveSession;
  call: Asking;
}

/** All that can be answered here and now, of all sessions, oldest first. */
export function waitingCalls(sessions: Sessions): Waiting[] {
  const answerable = sessions.active().filter((session) => mayAnswer(session));
  const all = answerable.flatMap((session) => session.pending.map((call) => ({ session, call })));
  return all.sort((a, b) => a.call.at.localeCompare(b.call.at));
}

/** Not in Restricted Mode, and not where another window runs the session: that one asks there. */
export const mayAnswer = (session: LiveSession): boolean => session.access(vscode.workspace.isTrusted).mode === 'write';
