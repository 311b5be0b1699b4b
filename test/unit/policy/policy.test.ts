import { describe, expect, it } from 'vitest';
import { createPolicy, type Question } from '../../../src/policy/policy.ts';
import type { AgentSnapshot } from '../../../src/protocol/drover-event.ts';

const careful: AgentSnapshot = {
  name: 'Careful',
  model: 'drover-rehearsal',
  tools: [
    {
      type: 'agent_toolset_20260401',
      default_config: { permission_policy: { type: 'always_ask' } },
      configs: [{ name: 'read', permission_policy: { type: 'always_allow' } }],
    },
  ],
};

const ask = (more: Partial<Question>) =>
  createPolicy().evaluate({
    agent: careful,
    tool: 'bash',
    input: {},
    inputSha256: 'a'.repeat(64),
    standing: [],
    livingThreads: 1,
    ...more,
  });

describe('policy', () => {
  it('asks where the agent always asks, and says whose rule that is', () => {
    const verdict = ask({ tool: 'edit' });
    expect(verdict.permission).toBe('ask');
    expect(verdict.evaluation).toEqual({ type: 'always_ask' });
    expect(verdict.why).toContain('"Careful"');
  });

  it('prefers the rule for one tool to the default for all', () => {
    expect(ask({ tool: 'read' }).permission).toBe('allow');
  });

  it('allows the built-in tools where an agent says nothing, as the public default does', () => {
    expect(ask({ agent: { name: 'Plain', model: 'm' } }).permission).toBe('allow');
  });

  it('asks under "auto", since nobody but a person can judge here', () => {
    const agent: AgentSnapshot = {
      ...careful,
      tools: [{ type: 'agent_toolset_20260401', default_config: { permission_policy: { type: 'auto' } } }],
    };
    expect(ask({ agent }).evaluation).toEqual({
      type: 'auto',
      evaluated_permission: { type: 'ask', reason_code: 'indeterminate' },
    });
  });

  it('remembers "from now on" for a whole tool', () => {
    const verdict = ask({ tool: 'edit', standing: [{ tool: 'edit' }] });
    expect(verdict.permission).toBe('allow');
    expect(verdict.evaluation).toEqual({ type: 'always_allow' });
    expect(verdict.rule).toEqual({ tool: 'edit' });
  });

  it('never lets a rule for the whole of bash pass: any command would', () => {
    expect(ask({ standing: [{ tool: 'bash' }] }).permission).toBe('ask');
  });

  it('lets exactly the command pass that was allowed from now on, and no other', () => {
    const standing = [{ tool: 'bash', input_sha256: 'a'.repeat(64) }];
    expect(ask({ standing }).permission).toBe('allow');
    expect(ask({ standing, inputSha256: 'b'.repeat(64) }).permission).toBe('ask');
    expect(ask({ standing, tool: 'edit' }).permission).toBe('ask');
  });

  it('asks about every call that would act on the machine itself, whatever an agent or a rule allows', () => {
    const agent: AgentSnapshot = { name: 'Free', model: 'm' };
    const exact = { tool: 'bash', input_sha256: 'a'.repeat(64) };
    for (const tool of ['bash', 'read', 'write', 'edit', 'glob', 'grep']) {
      expect(ask({ agent, tool }).permission).toBe('allow');
      const verdict = ask({ agent, tool, onHost: true, standing: [{ tool }, exact] });
      expect(verdict).toMatchObject({ permission: 'ask', evaluation: { type: 'always_ask' } });
      expect(verdict.why).toContain('on this machine itself');
    }
    expect(ask({ agent, tool: 'get_events', onHost: true }).permission).toBe('allow');
  });

  it('lets a few subagents work at a time, asks for each further one, and stops at the limit', () => {
    const permissions = [1, 3, 4, 25, 26].map(
      (livingThreads) => ask({ tool: 'create_agent', livingThreads }).permission,
    );
    expect(permissions).toEqual(['allow', 'allow', 'ask', 'ask', 'deny']);
  });

  it('stops at the limit of subagents even where a person allowed more from now on', () => {
    const standing = [{ tool: 'create_agent' }];
    expect(ask({ tool: 'create_agent', livingThreads: 10, standing }).permission).toBe('allow');
    expect(ask({ tool: 'create_agent', livingThreads: 26, standing }).permission).toBe('deny');
  });
});
