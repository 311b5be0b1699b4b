import assert from 'node:assert/strict';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { exportSession, exportTo } from '../../src/editor/export-session.ts';
import { ImportedSession } from '../../src/editor/imported-session.ts';
import { openExportedSession } from '../../src/editor/open-export.ts';
import { PanelMemory } from '../../src/editor/panel-memory.ts';
import { PANEL_TYPE, Panels } from '../../src/editor/panels.ts';
import { text } from '../../src/protocol/content.ts';
import { Redactor } from '../../src/vault/redactor.ts';
import { eventually } from '../support/eventually.ts';
import { Stage } from './stage.ts';

const AT = '2026-11-30T12:00:00.000Z';
const call = { name: 'bash', input: { command: 'cat the-plan.txt' } };
const memory = { keys: () => [], get: <T>(_key: string, fallback?: T) => fallback, update: async () => undefined };

function panelsOf(stage: Stage): Panels {
  const found = vscode.extensions.getExtension('drover.drover');
  assert.ok(found);
  const nothing = async () => undefined;
  const actions = {
    send: nothing,
    answer: nothing,
    interrupt: nothing,
    showDiff: nothing,
    checkpoint: nothing,
    reveal: nothing,
    run: nothing,
  };
  return new Panels(found.extensionUri, stage.sessions, actions, new PanelMemory(memory), new Redactor());
}

describe('Export Session', () => {
  afterEach(() => vscode.commands.executeCommand('workbench.action.closeAllEditors'));

  it('makes a file that opens read-only in a panel of its own, and leaves the folder as it was', async () => {
    await using stage = await Stage.open();
    const { session } = await stage.asking(call);
    const path = join(stage.folder, 'out.drover.jsonl');
    const { head, message } = await exportTo(session, { form: 'file', redact: false }, path, AT);
    assert.deepEqual(head, session.state?.head);
    assert.ok(message.includes(`Its last record is ${head.seq}, hash ${head.hash}`), message);

    const folders = await readdir(join(stage.project.store.root, 'sessions'));
    const panels = panelsOf(stage);
    panels.open(session);
    await openExportedSession(panels, vscode.Uri.file(path));
    const imported = await eventually('the panel', 5000, () => {
      const active = panels.active();
      return active instanceof ImportedSession && active;
    });
    assert.notEqual(imported.id, session.id);
    assert.equal(imported.title, `${session.title} (exported)`);
    assert.equal(imported.damage, null);
    assert.deepEqual([...(imported.state?.calls.keys() ?? [])], [...(session.state?.calls.keys() ?? [])]);
    assert.deepEqual(imported.pending, []);
    assert.deepEqual(imported.access(), {
      mode: 'read_only',
      why: `This session was imported from ${path}, to be read only.`,
    });
    await assert.rejects(stage.actions.send(imported, [text('hello')], 'panel'), /imported from/);
    await assert.rejects(exportSession(imported), /copy that file/);
    assert.deepEqual(await readdir(join(stage.project.store.root, 'sessions')), folders);
    panels.dispose();
  });

  it('says on opening what does not hold in a file that was changed', async () => {
    await using stage = await Stage.open();
    const { session } = await stage.asking(call);
    const path = join(stage.folder, 'out.drover.jsonl');
    await exportTo(session, { form: 'file', redact: false }, path, AT);
    await writeFile(path, (await readFile(path, 'utf8')).replace('the-plan.txt', 'another.txt'));
    const imported = await ImportedSession.from(path);
    assert.match(imported.damage ?? '', /^This file is not what was exported.*line \d+, record \d+: it was changed/);
  });

  it('gives a panel of an export back after a reload, by its id, and says so where the file is gone', async () => {
    await using stage = await Stage.open();
    const { session } = await stage.asking(call);
    const path = join(stage.folder, 'out.drover.jsonl');
    await exportTo(session, { form: 'file', redact: true }, path, AT);
    const { id } = await ImportedSession.from(path);
    const panels = panelsOf(stage);
    const tab = vscode.window.createWebviewPanel(PANEL_TYPE, 'from before', vscode.ViewColumn.Active);
    await panels.restore(tab, { sessionId: id });
    await eventually('the title', 5000, () => tab.title.startsWith('A session that asks'));
    assert.match(tab.webview.html, /<drover-panel>/);
    panels.dispose();

    await rm(path);
    const later = panelsOf(stage);
    const other = vscode.window.createWebviewPanel(PANEL_TYPE, 'from before', vscode.ViewColumn.Active);
    await later.restore(other, { sessionId: id });
    assert.match(other.webview.html, /nothing to show/);
    later.dispose();
  });

  it('makes a page, with everything or without what tools were given', async () => {
    await using stage = await Stage.open();
    const { session } = await stage.asking(call);
    const path = join(stage.folder, 'out.html');
    await exportTo(session, { form: 'page', redact: false }, path, AT);
    assert.match(await readFile(path, 'utf8'), /cat the-plan\.txt/);
    await exportTo(session, { form: 'page', redact: true }, path, AT);
    const redacted = await readFile(path, 'utf8');
    assert.doesNotMatch(redacted, /the-plan/);
    assert.match(redacted, /\[redacted: 16 bytes, SHA-256 [0-9a-f]{64}\]/);
    assert.match(redacted, /Tool inputs and outputs were taken out/);
  });
});
