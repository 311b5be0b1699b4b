import assert from 'node:assert/strict';
import { readFile, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { BLOB_SCHEME, BlobFiles } from '../../src/editor/checkpoints/blob-files.ts';
import { forkSession } from '../../src/editor/checkpoints/fork-session.ts';
import { pointOf, pointsToChoose } from '../../src/editor/checkpoints/points.ts';
import { restoreFiles } from '../../src/editor/checkpoints/restore-files.ts';
import { changesOf, showChanges } from '../../src/editor/checkpoints/show-changes.ts';
import type { LiveSession } from '../../src/editor/live-session.ts';
import { SessionTree } from '../../src/editor/tree.ts';
import { text } from '../../src/protocol/content.ts';
import { type EventId, mint } from '../../src/protocol/ids.ts';
import { draft } from '../../src/protocol/record.ts';
import { transcript } from '../../src/session/transcript.ts';
import { eventually } from '../support/eventually.ts';
import { type Call, Stage } from './stage.ts';

/** A session whose calls have run, one after the other, each doing this to the files; checkpoints are real. */
async function ran(
  stage: Stage,
  acts: { call: Call; act: () => Promise<unknown>; before?: () => Promise<unknown> }[],
): Promise<{ session: LiveSession; calls: EventId[] }> {
  const { session, calls } = await stage.asking(...acts.map(({ call }) => call));
  const { state } = session;
  assert.ok(state);
  const store = await stage.project.checkpoints();
  const writer = await stage.project.store.acquire(session.id, 'a test');
  const keeper = store.follow({
    session: session.id,
    environment: state.environment,
    workspaceFolder: stage.folder,
    record: async (drafts) => void (await writer.append(drafts)),
    log: () => ({
      head: session.state?.head.seq ?? -1,
      forkedAt: -1,
      checkpoint: session.state?.checkpoint ?? null,
      problem: null,
      startedAfter: () => [],
    }),
  });
  for (const [at, { act, before }] of acts.entries()) {
    const id = calls[at];
    assert.ok(id);
    await before?.();
    await keeper.before(id);
    await act();
    const result = { tool_use_id: id, content: [text('done')], is_error: false };
    await writer.append([
      draft('user.tool_confirmation', { tool_use_id: id, result: 'allow' }, { thread: state.primary }),
      draft('agent.tool_result', result, { thread: state.primary, local: { outcome: 'ok' } }),
    ]);
    keeper.after(id);
    await keeper.close();
  }
  const idle = {
    session_thread_id: state.primary,
    agent_name: 'Actor',
    stop_reason: { type: 'end_turn' as const },
    stop_details: null,
  };
  await writer.append([draft('session.thread_status_idle', idle, { thread: state.primary })]);
  await writer.release();
  await stage.sessions.refreshHolder(session);
  await eventually(
    'the records',
    10_000,
    () => session.state?.threads.get(state.primary)?.stopReason?.type === 'end_turn',
  );
  return { session, calls };
}

const bash = (command: string): Call => ({ name: 'bash', input: { command } });

async function pointAt(session: LiveSession, id: EventId | undefined) {
  assert.ok(session.state && id);
  const { records } = await session.project.store.read(session.id);
  return pointOf(session.state, records, id);
}

const names = (changes: { path: string }[]): string[] => changes.map(({ path }) => path).sort();

describe('Changes', () => {
  afterEach(() => vscode.commands.executeCommand('workbench.action.closeAllEditors'));

  it('by a call, a thread and the session are told apart from a person’s own', async () => {
    await using stage = await Stage.open();
    const file = (name: string) => join(stage.folder, name);
    await writeFile(file('a.txt'), 'one\n');
    await writeFile(file('mine.txt'), 'one\n');
    const { session, calls } = await ran(stage, [
      { call: bash('1'), act: () => writeFile(file('a.txt'), 'two\n') },
      {
        call: bash('2'),
        before: () => writeFile(file('mine.txt'), 'by the person\n'),
        act: () => writeFile(file('b.txt'), 'new\n'),
      },
    ]);
    const [first, second] = calls;
    assert.ok(first && second && session.state);
    assert.deepEqual(names(await changesOf(session, { call: first })), ['a.txt']);
    assert.deepEqual(names(await changesOf(session, { call: second })), ['b.txt']);
    assert.deepEqual(names(await changesOf(session, { thread: session.state.primary })), ['a.txt', 'b.txt']);
    assert.deepEqual(names(await changesOf(session, 'session')), ['a.txt', 'b.txt']);
    await assert.rejects(changesOf(session, { thread: mint.thread() }), /No file was changed by this thread/);
  });

  it('put a file that was changed twice together, but not over a person’s change in between', async () => {
    await using stage = await Stage.open();
    const file = join(stage.folder, 'a.txt');
    await writeFile(file, '1\n');
    const write = (content: string) => () => writeFile(file, content);
    const { session } = await ran(stage, [
      { call: bash('1'), act: write('2\n') },
      { call: bash('2'), act: write('3\n') },
      { call: bash('3'), before: write('by the person\n'), act: write('4\n') },
    ]);
    const store = await stage.project.checkpoints();
    const read = async (id: string | null) => (id ? (await store.blob(id)).toString() : null);
    const found = await changesOf(session, 'session');
    const sides = await Promise.all(found.map(async ({ before, after }) => [await read(before), await read(after)]));
    assert.deepEqual(sides, [
      ['1\n', '3\n'],
      ['by the person\n', '4\n'],
    ]);
  });

  it('are given to the call that was to write the file, where calls ran side by side', async () => {
    const { joined } = await import('../../src/editor/checkpoints/changes.ts');
    await using stage = await Stage.open();
    const edit = { name: 'edit', input: { file_path: 'a.txt', old_string: '1', new_string: '2' } };
    const { session, calls } = await stage.asking(edit, bash('make'));
    assert.ok(session.state);
    const [one, two] = calls;
    assert.ok(one && two);
    const checkpoint = {
      id: mint.event(),
      type: 'drover.checkpoint' as const,
      processed_at: null,
      commit: 'c'.repeat(40),
      parent: null,
      why: 'calls' as const,
      tool_use_ids: calls,
      files_changed: 2,
      files: [],
      skipped: [],
      skipped_count: 0,
    };
    const { state } = session;
    const change = (path: string) => ({ path, change: 'modified' as const, before: 'b', after: 'a' });
    const of = (call: EventId) =>
      joined(state, stage.folder, [{ seq: 9, checkpoint }], [[change('a.txt'), change('out.js')]], {
        call,
      });
    assert.deepEqual(names(of(one)), ['a.txt']);
    assert.deepEqual(names(of(two)), ['out.js']);
  });

  it('open in VS Code’s own diff of several files, read from the checkpoints', async () => {
    await using stage = await Stage.open();
    const file = (name: string) => join(stage.folder, name);
    await writeFile(file('tea.js'), 'const minutes = 3;\n');
    const { session } = await ran(stage, [
      {
        call: bash('1'),
        act: async () => {
          await writeFile(file('tea.js'), 'const minutes = 4;\n');
          await writeFile(file('pot.js'), 'export {};\n');
        },
      },
    ]);
    // The extension under test has the scheme for its own folders; here the stage's is asked directly.
    const store = await stage.project.checkpoints();
    await showChanges(session, 'session');
    const tab = await eventually('the diff of several files', 10_000, () => {
      const { activeTab } = vscode.window.tabGroups.activeTabGroup;
      return activeTab?.label.startsWith('Changes by') ? activeTab : undefined;
    });
    assert.equal(tab.label, `Changes by “${session.title}” (2 files)`);
    const [change] = await changesOf(session, 'session');
    assert.ok(change?.after);
    assert.match((await store.blob(change.after)).toString(), /export|minutes = 4/);
  });

  it('are read as files that nobody can write, and not beyond the window’s folders', async () => {
    await using stage = await Stage.open();
    const { session } = await ran(stage, [
      { call: bash('1'), act: () => writeFile(join(stage.folder, 'p.png'), Buffer.from([0x89, 0x50, 0, 0xff])) },
    ]);
    const [change] = await changesOf(session, 'session');
    assert.ok(change?.after);
    const { blobUri } = await import('../../src/editor/checkpoints/blob-files.ts');
    const uri = blobUri(stage.project.store.root, 'p.png', change.after);
    assert.equal(uri.scheme, BLOB_SCHEME);
    const registered = vscode.workspace.fs.isWritableFileSystem(BLOB_SCHEME);
    // The extension has it already where it is active; then this is the same code on the stage's folder.
    const files =
      registered === undefined
        ? new BlobFiles((root) => (root === stage.project.store.root ? stage.project.checkpoints() : undefined))
        : undefined;
    try {
      await eventually('the scheme', 10_000, () => vscode.workspace.fs.isWritableFileSystem(BLOB_SCHEME) === false);
      if (files) {
        assert.deepEqual([...(await vscode.workspace.fs.readFile(uri))], [0x89, 0x50, 0, 0xff]);
        assert.equal((await vscode.workspace.fs.stat(uri)).size, 4);
      }
      await assert.rejects(async () =>
        vscode.workspace.fs.readFile(blobUri('/elsewhere/.drover', 'x', change.after ?? '')),
      );
    } finally {
      files?.dispose();
    }
  });
});

describe('Restore Files', () => {
  it('asks with all that would change, puts back what was agreed to, tells the log and the model, and can be undone', async () => {
    await using stage = await Stage.open();
    const file = (name: string) => join(stage.folder, name);
    await writeFile(file('a.txt'), 'one\n');
    const { session, calls } = await ran(stage, [
      { call: bash('1'), act: () => writeFile(file('a.txt'), 'two\n') },
      { call: bash('2'), act: () => writeFile(file('b.txt'), 'new\n') },
    ]);
    await writeFile(file('a.txt'), 'by the person\n');
    const point = await pointAt(session, calls[0]);
    const asked: string[] = [];
    const wish = (agree: boolean) => ({
      point,
      via: 'panel' as const,
      busy: [{ title: 'Another' }],
      agreed: async (message: string, detail: string) => {
        asked.push(message, detail);
        return agree;
      },
    });
    assert.equal(await restoreFiles(stage.actions, session, wish(false)), 'not agreed');
    assert.equal(await readFile(file('a.txt'), 'utf8'), 'by the person\n');
    assert.match(asked[0] ?? '', /back to how they were after “bash: 1”\?$/);
    assert.match(
      asked[1] ?? '',
      /^2 files change; 1 of them changed outside of the session since\.\n“Another” is at work/,
    );
    assert.match(
      asked[1] ?? '',
      /a\.txt is put back, though it was not the session that changed it last.*\nb\.txt goes\n/,
    );
    const done = await restoreFiles(stage.actions, session, wish(true));
    assert.ok(typeof done === 'object');
    assert.equal(await readFile(file('a.txt'), 'utf8'), 'two\n');
    await assert.rejects(readFile(file('b.txt')), { code: 'ENOENT' });
    const { records } = await stage.project.store.read(session.id);
    const restored = records.find(({ event }) => event.type === 'drover.files_restored');
    assert.deepEqual(restored?.local?.actor, { type: 'person', via: 'panel' });
    await eventually('the session to follow', 10_000, () =>
      JSON.stringify(session.state && transcript(session.state, session.state.primary)).includes('put files back'),
    );
    const undo = await pointAt(session, done.undo);
    assert.ok(typeof (await restoreFiles(stage.actions, session, { ...wish(true), point: undo })) === 'object');
    assert.equal(await readFile(file('a.txt'), 'utf8'), 'by the person\n');
    assert.equal(await readFile(file('b.txt'), 'utf8'), 'new\n');
    assert.equal((await stage.project.store.verify(session.id)).wrong.count, 0);
  });

  it('leaves an editor’s unsaved text alone: it refuses, and says which file', async () => {
    await using stage = await Stage.open();
    const path = join(stage.folder, 'a.txt');
    await writeFile(path, 'one\n');
    const { session } = await ran(stage, [{ call: bash('1'), act: () => writeFile(path, 'two\n') }]);
    const { records } = await stage.project.store.read(session.id);
    assert.ok(session.state);
    const message = pointsToChoose(session.state, records).at(-1);
    const files = vscode.workspace.getConfiguration('files');
    await files.update('autoSave', 'off', vscode.ConfigurationTarget.Global);
    const editor = await vscode.window.showTextDocument(vscode.Uri.file(path));
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), 'unsaved '));
    try {
      const wish = {
        point: await pointAt(session, message),
        via: 'command' as const,
        busy: [],
        agreed: async () => true,
      };
      await assert.rejects(restoreFiles(stage.actions, session, wish), /a\.txt has unsaved changes/);
      assert.equal(await readFile(path, 'utf8'), 'two\n');
    } finally {
      await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
      await files.update('autoSave', undefined, vscode.ConfigurationTarget.Global);
    }
  });
});

