import { describe, expect, it } from 'vitest';
import { inputSha256 } from '../../../src/harness/input-hash.ts';
import type { Rule } from '../../../src/protocol/rule.ts';
import { pendingApprovals } from '../../../src/session/fold.ts';
import { Rig } from './rig.ts';

const agent = {
  tools: [
    { type: 'agent_toolset_20260401' as const, default_config: { permission_policy: { type: 'always_ask' as const } } },
  ],
};
const input = { command: 'echo once >> lines.txt' };
const task = `[rehearsal:call tool=bash] ${JSON.stringify(input)}`;

const rule = (more: Partial<Rule>): Rule => ({
  id: 'rule_1',
  type: 'rule',
  tool: 'bash',
  name: input.command,
  created_at: '2026-01-01T00:00:00.000Z',
  archived_at: null,
  ...more,
});

describe('a rule of the folder', () => {
  it('lets exactly the call pass that it was made for, and the log says which rule did', async () => {
    const rig = await Rig.open({ agent, rules: [rule({ input_sha256: inputSha256(input) })] });
    const state = await rig.run(task);
    expect(pendingApprovals(state)).toEqual([]);
    const [call] = state.calls.values();
    expect(call?.result?.outcome).toBe('ok');
    expect(call?.evaluation).toEqual({ type: 'always_allow' });
    const used = (await rig.records()).find((record) => record.event.type === 'agent.tool_use')?.local?.rule;
    expect(used).toEqual({ tool: 'bash', input_sha256: inputSha256(input) });
  });

  it('for another input changes nothing: the call asks', async () => {
    const rig = await Rig.open({ agent, rules: [rule({ input_sha256: inputSha256({ command: 'ls' }) })] });
    expect(pendingApprovals(await rig.run(task)).map((call) => call.name)).toEqual(['bash']);
  });
});
