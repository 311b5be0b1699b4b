import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { LogRecord } from '../../../src/protocol/record.ts';
import { CheckpointStore } from '../../../src/sandbox/checkpoints/checkpoints.ts';
import type { Checkpoints } from '../../../src/sandbox/sandbox.ts';
import { transcript } from '../../../src/session/transcript.ts';
import { eventsOf } from '../../support/events.ts';
import { Rig, type RigOptions } from './rig.ts';

/** A session with real files and real checkpoints. */
async function rigged(options: RigOptions = {}): Promise<{ rig: Rig; store: CheckpointStore }> {
  const privateFolder = await mkdtemp(join(tmpdir(), 'drover-private-'));
  onTestFinished(() => rm(privateFolder, { recursive: true, force: true }));
  let made: CheckpointStore | undefined;
  const later: Checkpoints = {
    follow: (owner) => {
      made ??= new CheckpointStore({ root: join(owner.workspaceFolder, '.drover'), privateFolder });
      return made.follow(owner);
    },
  };
  const rig = await Rig.open({ ...options, deps: { checkpoints: later, ...options.deps } });
  const store = new CheckpointStore({ root: join(rig.folder, '.drover'), privateFolder });
  return { rig, store };
}

const checkpoints = (records: readonly LogRecord[]) => eventsOf(records, 'drover.checkpoint');

const bash = (command: string): string => `[rehearsal:call tool=bash] ${JSON.stringify({ command })}`;
const policy = (type: 'always_allow' | 'always_ask') => ({
  tools: [{ type: 'agent_toolset_20260401' as const, default_config: { permission_policy: { type } } }],
});
const ALLOW_ALL = policy('always_allow');

