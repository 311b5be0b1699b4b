import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { DIFF_SCHEME, DiffDocuments } from '../../src/editor/diff-documents.ts';
import { proposed } from '../../src/editor/proposed.ts';
import { showDiff } from '../../src/editor/show-diff.ts';
import { eventually } from '../support/eventually.ts';
import { Stage } from './stage.ts';

const edit = (oldText: string, newText: string, all = false) =>
  ({ tool: 'edit', path: 'a.txt', oldText, newText, all }) as const;

describe('The text a call would leave behind', () => {
  it('keeps the line endings of the file', () => {
    const crlf = Buffer.from('a\r\nb\r\nc\r\n');
    assert.deepEqual(proposed(edit('b\nc', 'B\nC'), crlf), { text: 'a\r\nB\r\nC\r\n' });
    const write = { tool: 'write', path: 'a.txt', content: 'x\n' } as const;
    assert.deepEqual(proposed(write, crlf), { text: 'x\r\n' });
  });

  it('is read in the file’s encoding, and fails where that lacks a character', () => {
    const latin = Buffer.from('caf\xe9 a', 'latin1');
    assert.deepEqual(proposed(edit(' a', ' b'), latin, 'windows1252'), { text: 'café b' });
    assert.match(JSON.stringify(proposed(edit(' a', '日'), latin, 'windows1252')), /has no/);
  });

  it('takes what it is given literally, a dollar sign too', () => {
    assert.deepEqual(proposed(edit('x', '$&$1'), Buffer.from('x')), { text: '$&$1' });
  });

  it('is a sentence where the edit would fail', () => {
    assert.match(JSON.stringify(proposed(edit('z', 'y'), Buffer.from('abc'))), /was not found/);
    assert.match(JSON.stringify(proposed(edit('a', 'y'), Buffer.from('aa'))), /2 times/);
    assert.match(JSON.stringify(proposed(edit('a', 'y'), null)), /does not exist/);
    assert.deepEqual(proposed(edit('a', 'y', true), Buffer.from('aa')), { text: 'yy' });
  });
});

describe('Show Diff', () => {
  it('opens the diff editor: the file as it is beside the file as it would be', async () => {
    await using stage = await Stage.open();
    const documents = new DiffDocuments();
    try {
      await writeFile(join(stage.folder, 'tea.js'), 'const minutes = 3;\n');
      const input = { file_path: 'tea.js', old_string: '3', new_string: '4' };
      const { session, calls } = await stage.asking({ name: 'edit', input });
      const [call] = calls;
      assert.ok(call);
      // The extension under test has the scheme too; either can serve the text, and each knows only its own.
      await showDiff(documents, session, call);
      const tab = await eventually('the diff editor', 10_000, () => {
        const { activeTab } = vscode.window.tabGroups.activeTabGroup;
        return activeTab?.input instanceof vscode.TabInputTextDiff ? activeTab : undefined;
      });
      assert.match(tab.label, /tea\.js \(proposed by Drover\)$/);
      assert.ok(tab.input instanceof vscode.TabInputTextDiff);
      assert.equal(tab.input.original.scheme, 'file');
      assert.equal(tab.input.modified.scheme, DIFF_SCHEME);
      assert.equal(documents.provideTextDocumentContent(tab.input.modified), 'const minutes = 4;\n');
    } finally {
      await vscode.commands.executeCommand('workbench.action.closeAllEditors');
      documents.dispose();
    }
  });

  it('refuses a path outside the folder', async () => {
    await using stage = await Stage.open();
    const documents = new DiffDocuments();
    try {
      const { session, calls } = await stage.asking({ name: 'write', input: { file_path: '../out', content: '' } });
      const [call] = calls;
      assert.ok(call);
      await assert.rejects(showDiff(documents, session, call), /not inside the workspace folder/);
    } finally {
      documents.dispose();
    }
  });
});
