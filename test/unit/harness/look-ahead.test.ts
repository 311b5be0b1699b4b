import { describe, expect, it } from 'vitest';
import { inputSha256 } from '../../../src/harness/input-hash.ts';
import { draft } from '../../../src/protocol/record.ts';
import { pendingApprovals } from '../../../src/session/fold.ts';
import { eventually } from '../../support/eventually.ts';
import { Rig } from './rig.ts';

/** A model that takes its time over a call: some 30 pieces of input, one every so many ms. */
const slow = { delays: { firstTokenMs: 1, perChunkMs: 15 } };
const LONG =
  '[rehearsal:call tool=bash] {"command": "echo ran > ran.txt; : this is a command that takes a while to write, word after word after word after word after word after word after word"}';

const toolset = (type: 'always_ask' | 'always_allow', enabled = true) => ({
  tools: [
    {
      type: 'agent_toolset_20260401' as const,
      default_config: { permission_policy: { type }, enabled },
    },
  ],
});

describe('looking ahead', () => {
  it('makes the sandbox while the model still writes the first call', async () => {
    const rig = await Rig.open({ rehearsal: slow });
    await rig.run(LONG);
    const types = await rig.types();
    expect(types.indexOf('drover.sandbox_provisioning')).toBeGreaterThan(types.indexOf('span.model_request_start'));
    expect(types.indexOf('drover.sandbox_ready')).toBeLessThan(types.indexOf('agent.tool_use'));
    expect(types.indexOf('agent.tool_use')).toBeLessThan(types.indexOf('drover.tool_started'));
    expect(types.filter((type) => type === 'drover.sandbox_provisioning')).toHaveLength(1);
  });

  it('makes nothing for a tool that needs no sandbox, or that the agent does not have', async () => {
    const recall = await Rig.open({ rehearsal: slow });
    await recall.run('[rehearsal:call tool=get_events] {"from": 0, "to": 1}');
    expect(await recall.types()).not.toContain('drover.sandbox_provisioning');
    const refused = await Rig.open({ rehearsal: slow, agent: toolset('always_allow', false) });
    const state = await refused.run(LONG);
    expect([...state.calls.values()].map((call) => call.result?.outcome)).toEqual(['failed']);
    expect(await refused.types()).not.toContain('drover.sandbox_provisioning');
  });

  it('runs nothing in it when the call is denied, and the session goes on', async () => {
    const rig = await Rig.open({ rehearsal: slow, agent: toolset('always_ask') });
    const asked = await rig.run(LONG);
    expect(asked.stopReason?.type).toBe('requires_action');
    expect(await rig.types()).toContain('drover.sandbox_ready');
    const [call] = pendingApprovals(asked);
    if (!call) throw new Error('nothing asks');
    const state = await rig.answer(call.id, 'deny');
    expect(state.stopReason).toEqual({ type: 'end_turn' });
    expect(await rig.types()).not.toContain('drover.tool_started');
  });

  it('leaves a sandbox, and nothing else, when the reply is interrupted in the middle of the call', async () => {
    const rig = await Rig.open({ rehearsal: { delays: { firstTokenMs: 1, perChunkMs: 100 } } });
    await rig.create(LONG);
    const done = rig.harness.wake(rig.session, 'a test');
    await rig.until('the sandbox', (state) => state.sandbox !== null);
    await rig.append(draft('user.interrupt', {}, { thread: rig.primary, queued: true }));
    await done;
    const state = await rig.state();
    expect(state.stopReason).toEqual({ type: 'end_turn' });
    expect(state.calls.size).toBe(0);
    const types = await rig.types();
    expect(types).toContain('drover.sandbox_provisioning');
    expect(types).not.toContain('session.error');
  });

  it('says nothing of a failure until the call needs what is missing', async () => {
    const rig = await Rig.open({ rehearsal: slow, agent: toolset('always_ask') });
    rig.sandboxes.unavailable = 'There is no engine today.';
    const asked = await rig.run(LONG);
    expect(asked.stopReason?.type).toBe('requires_action');
    expect(await rig.types()).toContain('drover.sandbox_failed');
    const [call] = pendingApprovals(asked);
    if (!call) throw new Error('nothing asks');
    const state = await rig.answer(call.id, 'allow');
    const result = state.calls.get(call.id)?.result;
    expect(result?.outcome).toBe('failed');
    expect(JSON.stringify(result?.content)).toContain('There is no engine today.');
  });
});

describe('a sandbox for each call', () => {
  it('is let go only when the result is in the log, once for each call', async () => {
    const rig = await Rig.open();
    const open: boolean[] = [];
    rig.sandboxes.release = (owner, id) => {
      open.push(owner.acting?.().has(id) ?? true);
    };
    const state = await rig.run('[rehearsal:many-turns n=2]');
    expect([...state.calls.values()].map((call) => call.result?.outcome)).toEqual(['ok', 'ok']);
    expect(open).toEqual([false, false]);
  });

  it('is let go when the call was interrupted before its sandbox was there', async () => {
    const rig = await Rig.open();
    const gate = Promise.withResolvers<void>();
    const released: string[] = [];
    const acquire = rig.sandboxes.acquire.bind(rig.sandboxes);
    rig.sandboxes.acquire = async (owner) => {
      await gate.promise;
      return acquire(owner);
    };
    rig.sandboxes.release = (_owner, id) => {
      released.push(id);
    };
    await rig.create('[rehearsal:call tool=bash] {"command": "echo never >never.txt"}');
    const done = rig.harness.wake(rig.session, 'a test');
    await rig.until('the call', (state) => state.calls.size === 1);
    await rig.append(draft('user.interrupt', {}, { thread: rig.primary, queued: true }));
    await done;
    gate.resolve();
    await eventually('its release', 5_000, async () => released.length > 0);
    expect(await rig.types()).not.toContain('drover.tool_started');
  });
});

describe('an environment without a sandbox', () => {
  it('asks about every call, of an agent that is always allowed, too, and again after one was allowed for good', async () => {
    const rig = await Rig.open({ config: { type: 'host' } });
    const first = await rig.run('[rehearsal:many-turns n=2]');
    const [call] = pendingApprovals(first);
    if (!call) throw new Error('nothing asks');
    expect(call.why).toContain('on this machine itself');
    expect(await rig.types()).not.toContain('drover.tool_started');
    const standing = { tool: 'bash', input_sha256: inputSha256({ command: 'echo step 2 of 2' }) };
    const allowed = { tool_use_id: call.id, result: 'allow' as const };
    await rig.append(draft('user.tool_confirmation', allowed, { thread: rig.primary, local: { standing } }));
    await rig.harness.wake(rig.session, 'a test');
    const [second] = pendingApprovals(await rig.state());
    expect(second?.input).toEqual({ command: 'echo step 2 of 2' });
  });
});
