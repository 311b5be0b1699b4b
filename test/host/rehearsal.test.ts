import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import * as vscode from 'vscode';
import type { LogRecord } from '../../src/protocol/record.ts';
import { eventually } from '../support/eventually.ts';

const sessionsFolder = () => {
  const [folder] = vscode.workspace.workspaceFolders ?? [];
  assert.ok(folder, 'the tests run in a folder');
  return join(folder.uri.fsPath, '.drover', 'sessions');
};

const list = () => readdir(sessionsFolder()).catch((): string[] => []);

async function records(id: string): Promise<LogRecord[]> {
  const text = await readFile(join(sessionsFolder(), id, 'log.jsonl'), 'utf8');
  return text
    .split('\n')
    .slice(0, -1)
    .map((line): LogRecord => JSON.parse(line));
}

const last = (all: LogRecord[], type: string) => all.findLast((record) => record.event.type.startsWith(type))?.event;

describe('Rehearse, in the sample project', () => {
  it('plays a whole session: each call that asks is approved by command, and the bug is fixed', async function () {
    this.timeout(180_000);
    const before = new Set(await list());
    await vscode.commands.executeCommand('drover.rehearse');
    const id = await eventually('the new session', 10_000, async () => (await list()).find((one) => !before.has(one)));
    await eventually('the session to end its turn', 170_000, async () => {
      const stop = last(await records(id), 'session.status_');
      if (stop?.type !== 'session.status_idle' || !('stop_reason' in stop)) return false;
      if (stop.stop_reason.type === 'requires_action') await vscode.commands.executeCommand('drover.approveNext');
      return stop.stop_reason.type === 'end_turn';
    });
    const all = await records(id);
    const confirmations = all.filter((record) => record.event.type === 'user.tool_confirmation');
    assert.ok(confirmations.length > 0, 'something asked');
    for (const { local } of confirmations) assert.deepEqual(local?.actor, { type: 'person', via: 'command' });
    assert.ok(all.some((record) => record.event.type === 'drover.sandbox_ready'));
    assert.ok(all.some((record) => record.event.type === 'session.thread_created'));
    // Rejects if a test of the sample still fails.
    await promisify(execFile)(process.execPath, ['--test'], {
      cwd: dirname(dirname(sessionsFolder())),
      env: { PATH: process.env.PATH },
      timeout: 30_000,
    });
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    assert.ok(
      tabs.some((tab) => tab.input instanceof vscode.TabInputWebview),
      'its panel is open',
    );
    await vscode.commands.executeCommand('drover.archiveSession', id);
    await eventually('the sandbox to be removed', 20_000, async () =>
      last(await records(id), 'drover.sandbox_removed'),
    );
  });
});
