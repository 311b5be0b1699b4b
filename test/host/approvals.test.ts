import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { answer } from '../../src/editor/approvals.ts';
import { Refusal } from '../../src/editor/refusal.ts';
import { inputSha256 } from '../../src/harness/input-hash.ts';
import { openStore } from '../../src/log/store.ts';
import type { LogRecord } from '../../src/protocol/record.ts';
import { eventually } from '../support/eventually.ts';
import { Stage } from './stage.ts';

const touch = { name: 'bash', input: { command: 'touch here' } };

async function answers(stage: Stage, id: Parameters<Stage['find']>[0]): Promise<LogRecord[]> {
  const { records } = await stage.project.store.read(id);
  return records.filter((record) => record.event.type === 'user.tool_confirmation');
}

describe('An answer to a call that asks', () => {
  it('is in the log with who gave it, what they saw and the reason, and the session goes on with it', async () => {
    await using stage = await Stage.open();
    const { session, calls } = await stage.asking(touch);
    const [call] = calls;
    assert.ok(call);
    await answer(stage.actions, session, {
      call,
      result: 'deny',
      denyMessage: 'Not here.',
      via: 'sidebar',
      seen: session.state?.head.seq ?? -1,
    });
    const [record] = await answers(stage, session.id);
    assert.ok(record?.event.type === 'user.tool_confirmation' && 'deny_message' in record.event);
    assert.equal(record.event.deny_message, 'Not here.');
    assert.deepEqual(record.local?.actor, { type: 'person', via: 'sidebar' });
    assert.match(record.local?.shown_sha256 ?? '', /^[0-9a-f]{64}$/);
    await eventually('the session to end its turn', 20_000, () => session.state?.stopReason?.type === 'end_turn');
    assert.equal(session.state?.calls.get(call)?.result?.outcome, 'denied');
    assert.deepEqual(stage.failures, []);
  });

  it('counts once: a second one, given elsewhere meanwhile, changes nothing and says so', async () => {
    await using stage = await Stage.open();
    const { session, calls } = await stage.asking(touch, { name: 'bash', input: { command: 'touch there' } });
    const [call] = calls;
    assert.ok(call);
    const given = { call, via: 'panel', seen: session.state?.head.seq ?? -1 } as const;
    const both = await Promise.allSettled([
      answer(stage.actions, session, { ...given, result: 'deny' }),
      answer(stage.actions, session, { ...given, result: 'allow' }),
    ]);
    assert.deepEqual(
      both.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    );
    const refused = both[1]?.status === 'rejected' ? both[1].reason : undefined;
    assert.ok(refused instanceof Refusal);
    assert.match(refused.message, /already answered: it was denied/);
    assert.equal((await answers(stage, session.id)).length, 1);
  });

  it('is refused where the view had not shown the call yet', async () => {
    await using stage = await Stage.open();
    const { session, calls } = await stage.asking(touch);
    const [call] = calls;
    assert.ok(call);
    await assert.rejects(
      answer(stage.actions, session, { call, result: 'allow', via: 'panel', seen: 3 }),
      /look at it/,
    );
    assert.equal((await answers(stage, session.id)).length, 0);
    assert.equal(session.pending.length, 1);
  });

  it('"from now on" is bound to the exact command for a shell, and to the tool for others', async () => {
    await using stage = await Stage.open();
    const edit = { name: 'edit', input: { file_path: 'a.txt', old_string: 'a', new_string: 'b' } };
    const { session, calls } = await stage.asking(touch, edit, { name: 'bash', input: { command: 'sleep 1' } });
    const [first, second, third] = calls;
    assert.ok(first && second && third);
    const seen = session.state?.head.seq ?? -1;
    await answer(stage.actions, session, { call: first, result: 'allow', standing: true, via: 'panel', seen });
    await answer(stage.actions, session, { call: second, result: 'allow', standing: true, via: 'panel', seen });
    await answer(stage.actions, session, { call: third, result: 'deny', standing: true, via: 'panel', seen });
    const rules = (await answers(stage, session.id)).map((record) => record.local?.standing);
    assert.deepEqual(rules, [{ tool: 'bash', input_sha256: inputSha256(touch.input) }, { tool: 'edit' }, undefined]);
  });

  it('is refused, with nothing lost, while another window runs the session', async () => {
    await using stage = await Stage.open();
    const { session, calls } = await stage.asking(touch);
    const [call] = calls;
    assert.ok(call);
    const other = openStore({ root: stage.project.store.root, holder: { pid: 1, host: 'elsewhere' } });
    await other.acquire(session.id, 'another window');
    try {
      const seen = session.state?.head.seq ?? -1;
      const refused = await answer(stage.actions, session, { call, result: 'deny', via: 'panel', seen }).catch(
        (error: unknown) => error,
      );
      assert.ok(refused instanceof Refusal);
      assert.match(refused.message, /process 1 on elsewhere/);
      assert.deepEqual(
        refused.ways.map(({ title }) => title),
        ['Take Over'],
      );
      assert.equal((await answers(stage, session.id)).length, 0);
      assert.deepEqual(session.access(true), { mode: 'follow', holder: 'process 1 on elsewhere' });
    } finally {
      await other.dispose();
    }
  });

  it('does not let an edit pass over changes that are not saved', async () => {
    await using stage = await Stage.open();
    const path = join(stage.folder, 'notes.txt');
    await mkdir(stage.folder, { recursive: true });
    await writeFile(path, 'one\n');
    const document = await vscode.workspace.openTextDocument(path);
    const change = new vscode.WorkspaceEdit();
    change.insert(document.uri, new vscode.Position(0, 0), 'unsaved ');
    await vscode.workspace.applyEdit(change);
    assert.ok(document.isDirty);
    const edit = { name: 'edit', input: { file_path: 'notes.txt', old_string: 'one', new_string: 'two' } };
    const { session, calls } = await stage.asking(edit);
    const [call] = calls;
    assert.ok(call);
    const asked = answer(stage.actions, session, { call, result: 'allow', via: 'panel', seen: 99 });
    const refused = assert.rejects(asked, /unsaved changes/);
    await eventually('the warning to be dismissed', 20_000, async () => {
      await vscode.commands.executeCommand('notifications.clearAll');
      return Promise.race([refused.then(() => true), new Promise<false>((resolve) => setTimeout(resolve, 300, false))]);
    });
    assert.equal((await answers(stage, session.id)).length, 0);
    await vscode.commands.executeCommand('workbench.action.files.revert', document.uri);
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
  });
});
