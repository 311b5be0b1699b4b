import * as vscode from 'vscode';
import type { App } from './app.ts';
import type { LiveSession } from './live-session.ts';
import { needTrust, Refusal } from './refusal.ts';
import { dropCopy, mayDropCopy } from './session-changes.ts';

const DELETE = 'Delete for Good';

/** Asks, then deletes. Nothing else in Drover deletes a session. */
export async function deleteSession(app: App, session: LiveSession): Promise<void> {
  needTrust();
  assertIdle(session);
  const message = `Delete “${session.title}” for good?`;
  if ((await vscode.window.showWarningMessage(message, { modal: true, detail: whatGoes(session) }, DELETE)) !== DELETE)
    return;
  if (!(await mayDropCopy(app.actions, session, 'Delete'))) return;
  // It may have begun to work while the question stood there.
  assertIdle(session);
  // Its sandbox goes as when it is archived: with a record, so that a failure half-way can be taken up again.
  if (session.state?.sandbox) await app.actions.archive(session, true, 'command');
  await dropCopy(session);
  await session.project.store.delete(session.id);
  await (await session.project.checkpoints()).forget(session.id);
  app.panels.get(session)?.close();
}

function assertIdle(session: LiveSession): void {
  const { holder } = session;
  if (holder && !holder.ours) {
    throw new Refusal(
      `This session belongs to process ${holder.pid} on ${holder.host}; close it there, or take it over, before you delete it.`,
      [{ title: 'Take Over', command: 'drover.takeOver', args: [session.id] }],
    );
  }
  if (session.awake || (session.running && holder)) {
    throw new Refusal('This session is running; interrupt it before you delete it.', [
      { title: 'Interrupt', command: 'drover.interrupt', args: [session.id] },
    ]);
  }
}

function whatGoes({ state, id, project }: LiveSession): string {
  const path = vscode.Uri.joinPath(project.uri, '.drover', 'sessions', id).fsPath;
  const what = [
    state ? `its log of ${state.head.seq + 1} events` : 'its log, which can’t be read as it is',
    'every output and picture kept with it',
    ...(state?.sandbox ? ['its sandbox'] : []),
  ];
  return `What goes: ${what.join(', ')}. Files that it changed in your folder stay as they are. Nobody can bring it back; archiving keeps it.\n\n${path}`;
}
