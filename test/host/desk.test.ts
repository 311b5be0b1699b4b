import assert from 'node:assert/strict';
import { mkdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { editorDesk } from '../../src/editor/desk.ts';
import { makeFolder } from '../support/temp.ts';

describe('What the editor knows of a file', () => {
  let folder = '';
  before(async () => {
    folder = await realpath(await makeFolder('drover-desk-'));
  });
  after(async () => {
    await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
    await rm(folder, { recursive: true, force: true });
  });

  async function typed(path: string): Promise<vscode.TextDocument> {
    const document = await vscode.workspace.openTextDocument(vscode.Uri.file(path));
    const editor = await vscode.window.showTextDocument(document);
    assert.ok(await editor.edit((change) => change.insert(new vscode.Position(0, 0), 'typed ')));
    return document;
  }

  it('says whether it has unsaved changes, by whatever name it was opened', async () => {
    await mkdir(join(folder, 'real'));
    await writeFile(join(folder, 'real/a.txt'), 'one\n');
    await symlink('real', join(folder, 'link'));
    const desk = editorDesk(folder);
    assert.equal(await desk.unsaved('real/a.txt'), false);
    const document = await typed(join(folder, 'link/a.txt'));
    assert.equal(await desk.unsaved('real/a.txt'), true);
    assert.equal(await desk.unsaved('link/a.txt'), true);
    assert.equal(await desk.unsaved('real/other.txt'), false);
    assert.ok(await document.save());
    assert.equal(await desk.unsaved('real/a.txt'), false);
  });

  it('says in which encoding it has it, or would have it', async () => {
    await writeFile(join(folder, 'b.txt'), 'one\n');
    const desk = editorDesk(folder);
    assert.equal(desk.encoding('b.txt'), 'utf8');
    await vscode.workspace.openTextDocument(vscode.Uri.file(join(folder, 'b.txt')), { encoding: 'gbk' });
    assert.equal(desk.encoding('b.txt'), 'gbk');
  });
});
