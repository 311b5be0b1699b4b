import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { AppendFailed, LeaseHeld, LeaseLost } from '../../../src/log/log.ts';
import { openStore } from '../../../src/log/store.ts';
import { text } from '../../../src/protocol/content.ts';
import { mint } from '../../../src/protocol/ids.ts';
import { draft } from '../../../src/protocol/record.ts';
import { noUsage } from '../../../src/protocol/usage.ts';
import { pendingApprovals } from '../../../src/session/fold.ts';
import { goldenText } from '../../support/golden.ts';
import { type LastAct, lastMessage, Rig } from './rig.ts';

// Sessions are played in full, on machines that have other things to do.
vi.setConfig({ testTimeout: 60_000 });

const careful = {
  tools: [
    { type: 'agent_toolset_20260401' as const, default_config: { permission_policy: { type: 'always_ask' as const } } },
  ],
};

describe('a turn', () => {
  it('stands in the log in the order that a crash can be read from', async () => {
    const rig = await Rig.open();
    await rig.run('[rehearsal:say] Hello there');
    await expect(goldenText(await rig.records(), { [rig.folder]: '<folder>' })).toMatchFileSnapshot('golden/say.txt');
  });

  it('runs parallel calls, and their results follow the reply that made them', async () => {
    const rig = await Rig.open();
    const state = await rig.run('[rehearsal:parallel]');
    expect(state.status).toBe('idle');
    expect(state.stopReason).toEqual({ type: 'end_turn' });
    const calls = [...state.calls.values()];
    expect(calls.length).toBeGreaterThanOrEqual(3);
    expect(calls.map((call) => call.result?.outcome)).toEqual(calls.map(() => 'ok'));
    expect(new Set(calls.map((call) => call.request)).size).toBeLessThan(calls.length);
  });

  it('provisions no sandbox for a session that needs none', async () => {
    const rig = await Rig.open();
    await rig.run('[rehearsal:say] No hands needed');
    expect(await rig.types()).not.toContain('drover.sandbox_provisioning');
  });

  it('records that a tool starts before it starts, and its result before the model is told', async () => {
    const rig = await Rig.open();
    await rig.run('[rehearsal:parallel]');
    const types = await rig.types();
    expect(types.indexOf('drover.sandbox_provisioning')).toBeLessThan(types.indexOf('drover.tool_started'));
    const lastResult = types.lastIndexOf('agent.tool_result');
    expect(types.indexOf('drover.tool_started')).toBeLessThan(types.indexOf('agent.tool_result'));
    expect(types.indexOf('span.model_request_start', lastResult)).toBeGreaterThan(lastResult);
  });

  it('takes a message typed while it works into the next request, once', async () => {
    const rig = await Rig.open({ rehearsal: { delays: { firstTokenMs: 700, perChunkMs: 5 } } });
    await rig.create('[rehearsal:say] first');
    const done = rig.harness.wake(rig.session, 'a test');
    await rig.until('the first request', (state) => state.threads.get(rig.primary)?.open !== null);
    await rig.append(rig.message('second'));
    await done;
    await rig.harness.wake(rig.session, 'a test');
    const state = await rig.state();
    const inputs = state.threads.get(rig.primary)?.entries.filter((entry) => entry.type === 'input') ?? [];
    expect(inputs.map((input) => input.type === 'input' && input.processedAt !== null)).toEqual([true, true]);
    expect(state.threads.get(rig.primary)?.queue).toEqual([]);
    const requests = rig.rehearsal.requests.filter((request) => request.path.startsWith('/v1/messages'));
    expect(requests.length).toBe(2);
  });

  it('counts cost and tokens of every request once', async () => {
    const rig = await Rig.open();
    const state = await rig.run('[rehearsal:parallel]');
    const ends = (await rig.records()).filter((record) => record.event.type === 'span.model_request_end');
    const costs = ends.reduce((sum, record) => sum + (record.local?.cost_usd ?? 0), 0);
    expect(state.costUsd).toBeCloseTo(costs, 12);
    expect(state.costUsd).toBeGreaterThan(0);
    expect(state.reserved.size).toBe(0);
  });
});

