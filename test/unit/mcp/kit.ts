import { onTestFinished } from 'vitest';
import type { AgentDefinition } from '../../../src/protocol/agent.ts';
import type { SessionState, ToolCall } from '../../../src/session/state.ts';
import type { HubOptions } from '../../../src/tools/mcp/hub.ts';
import { type ServedTool, TestMcpServer } from '../../support/mcp-server.ts';
import { Rig, type RigOptions } from '../harness/rig.ts';

export type Toolset = Partial<Extract<NonNullable<AgentDefinition['tools']>[number], { type: 'mcp_toolset' }>>;

export const ALLOW = { permission_policy: { type: 'always_allow' as const } };

export async function serve(
  tools: Record<string, ServedTool>,
  options: { older?: boolean } = {},
): Promise<TestMcpServer> {
  const server = await TestMcpServer.start(tools, options);
  onTestFinished(() => server.down());
  return server;
}

/** An agent with these servers, each under its name here. */
export const open = (
  servers: Record<string, TestMcpServer | string>,
  toolset: Toolset = {},
  mcp: Omit<HubOptions, 'version'> = {},
  more: Partial<RigOptions> = {},
): Promise<Rig> =>
  Rig.open({
    mcp,
    agent: {
      tools: [
        { type: 'agent_toolset_20260401' },
        ...Object.keys(servers).map((name) => ({ type: 'mcp_toolset' as const, mcp_server_name: name, ...toolset })),
      ],
      mcp_servers: Object.entries(servers).map(([name, one]) => ({
        type: 'url' as const,
        name,
        url: typeof one === 'string' ? one : one.url,
      })),
    },
    ...more,
  });

export const callTask = (tool: string, input: object = {}): string =>
  `[rehearsal:call tool=${tool}] ${JSON.stringify(input)}`;

export const onlyCall = (state: SessionState): ToolCall => {
  const [call] = [...state.calls.values()].slice(-1);
  if (!call) throw new Error('There is no call.');
  return call;
};

/** Names of the tools that the model was shown in its last request, without our own. */
export const shownTo = (rig: Rig): string[] =>
  toolsOf(rig)
    .map((tool) => tool.name)
    .filter((name) => name.startsWith('mcp__'));

/** All tools of the request at this place, counted from the last, -1. */
export function toolsOf(rig: Rig, at = -1): { name: string }[] {
  const request = rig.rehearsal.requests.filter(({ path }) => path === '/v1/messages').at(at);
  return (request?.body as { tools: { name: string }[] } | undefined)?.tools ?? [];
}

export const words = (call: ToolCall): string =>
  (call.result?.content ?? []).map((block) => (block.type === 'text' ? block.text : `(${block.type})`)).join('\n');
