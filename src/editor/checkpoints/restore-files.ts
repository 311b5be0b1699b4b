import { join } from 'node:path';
import * as vscode from 'vscode';
import type { EventId } from '../../protocol/ids.ts';
import { planned, type RestorePlan } from '../../sandbox/checkpoints/restore.ts';
import { workFolder } from '../../sandbox/work-folder.ts';
import { type Actions, person, type Via } from '../actions.ts';
import { unsavedIn } from '../desk.ts';
import type { LiveSession } from '../live-session.ts';
import { needTrust, Refusal } from '../refusal.ts';
import { checkpointsIn, type Point } from './points.ts';

/** Files a question names; it says how many more there are. */
const LISTED = 20;

export interface RestoreWish {
  point: Pick<Point, 'words' | 'taken'>;
  via: Via;
  /** Asks the person: a question, and what they must know first. */
  agreed(message: string, detail: string): Promise<boolean>;
  /** Sessions that are at work on the same files. */
  busy: readonly Pick<LiveSession, 'title'>[];
}

/** `undo` is the event of the checkpoint that was taken before. */
export type Restored = { undo: EventId } | 'nothing to do' | 'not agreed';

/**
 * Puts the files back, after a question that says what would change and who changed it last. What was there is kept
 * first; going back to that moment, `undo`, undoes it. Throws `Refusal`.
 */
export async function restoreFiles(actions: Actions, session: LiveSession, wish: RestoreWish): Promise<Restored> {
  needTrust();
  const { state, project } = session;
  const { taken, words } = wish.point;
  if (!state) throw new Refusal('This session’s log can’t be read, so its files can’t be put back.');
  if (!taken) {
    throw new Refusal(
      state.checkpointProblem ?? 'No checkpoint of the files was taken by then, so there is nothing to put back.',
    );
  }
  assertAtRest(session);
  const checkpoints = await project.checkpoints();
  const { records } = await project.store.read(session.id);
  const { environment } = state;
  const since = checkpointsIn(records).filter(({ seq }) => seq > taken.seq);
  const folder = workFolder({ session: session.id, environment, workspaceFolder: project.path });
  const restore = checkpoints.restore({
    session: session.id,
    folder,
    shared: environment.workspace !== 'isolated',
    commit: taken.checkpoint.commit,
    last: state.checkpoint?.commit ?? null,
    since: since.map(({ checkpoint }) => ({ commit: checkpoint.commit, calls: checkpoint.tool_use_ids })),
  });
  const plan = await restore.plan();
  if (plan.changes.length === 0) return 'nothing to do';
  await assertSaved(folder, plan);
  const message = `Put the files of “${session.title}” back to how they were ${words}?`;
  if (!(await wish.agreed(message, question(plan, wish.busy)))) return 'not agreed';
  assertAtRest(session);
  const why = 'its files were put back';
  // Nothing is put back that the log could not be told of.
  await project.store.acquire(session.id, why);
  const local = { actor: person(wish.via) };
  const drafts = await restore.apply(plan);
  await actions.write(session, why, () =>
    drafts.map((one) => (one.event.type === 'drover.files_restored' ? { ...one, local } : one)),
  );
  const done = checkpointsIn((await project.store.read(session.id)).records);
  const at = done.findLastIndex(({ checkpoint }) => checkpoint.why === 'restore');
  const undo = done[at - 1]?.checkpoint.id;
  return undo ? { undo } : 'nothing to do';
}

function assertAtRest(session: LiveSession): void {
  const access = session.access(vscode.workspace.isTrusted);
  if (access.mode === 'read_only') throw new Refusal(access.why);
  if (access.mode === 'follow') {
    throw new Refusal(`This session is run by ${access.holder}; put its files back there, or take it over first.`, [
      { title: 'Take Over', command: 'drover.takeOver', args: [session.id] },
    ]);
  }
  if (session.awake) {
    throw new Refusal('This session is at work on the files; interrupt it before you put them back.', [
      { title: 'Interrupt', command: 'drover.interrupt', args: [session.id] },
    ]);
  }
}

async function assertSaved(folder: string, plan: RestorePlan): Promise<void> {
  for (const { path } of planned(plan)) {
    if (!(await unsavedIn(join(folder, path)))) continue;
    throw new Refusal(`${path} has unsaved changes in an editor and would be put back; save or revert it first.`);
  }
}

const VERBS = { added: 'comes back', modified: 'is put back', deleted: 'goes' } as const;

/** What a person must know before they agree, as text. */
export function question(plan: RestorePlan, busy: readonly Pick<LiveSession, 'title'>[]): string {
  const files = planned(plan);
  const theirs = files.filter(({ byOthers }) => byOthers);
  // What a person would lose of their own comes first.
  const listed = [...theirs, ...files.filter(({ byOthers }) => !byOthers)].slice(0, LISTED);
  const lines = listed.map(
    ({ path, change, byOthers }) =>
      `${path} ${VERBS[change]}${byOthers ? ', though it was not the session that changed it last: you, or another program, did' : ''}`,
  );
  if (files.length > LISTED) lines.push(`… and ${files.length - LISTED} more`);
  const count = files.length === 1 ? '1 file changes' : `${files.length} files change`;
  const mine = theirs.length > 0 ? `; ${theirs.length} of them changed outside of the session since` : '';
  const alone =
    plan.leftAlone.length > 0 ? [`${plan.leftAlone.length} stay as they are: too large to be kept, then or now.`] : [];
  const others = busy.map(({ title }) => `“${title}” is at work on the same files at this moment.`);
  const safe =
    'The files as they are now are kept first, so this can be undone. Commits, branches and what is staged stay as they are. The agent is told at its next turn.';
  return [`${count}${mine}.`, ...others, '', ...lines, '', ...alone, safe].join('\n');
}