describe('approval', () => {
  it('leaves the session idle until a person answers, and nothing runs meanwhile', async () => {
    const rig = await Rig.open({ agent: careful });
    const state = await rig.run('[rehearsal:parallel]');
    expect(state.status).toBe('idle');
    expect(state.stopReason?.type).toBe('requires_action');
    expect(pendingApprovals(state).length).toBeGreaterThanOrEqual(3);
    expect(await rig.types()).not.toContain('drover.tool_started');
  });

  it('goes on with each call as it is allowed, and asks again for the rest', async () => {
    const rig = await Rig.open({ agent: careful });
    const asked = pendingApprovals(await rig.run('[rehearsal:parallel]'));
    const [first, ...rest] = asked;
    if (!first) throw new Error('nothing asks');
    const state = await rig.answer(first.id, 'allow');
    expect(state.calls.get(first.id)?.result?.outcome).toBe('ok');
    expect(state.stopReason).toEqual({ type: 'requires_action', event_ids: rest.map((call) => call.id) });
    const end = await rig.allowAll();
    expect(end.stopReason).toEqual({ type: 'end_turn' });
  });

  it('tells the model that a call was denied, and why', async () => {
    const rig = await Rig.open({ agent: careful });
    const [call] = pendingApprovals(await rig.run('[rehearsal:parallel]'));
    if (!call) throw new Error('nothing asks');
    const state = await rig.answer(call.id, 'deny', { deny_message: 'not in this folder' });
    const result = state.calls.get(call.id)?.result;
    expect(result?.outcome).toBe('denied');
    expect(result?.isError).toBe(true);
    expect(JSON.stringify(result?.content)).toContain('not in this folder');
    expect(state.calls.get(call.id)?.execution).toBeNull();
  });

  it('counts the first answer, and a second one changes nothing', async () => {
    const rig = await Rig.open({ agent: careful });
    const [call] = pendingApprovals(await rig.run('[rehearsal:parallel]'));
    if (!call) throw new Error('nothing asks');
    await rig.answer(call.id, 'deny');
    const state = await rig.answer(call.id, 'allow');
    expect(state.calls.get(call.id)?.result?.outcome).toBe('denied');
    expect((await rig.types()).filter((type) => type === 'drover.tool_started')).toEqual([]);
  });

  it('is still pending after a restart, and can be given then', async () => {
    const rig = await Rig.open({ agent: careful });
    const before = pendingApprovals(await rig.run('[rehearsal:parallel]')).map((call) => call.id);
    await rig.restart();
    expect(pendingApprovals(await rig.state()).map((call) => call.id)).toEqual(before);
    expect((await rig.allowAll()).stopReason).toEqual({ type: 'end_turn' });
  });
});

describe('interrupt', () => {
  it('stops a reply in the middle, and the next message starts a new turn', async () => {
    const rig = await Rig.open({ rehearsal: { delays: { firstTokenMs: 20, perChunkMs: 200 } } });
    await rig.create('[rehearsal:say] a long answer in many words that takes its time');
    const done = rig.harness.wake(rig.session, 'a test');
    await rig.until('a request', (state) => state.threads.get(rig.primary)?.open !== null);
    await rig.append(draft('user.interrupt', {}, { queued: true }));
    await done;
    const state = await rig.state();
    expect(state.status).toBe('idle');
    expect(state.stopReason).toEqual({ type: 'end_turn' });
    expect(state.threads.get(rig.primary)?.last).toBeNull();
    expect((await rig.types()).filter((type) => type === 'session.error')).toEqual([]);
  });

  it('ends a running command, says so to the model, and leaves nothing open', async () => {
    const rig = await Rig.open();
    await rig.create('[rehearsal:long-command seconds=30]');
    const done = rig.harness.wake(rig.session, 'a test');
    await rig.until('the command', (state) => [...state.calls.values()].some((call) => call.execution !== null));
    await rig.append(draft('user.interrupt', {}, { queued: true }));
    await done;
    const [call] = (await rig.state()).calls.values();
    expect(call?.result?.outcome).toBe('cancelled');
    const state = await rig.say('[rehearsal:say] go on');
    expect(lastMessage(state)).toContain('go on');
  });

  it('is taken note of where nothing works', async () => {
    const rig = await Rig.open();
    await rig.run('[rehearsal:say] done');
    await rig.append(draft('user.interrupt', {}, { queued: true }));
    await rig.harness.wake(rig.session, 'a test');
    const state = await rig.state();
    expect(state.status).toBe('idle');
    expect(state.threads.get(rig.primary)?.interrupts).toEqual([]);
  });
});

