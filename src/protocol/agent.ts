import { z } from 'zod';
import { AgentId } from './ids.ts';

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
