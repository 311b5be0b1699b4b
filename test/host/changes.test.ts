import assert from 'node:assert/strict';
import { lstat, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { chooseAndApply, dropCopy, mayDropCopy, reviewChanges } from '../../src/editor/session-changes.ts';
import { ensureCopy } from '../../src/sandbox/isolated/copy.ts';
import { eventually } from '../support/eventually.ts';
import { Stage } from './stage.ts';

const touch = { name: 'bash', input: { command: 'touch here' } };

describe('A session that works on a copy of its own', () => {
  it('shows its changes side by side, and brings the chosen ones to the folder, which is in the log', async () => {
    await using stage = await Stage.open();
    await writeFile(join(stage.folder, 'kept.txt'), 'one\n');
    await writeFile(join(stage.folder, 'mine.txt'), 'one\n');
    const session = await stage.isolated(touch);
    const owner = { session: session.id, workspaceFolder: stage.folder, record: async () => undefined };
    await ensureCopy(owner);
    await assert.rejects(reviewChanges(session), /has changed nothing/);
    for (const name of ['kept.txt', 'mine.txt', 'new.txt'])
      await writeFile(join(session.folder, name), 'by the session\n');
    await writeFile(join(stage.folder, 'mine.txt'), 'by the person\n');

    await reviewChanges(session);
    const titles = () => vscode.window.tabGroups.all.flatMap((group) => group.tabs.map((tab) => tab.label));
    await eventually('the comparison', 10_000, () =>
      titles().some((title) => title.startsWith('Changes by “A session')),
    );

    const applying = chooseAndApply(stage.actions, session);
    await eventually('the list to be accepted', 10_000, async () => {
      await vscode.commands.executeCommand('workbench.action.acceptSelectedQuickOpenItem');
      return (await readFile(join(stage.folder, 'kept.txt'), 'utf8')) === 'by the session\n';
    });
    await applying;
    assert.equal(await readFile(join(stage.folder, 'new.txt'), 'utf8'), 'by the session\n');
    // What both have changed is not chosen unless the person says so.
    assert.equal(await readFile(join(stage.folder, 'mine.txt'), 'utf8'), 'by the person\n');
    const { records } = await stage.project.store.read(session.id);
    const applied = records.map(({ event }) => event).find((event) => event.type === 'drover.changes_applied');
    assert.ok(applied && 'files' in applied && Array.isArray(applied.files));
    assert.deepEqual(
      applied.files.map((file) => `${file.change} ${file.path}`),
      ['modified kept.txt', 'added new.txt'],
    );
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
  });

  it('loses a copy without unapplied changes unasked, and says so in the log first', async () => {
    await using stage = await Stage.open();
    const session = await stage.isolated(touch);
    assert.equal(await mayDropCopy(stage.actions, session, 'Archive'), true);
    await ensureCopy({ session: session.id, workspaceFolder: stage.folder, record: async () => undefined });
    assert.equal(await mayDropCopy(stage.actions, session, 'Archive'), true);
    const { records } = await stage.project.store.read(session.id);
    assert.equal(records.filter(({ event }) => event.type === 'drover.workspace_discarded').length, 1);
    await dropCopy(session);
    await assert.rejects(lstat(session.folder), { code: 'ENOENT' });
  });

  it('has its files where its calls see them', async () => {
    await using stage = await Stage.open();
    const session = await stage.isolated(touch);
    assert.equal(session.folder, join(stage.folder, '.drover', 'work', session.id));
    const { session: other } = await stage.asking(touch);
    assert.equal(other.folder, stage.folder);
    await assert.rejects(reviewChanges(other), /works in your folder itself/);
  });
});