describe('what the model gets wrong', () => {
  it('goes back to it as a result: input that is no JSON', async () => {
    const rig = await Rig.open();
    const state = await rig.run('[rehearsal:look-around] [fault:malformed_tool]');
    const [call] = state.calls.values();
    expect(call?.permission).toBe('deny');
    expect(call?.evaluation).toBeNull();
    expect(call?.result?.outcome).toBe('failed');
    expect(JSON.stringify(call?.result?.content)).toContain('not a valid JSON object');
    expect(state.status).toBe('idle');
  });

  it('goes back to it as a result: a tool that does not exist, with those that do', async () => {
    const rig = await Rig.open();
    const state = await rig.run('[rehearsal:look-around] [fault:unknown_tool]');
    const said = JSON.stringify([...state.calls.values()][0]?.result?.content);
    expect(said).toContain('There is no tool named');
    expect(said).toContain('bash');
  });

  it('goes back to it as a result: a call cut off by the output limit, which never runs', async () => {
    const rig = await Rig.open();
    const state = await rig.run('[rehearsal:look-around] [fault:cut_tool]');
    const [call] = state.calls.values();
    expect(JSON.stringify(call?.result?.content)).toContain('cut off by the output limit');
    expect(call?.execution).toBeNull();
  });

  it('ends the turn as a refusal where the model refuses', async () => {
    const rig = await Rig.open();
    const state = await rig.run('[rehearsal:say] no [fault:refusal]');
    expect(state.stopReason).toEqual({ type: 'refusal' });
  });
});

