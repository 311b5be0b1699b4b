import { z } from 'zod';
import { AgentId } from './ids.ts';
import { McpServer } from './mcp.ts';

export const PermissionPolicy = z.discriminatedUnion('type', [
  z.object({ type: z.literal('always_allow') }),
  z.object({ type: z.literal('always_ask') }),
  z.object({ type: z.literal('auto') }),
]);
export type PermissionPolicy = z.infer<typeof PermissionPolicy>;

export const ModelConfig = z.object({
  id: z.string().min(1),
  effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).optional(),
  speed: z.enum(['standard', 'fast']).optional(),
});
export type ModelConfig = z.infer<typeof ModelConfig>;

const ToolConfig = z.object({
  name: z.string(),
  enabled: z.boolean().optional(),
  permission_policy: PermissionPolicy.optional(),
});

export const AgentToolset = z.object({
  type: z.literal('agent_toolset_20260401'),
  default_config: ToolConfig.omit({ name: true }).optional(),
  configs: z.array(ToolConfig).optional(),
});
export type AgentToolset = z.infer<typeof AgentToolset>;

export const McpToolset = z.object({
  type: z.literal('mcp_toolset'),
  mcp_server_name: z.string(),
  default_config: ToolConfig.omit({ name: true }).optional(),
  configs: z.array(ToolConfig).optional(),
});

export const CustomTool = z.object({
  type: z.literal('custom'),
  name: z.string().regex(/^[A-Za-z0-9_-]{1,128}$/),
  description: z.string(),
  input_schema: z.looseObject({ type: z.literal('object') }),
});

export const AgentTool = z.discriminatedUnion('type', [AgentToolset, McpToolset, CustomTool]);
export type AgentTool = z.infer<typeof AgentTool>;

export const Multiagent = z.object({
  type: z.literal('coordinator'),
  agents: z.array(
    z.union([
      z.string(),
      z.object({ type: z.literal('agent'), id: z.string(), version: z.number().optional() }),
      z.object({ type: z.literal('self') }),
    ]),
  ),
});

/** What defines an agent; `Agent` is this plus what the catalog adds. */
export const AgentDefinition = z.object({
  name: z.string().min(1),
  description: z.string().nullish(),
  model: z.union([z.string().min(1), ModelConfig]),
  system: z.string().nullish(),
  tools: z.array(AgentTool).optional(),
  /** Each is named by an `mcp_toolset` of `tools`, see `agentProblem`. */
  mcp_servers: z.array(McpServer).max(20).optional(),
  multiagent: Multiagent.nullish(),
  metadata: z.record(z.string(), z.string()).optional(),
});
export type AgentDefinition = z.infer<typeof AgentDefinition>;

export const Agent = AgentDefinition.extend({
  id: AgentId,
  type: z.literal('agent'),
  version: z.number().int().min(1),
  created_at: z.string(),
  updated_at: z.string(),
  archived_at: z.string().nullable(),
});
export type Agent = z.infer<typeof Agent>;

/** The id of the model an agent asks for. */
export const modelId = (agent: Pick<AgentDefinition, 'model'>): string =>
  typeof agent.model === 'string' ? agent.model : agent.model.id;

/** Whether an agent has a tool of one of its servers, and what its own settings say of running it; `origin` for people. */
export function mcpToolConfig(
  agent: Pick<AgentDefinition, 'tools'>,
  server: string,
  tool: string,
): { enabled: boolean; policy: PermissionPolicy['type']; origin: string } {
  const toolset = agent.tools?.find((one) => one.type === 'mcp_toolset' && one.mcp_server_name === server);
  if (toolset?.type !== 'mcp_toolset') return { enabled: false, policy: 'always_ask', origin: 'no toolset names it' };
  const own = toolset.configs?.find((config) => config.name === tool);
  const shared = toolset.default_config;
  const enabled = own?.enabled ?? shared?.enabled ?? true;
  if (own?.permission_policy) return { enabled, policy: own.permission_policy.type, origin: 'set for this tool' };
  if (shared?.permission_policy)
    return { enabled, policy: shared.permission_policy.type, origin: 'its default for all tools of this server' };
  return { enabled, policy: 'always_ask', origin: 'the default for MCP tools' };
}

/** Most tools an agent may name in `tools` and its servers' toolsets together. */
export const MAX_TOOLS = 256;

/** What is wrong with a definition whose every field is fine by itself, in one sentence; undefined if nothing is. */
export function agentProblem({ tools = [], mcp_servers: servers = [] }: AgentDefinition): string | undefined {
  const names = servers.map((server) => server.name);
  const twice = repeated(names);
  if (twice !== undefined) return `Two MCP servers are named "${twice}"; give each a name of its own.`;
  const toolsets = tools.filter((tool) => tool.type === 'mcp_toolset').map((tool) => tool.mcp_server_name);
  const shared = repeated(toolsets);
  if (shared !== undefined) return `Two toolsets name the MCP server "${shared}"; make one of them.`;
  const missing = toolsets.find((name) => !names.includes(name));
  if (missing !== undefined) return `A toolset names the MCP server "${missing}", which is not among mcp_servers.`;
  const unused = names.find((name) => !toolsets.includes(name));
  if (unused !== undefined) return `No toolset names the MCP server "${unused}"; add an mcp_toolset for it to tools.`;
  if (tools.length > MAX_TOOLS) return `An agent has at most ${MAX_TOOLS} tools; this one names ${tools.length}.`;
  return undefined;
}

const repeated = (names: readonly string[]): string | undefined =>
  names.find((name, index) => names.indexOf(name) !== index);
