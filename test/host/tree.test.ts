import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { SessionTree } from '../../src/editor/tree.ts';
import { eventually } from '../support/eventually.ts';
import { Stage } from './stage.ts';

const touch = { name: 'bash', input: { command: 'touch here' } };
const labels = (items: vscode.TreeItem[]) => items.map((item) => item.label);

async function rows(tree: SessionTree): Promise<vscode.TreeItem[]> {
  return (await tree.children()).map((node) => tree.item(node));
}

describe('The Sessions tree', () => {
  it('is empty, so that the welcome shows, in a folder without sessions, and makes nothing there', async () => {
    await using stage = await Stage.open();
    const tree = new SessionTree(stage.sessions, stage.projects);
    assert.deepEqual(await tree.children(), []);
    await assert.rejects(readFile(join(stage.folder, '.drover', '.gitignore')), { code: 'ENOENT' });
  });

  it('shows a session that waits, with what it asks as its children', async () => {
    await using stage = await Stage.open();
    await stage.asking(touch, { name: 'edit', input: { file_path: 'a.txt', old_string: 'a', new_string: 'b' } });
    const tree = new SessionTree(stage.sessions, stage.projects);
    const [node] = await tree.children();
    assert.ok(node);
    const item = tree.item(node);
    assert.equal(item.label, 'A session that asks');
    assert.match(String(item.description), /^<\$0\.01 · now$/);
    assert.equal(item.contextValue, 'session:write');
    assert.equal(item.collapsibleState, vscode.TreeItemCollapsibleState.Expanded);
    const children = (await tree.children(node)).map((child) => tree.item(child));
    assert.deepEqual(labels(children), ['bash: touch here', 'edit: a.txt']);
    assert.deepEqual(
      children.map((child) => child.contextValue),
      ['approval', 'approval:diff'],
    );
  });

  it('keeps archived sessions under a node of their own', async () => {
    await using stage = await Stage.open();
    const { session } = await stage.asking(touch);
    await stage.asking(touch);
    await stage.actions.archive(session, true, 'sidebar');
    await eventually('the session to be archived', 5000, () => session.state?.archived);
    const tree = new SessionTree(stage.sessions, stage.projects);
    const top = await rows(tree);
    assert.deepEqual(labels(top), ['A session that asks', 'Archived']);
    const [inside] = await tree.children({ kind: 'archive' });
    assert.ok(inside?.kind === 'session');
    assert.equal(inside.session.id, session.id);
    assert.equal(tree.item(inside).contextValue, 'archived');
    assert.equal((await stage.project.store.holder(session.id)) ?? null, null, 'nobody holds what is put away');
  });

  it('lists a session whose log is broken, says so, and changes nothing of it', async () => {
    await using stage = await Stage.open();
    const folder = join(stage.folder, '.drover', 'sessions', 'sesn_broken');
    await mkdir(folder, { recursive: true });
    const rubbish = '{"v":1,"seq":0,"at":"2026';
    await writeFile(join(folder, 'log.jsonl'), rubbish);
    const tree = new SessionTree(stage.sessions, stage.projects);
    const item = await eventually('its row', 5000, async () => (await rows(tree))[0]);
    assert.equal(item.label, 'sesn_broken');
    assert.equal(item.contextValue, 'broken');
    assert.match(String(item.tooltip), /can't be shown as a session/);
    assert.equal(await readFile(join(folder, 'log.jsonl'), 'utf8'), rubbish);
  });

  it('shows what another process appends, without being asked', async () => {
    await using stage = await Stage.open();
    const { session } = await stage.asking(touch);
    const tree = new SessionTree(stage.sessions, stage.projects);
    assert.equal((await tree.children()).length, 1);
    await stage.asking(touch);
    await eventually('the new session', 5000, async () => (await tree.children()).length === 2);
    await stage.actions.archive(session, true, 'sidebar');
    await eventually('the archive', 5000, async () => labels(await rows(tree)).includes('Archived'));
  });
});
