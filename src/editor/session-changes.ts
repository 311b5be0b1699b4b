import { join } from 'node:path';
import * as vscode from 'vscode';
import { draft } from '../protocol/record.ts';
import { type Applied, applyChanges } from '../sandbox/isolated/apply.ts';
import { type Change, changesIn } from '../sandbox/isolated/changes.ts';
import { removeCopy } from '../sandbox/isolated/copy.ts';
import { workFolder } from '../sandbox/work-folder.ts';
import { type Actions, person } from './actions.ts';
import type { LiveSession } from './live-session.ts';
import { needTrust, Refusal } from './refusal.ts';

const APPLY = 'Apply…';
/** Paths named in a question before it says only how many more there are. */
const NAMED = 8;

/** Opens VS Code's own comparison of all files that a session has changed in its copy, folder on the left. */
export async function reviewChanges(session: LiveSession): Promise<void> {
  const changes = await needChanges(session);
  const copy = copyOf(session);
  const resources = changes.map(({ path, change }) => {
    const [theirs, ours] = [vscode.Uri.file(join(session.project.path, path)), vscode.Uri.file(join(copy, path))];
    return [theirs, change === 'added' ? undefined : theirs, change === 'deleted' ? undefined : ours];
  });
  await vscode.commands.executeCommand('vscode.changes', `Changes by “${session.title}”`, resources);
  if (session.access(vscode.workspace.isTrusted).mode !== 'write') return;
  const message = `“${session.title}” has changed ${files(changes.length)} in its own copy. Nothing of it is in your folder yet.`;
  void vscode.window.showInformationMessage(message, APPLY).then((answer) => {
    if (answer === APPLY) return vscode.commands.executeCommand('drover.applyChanges', session.id);
  });
}

/** Asks which changes to bring into the folder, brings them, and records it. */
export async function chooseAndApply(actions: Actions, session: LiveSession): Promise<void> {
  needTrust();
  const access = session.access(vscode.workspace.isTrusted);
  if (access.mode !== 'write')
    throw new Refusal('Another window runs this session, or its log can only be read; apply its changes there.');
  const changes = await needChanges(session);
  const picked = await vscode.window.showQuickPick(changes.map(item), {
    canPickMany: true,
    title: `Drover: apply which changes of “${session.title}” to your folder?`,
    placeHolder: 'Each file is replaced whole; one that you have changed yourself is left alone',
  });
  if (!picked || picked.length === 0) return;
  const chosen = picked.map(({ change }) => change);
  const applied = await applyChanges(session.project.path, session.id, chosen, isUnsaved(session));
  await actions.write(session, 'its changes were applied', () => [
    draft(
      'drover.changes_applied',
      { files: applied.files, refused: applied.refused },
      { local: { actor: person('command') } },
    ),
  ]);
  report(applied);
}

/**
 * Asks before changes go with a session that nobody has applied. True: it may go, and its copy with it, which is in
 * the log by then; the copy itself is removed by `dropCopy` once no sandbox uses it.
 */
export async function mayDropCopy(actions: Actions, session: LiveSession, what: string): Promise<boolean> {
  const changes = await changesIn(session.project.path, session.id);
  if (!changes) return true;
  if (changes.length > 0) {
    const message = `${what} “${session.title}” and lose ${files(changes.length)} it has changed in its own copy?`;
    const [review, lose] = ['Review Changes', 'Lose Them'];
    const answer = await vscode.window.showWarningMessage(
      message,
      { modal: true, detail: named(changes) },
      review,
      lose,
    );
    if (answer === review) await reviewChanges(session);
    if (answer !== lose) return false;
  }
  if (session.state) {
    const unapplied = changes.map(({ path }) => path);
    await actions.write(session, 'its copy is not needed any more', () => [
      draft('drover.workspace_discarded', { unapplied }, { local: { actor: person('command') } }),
    ]);
  }
  return true;
}

/** Removes a session's copy, if it has one. */
export async function dropCopy(session: LiveSession): Promise<void> {
  await removeCopy(session.project.path, session.id);
}

async function needChanges(session: LiveSession): Promise<Change[]> {
  if (session.state?.environment.workspace !== 'isolated')
    throw new Refusal('This session works in your folder itself, so it has no changes to review or apply.');
  const changes = await changesIn(session.project.path, session.id);
  if (!changes || changes.length === 0)
    throw new Refusal('This session has changed nothing in its own copy that is not in your folder.');
  return changes;
}

const copyOf = (session: LiveSession): string =>
  workFolder({
    session: session.id,
    environment: { workspace: 'isolated' },
    workspaceFolder: session.project.path,
  });

interface Item extends vscode.QuickPickItem {
  change: Change;
}

const WORDS: Record<Change['change'], string> = { added: 'new', modified: 'changed', deleted: 'deleted' };

function item(change: Change): Item {
  const { path, folder } = change;
  const known = { label: path, description: WORDS[change.change], change };
  if (folder === 'theirs')
    return {
      ...known,
      picked: false,
      detail: 'You have changed it too since the copy was made: it will be left alone.',
    };
  if (runsHere(path))
    return {
      ...known,
      picked: false,
      detail: 'Programs on your machine act on this file: look at it before you choose it.',
    };
  return { ...known, picked: true };
}

/** What an editor or a container tool would run or trust on the host. */
const runsHere = (path: string): boolean =>
  /(^|\/)(\.vscode\/|\.devcontainer(\/|\.json$)|\.git[^/]*$|.*\.code-workspace$)/.test(path);

function isUnsaved(session: LiveSession): (path: string) => boolean {
  const dirty = new Set(vscode.workspace.textDocuments.filter((one) => one.isDirty).map((one) => one.uri.toString()));
  return (path) => dirty.has(vscode.Uri.file(join(session.project.path, path)).toString());
}

function report({ files: done, refused }: Applied): void {
  const applied = `Applied ${files(done.length)}.`;
  if (refused.length === 0) return void vscode.window.showInformationMessage(`Drover: ${applied}`);
  const why = refused.slice(0, NAMED).map((one) => `${one.path}: ${one.why}`);
  const more = refused.length > NAMED ? ` and ${refused.length - NAMED} more` : '';
  void vscode.window.showWarningMessage(
    `Drover: ${done.length > 0 ? applied : 'Nothing was applied.'} Left alone: ${why.join('; ')}${more}.`,
  );
}

function named(changes: readonly Change[]): string {
  const paths = changes.slice(0, NAMED).map(({ path, change }) => `${path} (${WORDS[change]})`);
  if (changes.length > NAMED) paths.push(`and ${changes.length - NAMED} more`);
  return paths.join('\n');
}

const files = (n: number): string => `${n} file${n === 1 ? '' : 's'}`;