describe('checkpoints of a session', () => {
  it('come after the results of the calls that changed files, by edit, write or bash alike', async () => {
    const { rig, store } = await rigged({ agent: ALLOW_ALL });
    await writeFile(join(rig.folder, 'a.txt'), 'one\n');
    await rig.run(bash('echo two > a.txt; echo new > b.txt'));
    await rig.say(`[rehearsal:call tool=write] ${JSON.stringify({ file_path: 'c.txt', content: 'c' })}`);
    await rig.say(bash('cat a.txt'));
    await rig.say(`[rehearsal:call tool=read] ${JSON.stringify({ file_path: 'c.txt' })}`);
    const records = await rig.records();
    const taken = checkpoints(records);
    const calls = records.filter(({ event }) => event.type === 'agent.tool_use').map(({ event }) => event.id);
    expect(taken.map(({ why, tool_use_ids }) => [why, tool_use_ids])).toEqual([
      ['start', []],
      ['calls', [calls[0]]],
      ['calls', [calls[1]]],
    ]);
    expect(taken[1]?.files).toEqual([
      { path: 'a.txt', change: 'modified' },
      { path: 'b.txt', change: 'added' },
    ]);
    for (const [at, id] of calls.slice(0, 2).entries()) {
      const result = eventsOf(records, 'agent.tool_result').find((one) => one.tool_use_id === id);
      const seq = (event: string | undefined) => records.findIndex((record) => record.event.id === event);
      expect(seq(taken[at + 1]?.id)).toBeGreaterThan(seq(result?.id));
    }
    const [, [, added] = []] = await store.changes(taken.map(({ commit }) => commit));
    expect((await store.blob(added?.after ?? '')).toString()).toBe('new\n');
    const state = await rig.state();
    expect(state.checkpoint?.commit).toBe(taken[2]?.commit);
    expect(calls.map((id) => state.calls.get(id)?.checkpoints.length)).toEqual([1, 1, 0, 0]);
  });

  it('keep nobody waiting: the result is in the log and the model is asked while one is being taken', async () => {
    const held = Promise.withResolvers<void>();
    const asked: string[] = [];
    const slow: Checkpoints = {
      follow: () => ({
        warm: () => undefined,
        before: async (call) => void asked.push(`before ${call}`),
        after: (call) => void asked.push(`after ${call}`),
        close: () => held.promise,
      }),
    };
    const { rig } = await rigged({ agent: ALLOW_ALL, deps: { checkpoints: slow } });
    await rig.create(bash('echo x > x.txt'));
    const resting = rig.harness.wake(rig.session, 'a test');
    const state = await rig.until('the end of the turn', (one) => one.stopReason?.type === 'end_turn');
    const [call] = [...state.calls.values()];
    expect(asked).toEqual([`before ${call?.id}`, `after ${call?.id}`]);
    held.resolve();
    await resting;
  });

  it('that can’t be taken for want of git are told of once, and the session goes on', async () => {
    const none: Checkpoints = {
      follow: (owner) => {
        const root = join(owner.workspaceFolder, '.drover');
        return new CheckpointStore({ root, privateFolder: root, env: { PATH: '' } }).follow(owner);
      },
    };
    const { rig } = await rigged({ agent: ALLOW_ALL, deps: { checkpoints: none } });
    await rig.run(bash('echo x > x.txt'));
    const state = await rig.say(bash('echo y > x.txt'));
    expect(state.stopReason?.type).toBe('end_turn');
    expect(await readFile(join(rig.folder, 'x.txt'), 'utf8')).toBe('y\n');
    const told = eventsOf(await rig.records(), 'drover.checkpoint_failed').map(({ message }) => message);
    expect(told).toEqual([expect.stringMatching(/^git was not found on this machine/)]);
  });

  it('are not taken for a call that a person denies', async () => {
    const { rig } = await rigged({ agent: policy('always_ask') });
    const asking = await rig.run(bash('echo x > x.txt'));
    const [call] = [...asking.calls.values()];
    if (!call) throw new Error('Nothing asks.');
    await rig.answer(call.id, 'deny');
    expect(checkpoints(await rig.records())).toEqual([]);
  });

  it('take in, by its call, what a command did while nobody watched', async () => {
    const { rig } = await rigged({ agent: ALLOW_ALL });
    await writeFile(join(rig.folder, 'a.txt'), 'one\n');
    await rig.create(bash('echo two > a.txt; sleep 1; echo three > a.txt'));
    void rig.harness.wake(rig.session, 'a test');
    await rig.until('the command at work', (state) => [...state.calls.values()].some((call) => call.execution));
    await rig.restart();
    await rig.harness.wake(rig.session, 'a test');
    const taken = checkpoints(await rig.records());
    const [call] = [...(await rig.state()).calls.values()];
    expect(taken.at(-1)).toMatchObject({ why: 'calls', tool_use_ids: [call?.id] });
    expect(await readFile(join(rig.folder, 'a.txt'), 'utf8')).toBe('three\n');
  });

  it('are named with the thread that acts and the thread whose sandbox it is', async () => {
    const { rig } = await rigged({ agent: ALLOW_ALL });
    const state = await rig.run('[rehearsal:agents n=1]');
    const child = [...state.threads.values()].find((thread) => thread.parent !== null);
    const first = (await rig.records()).filter(({ event }) => event.type === 'drover.tool_started');
    expect(first.map(({ local }) => local?.acting_thread)).toEqual([rig.primary, child?.id]);
    expect([...state.sandboxes.values()].map(({ owner }) => owner)).toEqual([child?.id]);
    await rig.say(bash('true'));
    const records = await rig.records();
    const last = records.findLast(({ event }) => event.type === 'drover.tool_started');
    const result = records.findLast(({ event }) => event.type === 'agent.tool_result');
    for (const record of [last, result]) {
      expect(record?.local).toMatchObject({ acting_thread: rig.primary, owner_thread: child?.id });
    }
    const [call] = [...(await rig.state()).calls.values()].slice(-1);
    expect(call?.execution?.owner).toBe(child?.id);
  });

  it('that were gone back to are told to the model at its next turn', async () => {
    const { rig, store } = await rigged({ agent: ALLOW_ALL });
    await writeFile(join(rig.folder, 'a.txt'), 'one\n');
    await rig.run(bash('echo two > a.txt'));
    const [start, one] = checkpoints(await rig.records());
    const restore = store.restore({
      session: rig.session,
      folder: rig.folder,
      shared: true,
      commit: start?.commit ?? '',
      last: one?.commit ?? null,
      since: [],
    });
    await rig.append(...(await restore.apply(await restore.plan())));
    expect(await readFile(join(rig.folder, 'a.txt'), 'utf8')).toBe('one\n');
    const state = await rig.say('[rehearsal:say] Go on.');
    const said = JSON.stringify(transcript(state, rig.primary));
    expect(said).toMatch(/put files back to how they were earlier.*1 changed \(.*a\.txt/);
    expect(JSON.stringify(rig.rehearsal.requests.at(-1))).toContain('put files back');
  });
});