describe('when the service fails', () => {
  it('shows that it waits while the SDK retries, then goes on', async () => {
    const rig = await Rig.open();
    rig.rehearsal.fail({ kind: 'status', status: 529, retryAfterMs: 20 });
    const state = await rig.run('[rehearsal:say] hello');
    expect(state.stopReason).toEqual({ type: 'end_turn' });
    const types = await rig.types();
    expect(types).toContain('session.status_rescheduled');
    expect(types.lastIndexOf('session.status_running')).toBeGreaterThan(types.indexOf('session.status_rescheduled'));
    expect(lastMessage(state)).toContain('hello');
  });

  it('asks again after a reply that broke off, and counts only the whole one', async () => {
    const rig = await Rig.open();
    rig.rehearsal.fail({ kind: 'drop', afterBytes: 900 });
    const state = await rig.run('[rehearsal:say] hello');
    expect(state.stopReason).toEqual({ type: 'end_turn' });
    const requests = state.threads.get(rig.primary)?.entries.filter((entry) => entry.type === 'request') ?? [];
    expect(requests.map((one) => one.type === 'request' && one.state)).toEqual(['failed', 'done']);
  });

  it('gives the turn up after a bounded number of requests, says why, and goes on with the next message', async () => {
    const rig = await Rig.open({ rehearsal: { faults: { always: { kind: 'drop', afterBytes: 900 } } } });
    const state = await rig.run('[rehearsal:say] hello');
    expect(state.stopReason).toEqual({ type: 'retries_exhausted' });
    const requests = state.threads.get(rig.primary)?.entries.filter((entry) => entry.type === 'request') ?? [];
    expect(requests.length).toBe(3);
    const errors = (await rig.records()).filter((record) => record.event.type === 'session.error');
    expect(JSON.stringify(errors.at(-1)?.event)).toContain('"exhausted"');
  });

  it('says that there is no key, without asking anybody', async () => {
    const rig = await Rig.open({ apiKey: undefined });
    const state = await rig.run('[rehearsal:say] hello');
    expect(state.stopReason).toEqual({ type: 'retries_exhausted' });
    expect(state.threads.get(rig.primary)?.failure?.cause).toBe('no_key');
    expect(rig.rehearsal.requests.length).toBe(0);
  });

  it('tells a wrong key from an unknown model', async () => {
    const wrongKey = await Rig.open({ rehearsal: { apiKey: 'another-key' } });
    const refused = await wrongKey.run('hello');
    expect(refused.threads.get(wrongKey.primary)?.failure?.cause).toBe('bad_key');
    const unknown = await Rig.open({ agent: { model: 'claude-nonesuch' } });
    const missing = await unknown.run('hello');
    const failure = missing.threads.get(unknown.primary)?.failure;
    expect(failure?.cause).toBe('unknown_model');
    expect(failure?.error.message).toContain('claude-nonesuch');
  });
});

describe('subagents', () => {
  it('work in a thread of their own, and their last words are the result of the call', async () => {
    const rig = await Rig.open();
    const state = await rig.run('[rehearsal:agents n=1]');
    expect(state.stopReason).toEqual({ type: 'end_turn' });
    const children = [...state.threads.values()].filter((thread) => thread.parent === rig.primary);
    expect(children.length).toBeGreaterThanOrEqual(1);
    const call = [...state.calls.values()].find((one) => one.name === 'create_agent');
    expect(call?.child).toBe(children[0]?.id);
    expect(call?.result?.outcome).toBe('ok');
    expect(children[0]?.costUsd).toBeGreaterThan(0);
  });
});

describe('two harnesses', () => {
  it('do not work on one session: the second is told who has it', async () => {
    const rig = await Rig.open();
    await rig.run('[rehearsal:say] mine');
    const other = openStore({
      root: join(rig.folder, '.drover'),
      holder: { pid: process.pid, host: 'another-host' },
    });
    try {
      await expect(other.acquire(rig.session, 'a test')).rejects.toBeInstanceOf(LeaseHeld);
    } finally {
      await other.dispose();
    }
  });
});

describe('a nudge', () => {
  it('that comes while the session works reads nothing anew', async () => {
    const rig = await Rig.open();
    await rig.create('[rehearsal:long-command seconds=1]');
    const working = rig.harness.wake(rig.session, 'a test');
    await rig.until('the command', (state) => [...state.calls.values()].some((call) => call.execution !== null));
    const writer = await rig.store.acquire(rig.session, 'a test');
    const scan = vi.spyOn(writer, 'scan');
    await Promise.all([working, ...Array.from({ length: 20 }, () => rig.harness.wake(rig.session, 'a nudge'))]);
    expect(scan).not.toHaveBeenCalled();
    expect((await rig.state()).stopReason).toEqual({ type: 'end_turn' });
  });

  it('that comes just as the session comes to rest is not lost', async () => {
    const rig = await Rig.open();
    await rig.create('[rehearsal:say] one');
    const writer = await rig.store.acquire(rig.session, 'a test');
    const nudged: Promise<void>[] = [];
    const listening = writer.onAppend((records) => {
      if (!records.some(({ event }) => event.type === 'session.status_idle') || nudged.length === 3) return;
      // Steps of a promise between the rest and the nudge: that many, for every place where the loop may stand.
      const steps = nudged.length;
      nudged.push(
        writer.append([rig.message(`[rehearsal:say] more ${steps}`)]).then(async () => {
          for (let step = 0; step < steps; step += 1) await undefined;
          await rig.harness.wake(rig.session, 'a nudge');
        }),
      );
    });
    await rig.harness.wake(rig.session, 'a test');
    for (let n = 0; n < nudged.length; n += 1) await nudged[n];
    listening.dispose();
    expect(nudged.length).toBe(3);
    const state = await rig.state();
    expect(lastMessage(state)).toContain('more 2');
    expect([...state.threads.values()][0]?.queue).toEqual([]);
  });
});

