import assert from 'node:assert/strict';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { LogChecks } from '../../src/editor/log-checks.ts';
import { eventually } from '../support/eventually.ts';
import { Stage } from './stage.ts';

const touch = { name: 'bash', input: { command: 'touch here' } };

describe('Verify Log', () => {
  it('opens a read-only report that calls a whole log whole, and names the first bad line of a changed one', async () => {
    await using stage = await Stage.open();
    const { session } = await stage.asking(touch);
    const checks = new LogChecks(stage.sessions);
    try {
      await checks.show(session);
      const document = vscode.window.activeTextEditor?.document;
      assert.ok(document);
      assert.equal(document.uri.scheme, 'drover-log-check');
      assert.match(document.getText(), /All as it was written\./);
      const log = join(stage.folder, '.drover', 'sessions', session.id, 'log.jsonl');
      await writeFile(log, (await readFile(log, 'utf8')).replace('touch here', 'touch away'));
      await checks.show(session);
      await eventually('the new report', 10_000, () => document.getText().includes('NOT AS IT WAS WRITTEN: 1 finding'));
      assert.match(document.getText(), /First: line 6, byte \d+, record 5: it was changed after it was written/);
      await vscode.commands.executeCommand('workbench.action.closeActiveEditor');
    } finally {
      checks.dispose();
    }
  });
});

describe('A session that is deleted', () => {
  it('is gone from the disk and from the views', async () => {
    await using stage = await Stage.open();
    const { session } = await stage.asking(touch);
    await stage.asking(touch);
    assert.equal(stage.sessions.all().length, 2);
    await stage.project.store.delete(session.id);
    await eventually('the list to follow', 10_000, () => stage.sessions.all().length === 1);
    await assert.rejects(stat(join(stage.folder, '.drover', 'sessions', session.id)), { code: 'ENOENT' });
  });
});
