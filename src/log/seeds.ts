import type { Agent, AgentDefinition, PermissionPolicy } from '../protocol/agent.ts';
import type { Environment } from '../protocol/environment.ts';
import { AgentId, EnvironmentId } from '../protocol/ids.ts';

/** The model of the built-in agents unless another one is asked for. */
export const DEFAULT_MODEL = 'claude-sonnet-5-5';
/** The built-in model that plays without a key. */
const REHEARSAL_MODEL = 'drover-rehearsal';

const SYSTEM = `You are a software developer working in the user's project, which is mounted in your sandbox.
Look before you change: read the code and run the tests first. Make the smallest change that does the whole job, in the style of the code around it. Verify what you did by running it, and say plainly what you saw, what you did not check, and what is left.
For work that stands on its own, such as checking a change with fresh eyes, you may start another agent with a clear task.`;

const DEVELOPER = 'Finds, changes and checks code; asks before it runs a command or changes a file.';
const TRUSTING = 'As Developer, but runs commands in its sandbox without asking; asks before it changes a file.';
const REHEARSAL = 'A built-in model plays a developer, so that you can see how a session goes: no key, no cost.';

/**
 * What a folder has before anyone has changed it. The ids are fixed, so that a folder whose catalog was never
 * written has the same agents every time.
 */
export function seeds(model: string, at: string): { agents: Agent[]; environments: Environment[] } {
  return {
    agents: [
      agent('agent_developer', { name: 'Developer', description: DEVELOPER, ...developer(model, 'always_ask') }, at),
      agent(
        'agent_developer_trusting',
        { name: 'Developer, trusts the sandbox', description: TRUSTING, ...developer(model, 'always_allow') },
        at,
      ),
      agent(
        'agent_rehearsal',
        { name: 'Rehearsal', description: REHEARSAL, ...developer(REHEARSAL_MODEL, 'always_allow') },
        at,
      ),
    ],
    environments: [
      environment(
        'env_devcontainer',
        'Dev container',
        "A container of the folder's own devcontainer.json.",
        { type: 'devcontainer' },
        at,
      ),
      environment(
        'env_os',
        'OS sandbox',
        'The sandbox of the operating system; no container engine needed.',
        { type: 'os' },
        at,
      ),
    ],
  };
}

function developer(model: string, bash: 'always_ask' | 'always_allow'): Omit<AgentDefinition, 'name'> {
  const policy = (name: string, type: PermissionPolicy['type']) => ({ name, permission_policy: { type } });
  return {
    model,
    system: SYSTEM,
    tools: [
      {
        type: 'agent_toolset_20260401',
        // A tool that a later version adds asks until somebody decides about it.
        default_config: { permission_policy: { type: 'always_ask' } },
        configs: [
          policy('bash', bash),
          policy('read', 'always_allow'),
          policy('glob', 'always_allow'),
          policy('grep', 'always_allow'),
          policy('edit', 'always_ask'),
          policy('write', 'always_ask'),
        ],
      },
    ],
    multiagent: { type: 'coordinator', agents: [{ type: 'self' }] },
  };
}

const agent = (id: string, definition: AgentDefinition, at: string): Agent => ({
  id: AgentId.parse(id),
  type: 'agent',
  version: 1,
  ...definition,
  created_at: at,
  updated_at: at,
  archived_at: null,
});

const environment = (
  id: string,
  name: string,
  description: string,
  config: Environment['config'],
  at: string,
): Environment => ({
  id: EnvironmentId.parse(id),
  type: 'environment',
  name,
  description,
  config,
  created_at: at,
  updated_at: at,
  archived_at: null,
});