describe('hands', () => {
  it('that can not be had are a result in words, not the end of the session', async () => {
    const rig = await Rig.open();
    rig.sandboxes.unavailable = 'No container engine answers; start Docker.';
    const state = await rig.run('[rehearsal:parallel]');
    expect(state.status).toBe('idle');
    const call = [...state.calls.values()].find((one) => one.name === 'bash');
    expect(call?.result?.outcome).toBe('failed');
    expect(JSON.stringify(call?.result?.content)).toContain('start Docker');
  });

  it.each([new LeaseLost(), new AppendFailed('The session could not be saved: the disk was full.')])(
    'are made anew if a harness had begun to make them that could not say so in the log ($name)',
    async (error) => {
      const rig = await Rig.open();
      const acquire = rig.sandboxes.acquire.bind(rig.sandboxes);
      rig.sandboxes.prepare = () => undefined;
      rig.sandboxes.acquire = () => {
        rig.sandboxes.acquire = acquire;
        return Promise.reject(error);
      };
      const state = await rig.run('[rehearsal:call tool=bash] {"command": "echo here"}');
      expect([...state.calls.values()].map(({ result }) => result?.outcome)).toEqual(['ok']);
    },
  );

  it('that die under a command give "lost", and the next call gets fresh ones', async () => {
    const rig = await Rig.open();
    await rig.create('[rehearsal:long-command seconds=30]');
    const done = rig.harness.wake(rig.session, 'a test');
    await rig.until('the command', (state) => [...state.calls.values()].some((call) => call.execution !== null));
    rig.sandboxes.kill();
    await done;
    const [call] = (await rig.state()).calls.values();
    expect(call?.result?.outcome).toBe('lost');
    const after = await rig.say('[rehearsal:parallel]');
    expect([...after.calls.values()].at(-1)?.result?.outcome).toBe('ok');
  });
});

