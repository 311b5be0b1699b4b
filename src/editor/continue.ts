import * as vscode from 'vscode';
import { text } from '../protocol/content.ts';
import type { Actions } from './actions.ts';
import { hasWork } from './going-on.ts';
import type { LiveSession } from './live-session.ts';
import type { Sessions } from './sessions.ts';

/** Lets a session go on: one with work left is woken, one that stopped is told to continue. */
export async function continueSession(actions: Actions, session: LiveSession): Promise<void> {
  if (hasWork(session)) actions.goOn(session, 'a person told it to go on');
  else await actions.send(session, [text('Continue.')], 'command');
}

/** A key is there now: sessions that stopped for want of one can go on, if the person wants it. */
export async function keyStored(sessions: Sessions, actions: Actions): Promise<void> {
  const stopped = sessions.active().filter((session) => lacksKey(session));
  if (stopped.length === 0) {
    void vscode.window.showInformationMessage('Drover: the API key is stored.');
    return;
  }
  const names = stopped.length === 1 ? `“${stopped[0]?.title}”` : `${stopped.length} sessions`;
  const go = 'Try Again';
  const picked = await vscode.window.showInformationMessage(
    `Drover: the API key is stored. ${names} stopped for want of one.`,
    go,
  );
  if (picked !== go) return;
  for (const session of stopped) await continueSession(actions, session);
}

/** The primary thread's turn ended because there was no usable key. */
function lacksKey(session: LiveSession): boolean {
  const cause = session.state?.threads.get(session.state.primary)?.failure?.cause;
  return !session.running && (cause === 'no_key' || cause === 'bad_key');
}