describe('Fork Session', () => {
  it('begins a session of the same past, with its checkpoints, that rests and says where it is from', async () => {
    await using stage = await Stage.open();
    const file = join(stage.folder, 'a.txt');
    await writeFile(file, 'one\n');
    const { session, calls } = await ran(stage, [
      { call: bash('1'), act: () => writeFile(file, 'two\n') },
      { call: bash('2'), act: () => writeFile(file, 'three\n') },
    ]);
    const [first] = calls;
    const id = await forkSession(session, await pointAt(session, first), 'command');
    const fork = await stage.find(id);
    assert.ok(fork.state && first);
    assert.equal(fork.state.forkedFrom?.session, session.id);
    assert.deepEqual([fork.running, fork.pending.length], [false, 0]);
    assert.deepEqual(names(await changesOf(fork, { call: first })), ['a.txt']);
    const item = new SessionTree(stage.sessions, stage.projects).item({ kind: 'session', session: fork });
    assert.match(String(item.description), /fork of A session that asks/);
    const wish = { point: await pointAt(fork, first), via: 'command' as const, busy: [], agreed: async () => true };
    assert.ok(typeof (await restoreFiles(stage.actions, fork, wish)) === 'object');
    assert.equal(await readFile(file, 'utf8'), 'two\n');
    assert.equal((await stage.project.store.verify(id)).wrong.count, 0);
    await unlink(file);
    // The first session goes; the fork still has its files.
    await stage.project.store.delete(session.id);
    const store = await stage.project.checkpoints();
    await store.forget(session.id);
    await store.tidy({ always: true, grace: 'now' });
    assert.ok(
      typeof (await restoreFiles(stage.actions, fork, { ...wish, point: await pointAt(fork, first) })) === 'object',
    );
    assert.equal(await readFile(file, 'utf8'), 'two\n');
  });
});