describe('after a crash', () => {
  it('takes the true result of a command that ended meanwhile, and runs it once', async () => {
    const rig = await Rig.open();
    await rig.create('[rehearsal:long-command seconds=1]');
    const dead = rig.harness.wake(rig.session, 'a test');
    await rig.until('the command', (state) => [...state.calls.values()].some((call) => call.execution !== null));
    await rig.restart();
    await dead.catch(() => undefined);
    await rig.harness.wake(rig.session, 'after a crash');
    const state = await rig.state();
    const [call] = state.calls.values();
    expect(call?.recovered).toBe('running');
    expect(call?.result?.outcome).toBe('ok');
    expect((await rig.types()).filter((type) => type === 'drover.tool_started').length).toBe(1);
    expect(state.stopReason).toEqual({ type: 'end_turn' });
  });

  it('says "lost" of a command whose sandbox is gone too, and does not run it again', async () => {
    const rig = await Rig.open();
    await rig.create('[rehearsal:long-command seconds=30]');
    const dead = rig.harness.wake(rig.session, 'a test');
    await rig.until('the command', (state) => [...state.calls.values()].some((call) => call.execution !== null));
    await rig.restart();
    rig.sandboxes.kill();
    await dead.catch(() => undefined);
    await rig.harness.wake(rig.session, 'after a crash');
    const state = await rig.state();
    const [call] = state.calls.values();
    expect(call?.result?.outcome).toBe('lost');
    expect([...state.sandboxes.values()][0]?.state).toBe('lost');
    const starts = (await rig.records()).filter(
      ({ event }) => 'tool_use_id' in event && event.tool_use_id === call?.id,
    );
    expect(starts.filter(({ event }) => event.type === 'drover.tool_started').length).toBe(1);
  });

  it('says "unknown" of a command whose sandbox can not be asked, and takes no sandbox for lost', async () => {
    const rig = await Rig.open();
    await rig.create('[rehearsal:long-command seconds=30]');
    const dead = rig.harness.wake(rig.session, 'a test');
    await rig.until('the command', (state) => [...state.calls.values()].some((call) => call.execution !== null));
    await rig.restart();
    await dead.catch(() => undefined);
    rig.sandboxes.silent = 'No container engine answers; start Docker.';
    await rig.harness.wake(rig.session, 'after a crash');
    const state = await rig.state();
    const [call] = state.calls.values();
    expect(call?.result?.outcome).toBe('unknown');
    expect(JSON.stringify(call?.result?.content)).toContain('start Docker');
    expect([...state.sandboxes.values()].map((sandbox) => sandbox.state)).toEqual(['ready']);
    rig.sandboxes.kill();
  });

  it('asks the model again at once, however often it was a crash or a person that ended the request', async () => {
    // A failure of the model's would be waited for longer than this test takes, or end the turn.
    const rig = await Rig.open({ deps: { retryBaseMs: 60_000 } });
    await rig.create('[rehearsal:say] here again');
    for (const cause of ['crashed', 'interrupted', 'crashed', 'crashed', 'crashed'] as const) {
      const id = mint.event();
      await rig.append(
        draft('span.model_request_start', {}, { id, thread: rig.primary }),
        draft(
          'span.model_request_end',
          { model_request_start_id: id, is_error: true, model_usage: noUsage() },
          { thread: rig.primary, local: { cause } },
        ),
      );
    }
    await rig.harness.wake(rig.session, 'after a crash');
    const state = await rig.state();
    expect(state.stopReason).toEqual({ type: 'end_turn' });
    expect(lastMessage(state)).toContain('here again');
  });

  it('at any append of a session with calls, goes on to the same end, and does nothing twice', async () => {
    const task = '[rehearsal:call tool=bash] {"command": "echo once >> lines.txt"}';
    const play = async (last: LastAct) => {
      const rig = await Rig.open();
      await rig.create(task);
      const cut = await rig.cutOff(last);
      await rig.harness.wake(rig.session, 'after a crash');
      const state = await rig.state();
      const [call] = state.calls.values();
      const lines = await readFile(join(rig.folder, 'lines.txt'), 'utf8').catch(() => '');
      return { cut, stop: state.stopReason, outcome: call?.result?.outcome, lines };
    };
    const outcomes: unknown[] = [];
    for (let n = 1, cut = true; cut; n += 1) {
      for (const when of ['before', 'after'] as const) {
        const end = await play({ n, when });
        cut = end.cut;
        outcomes.push(end.outcome);
        // It had been begun and not run, and nobody may run it now: the model is told so, and decides.
        const lines = end.outcome === 'unknown' ? '' : 'once\n';
        expect(end, `cut off ${when} append ${n}`).toMatchObject({ stop: { type: 'end_turn' }, lines });
      }
    }
    expect(outcomes.length).toBeGreaterThan(20);
    expect(new Set(outcomes)).toEqual(new Set(['ok', 'unknown']));
  }, 60_000);
});

describe('recall', () => {
  it('the words of a person stay whole in the log', async () => {
    const rig = await Rig.open();
    const long = `[rehearsal:say] ${'word '.repeat(50)}`;
    await rig.run(long);
    const [said] = (await rig.records()).filter((record) => record.event.type === 'user.message');
    expect(said?.event).toMatchObject({ content: [text(long)] });
  });
});
