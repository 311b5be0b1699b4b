import * as vscode from 'vscode';
import type { EventId } from '../../protocol/ids.ts';
import type { PanelMessage } from '../../protocol/panel.ts';
import type { Via } from '../actions.ts';
import type { App } from '../app.ts';
import { summary } from '../describe.ts';
import type { LiveSession } from '../live-session.ts';
import { Refusal } from '../refusal.ts';
import type { Whose } from './changes.ts';
import { forkSession } from './fork-session.ts';
import { type Point, pointOf, pointsToChoose } from './points.ts';
import { restoreFiles } from './restore-files.ts';
import { showChanges } from './show-changes.ts';

const RESTORE = 'Restore Files';
const KEEP = 'Keep Files as They Are';

/** What the panel asks for. */
export async function fromPanel(
  app: App,
  session: LiveSession,
  { act, id }: Extract<PanelMessage, { type: 'checkpoint' }>,
): Promise<void> {
  switch (act) {
    case 'restore':
      return restoreTo(app, session, id, 'panel');
    case 'fork':
      return forkFrom(app, session, id, 'panel');
    case 'changes_by_call':
      return showChanges(session, { call: id });
    case 'changes_by_thread':
      return showChanges(session, { thread: threadOf(session, id) });
    case 'changes_by_session':
      return showChanges(session, 'session');
  }
}

/** *Restore Files to Here*; without an event, the person chooses one. Throws `Refusal`. */
export async function restoreTo(app: App, session: LiveSession, id: EventId | undefined, via: Via): Promise<void> {
  const point = await choose(session, id, 'Drover: put the files back to which moment?');
  if (point) await restored(app, session, point, via);
}

/** *Fork Session from Here*; without an event, the person chooses one. Throws `Refusal`. */
export async function forkFrom(app: App, session: LiveSession, id: EventId | undefined, via: Via): Promise<void> {
  const point = await choose(session, id, 'Drover: fork the session from which moment?');
  if (!point) return;
  const made = await app.sessions.find(await forkSession(session, point, via));
  if (!made) throw new Refusal('The fork was made and is not in the folder any more; something removed it.');
  app.panels.open(made);
  if (point.taken && made.state?.environment.workspace !== 'isolated') await restored(app, made, point, via, true);
}

/** *Changes by This Call / Thread / Session*. Throws `Refusal`. */
export async function changesBy(
  session: LiveSession,
  scope: 'call' | 'thread' | 'session',
  id?: EventId,
): Promise<void> {
  const whose = scope === 'session' ? 'session' : await whoseOf(session, scope, id);
  if (whose) await showChanges(session, whose);
}

async function restored(app: App, session: LiveSession, point: Point, via: Via, afterFork = false): Promise<void> {
  const busy = app.sessions.all().filter((one) => one !== session && one.project === session.project && one.awake);
  const buttons = afterFork ? [RESTORE, KEEP] : [RESTORE];
  const agreed = async (message: string, detail: string) =>
    (await vscode.window.showWarningMessage(message, { modal: true, detail }, ...buttons)) === RESTORE;
  const done = await restoreFiles(app.actions, session, { point, via, agreed, busy });
  if (done === 'not agreed' || (afterFork && done === 'nothing to do')) return;
  if (done === 'nothing to do') {
    void vscode.window.showInformationMessage(`Drover: the files are as they were ${point.words}; nothing changes.`);
    return;
  }
  const told = 'Drover: the files were put back; the agent is told at its next turn.';
  // Not waited for: it stands until the person looks at it.
  void vscode.window
    .showInformationMessage(told, 'Undo')
    .then((picked) => picked && vscode.commands.executeCommand('drover.restoreFiles', session.id, done.undo));
}

async function choose(session: LiveSession, id: EventId | undefined, title: string): Promise<Point | undefined> {
  const { state } = session;
  if (!state) throw new Refusal('This session’s log can’t be read, so there is no moment of it to go back to.');
  const { records } = await session.project.store.read(session.id);
  if (id) return pointOf(state, records, id);
  const points = pointsToChoose(state, records).map((one) => pointOf(state, records, one));
  if (points.length === 0) throw new Refusal('Nothing has happened in this session yet.');
  const picked = await vscode.window.showQuickPick(
    points.map((point) => ({ label: point.words, description: new Date(point.at.at).toLocaleString(), point })),
    { title },
  );
  return picked?.point;
}

function threadOf(session: LiveSession, id: EventId) {
  const call = session.state?.calls.get(id);
  if (!call) throw new Refusal('This event belongs to no thread’s call, so there is no thread to show.');
  return call.thread;
}

async function whoseOf(session: LiveSession, scope: 'call' | 'thread', id?: EventId): Promise<Whose | undefined> {
  if (id) return scope === 'call' ? { call: id } : { thread: threadOf(session, id) };
  const { state } = session;
  if (!state) throw new Refusal('This session’s log can’t be read, so what it changed can’t be shown.');
  const calls = [...state.calls.values()].filter((call) => call.checkpoints.length > 0);
  if (calls.length === 0) throw new Refusal('No call of this session changed a file, as far as checkpoints tell.');
  if (scope === 'thread') {
    const threads = [...new Set(calls.map((call) => call.thread))];
    const [only] = threads;
    if (threads.length === 1 && only) return { thread: only };
    const picked = await vscode.window.showQuickPick(
      threads.map((thread) => ({ label: state.threads.get(thread)?.agentName ?? thread, thread })),
      { title: 'Drover: the changes of which thread?' },
    );
    return picked && { thread: picked.thread };
  }
  const picked = await vscode.window.showQuickPick(
    calls.reverse().map((call) => ({ label: summary(call), call: call.id })),
    { title: 'Drover: the changes of which call?' },
  );
  return picked && { call: picked.call };
}
