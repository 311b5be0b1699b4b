import * as vscode from 'vscode';
import { text } from '../protocol/content.ts';
import type { EventId } from '../protocol/ids.ts';
import { draft } from '../protocol/record.ts';
import { type Actions, person } from './actions.ts';
import type { LiveSession } from './live-session.ts';
import { Refusal } from './refusal.ts';

/**
 * Lets the model see a value that was masked because it looks like a secret, after saying what that means. The log has
 * only the mask, so the model is asked to read it again.
 */
export async function revealSecret(
  actions: Actions,
  session: LiveSession,
  call: EventId,
  finding: string,
): Promise<void> {
  const masked = session.state?.calls.get(call)?.result?.masked.find((one) => one.finding === finding);
  if (!masked) throw new Refusal('Nothing of this kind was masked in this call’s output, so nothing was revealed.');
  const go = 'Reveal';
  const detail =
    'When the agent reads it again, the value goes to the model as it is, and stays in this session’s log. A secret that programs only send is better kept in a vault.';
  const message = `Let the model see this ${masked.kind}?`;
  if ((await vscode.window.showWarningMessage(message, { modal: true, detail }, go)) !== go) return;
  const actor = person('panel');
  await actions.write(session, 'a masked value was revealed', (state) => [
    draft('drover.secret_revealed', { finding, kind: masked.kind }, { thread: state.primary, local: { actor } }),
    draft(
      'user.message',
      { content: [text(`You may see the ${masked.kind} that was masked; read it again if you need it.`)] },
      { thread: state.primary, queued: true, local: { actor } },
    ),
  ]);
  actions.goOn(session, 'a masked value was revealed');
}
