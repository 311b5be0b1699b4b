import { z } from 'zod';
import { mcpToolConfig } from '../../protocol/agent.ts';
import type { AgentSnapshot } from '../../protocol/drover-event.ts';
import type { McpServer, McpTool } from '../../protocol/mcp.ts';
import type { ThreadTools } from '../mcp.ts';
import { type AnyTool, oneLine } from '../tool.ts';

/** The server knows its schema, and says what is wrong with an input in words of its own. */
const ANY_INPUT = z.looseObject({});

/** The tools of an agent's servers, as far as they are listed and it has them enabled. */
export function mcpTools(agent: AgentSnapshot, thread: ThreadTools): AnyTool[] {
  return thread.listings.flatMap(({ server: name, tools }) => {
    const server = agent.mcp_servers?.find((one) => one.name === name);
    if (!server) return [];
    const enabled = tools.filter((tool) => mcpToolConfig(agent, name, tool.name).enabled);
    return enabled.map((tool) => mcpTool(agent, server, tool, thread));
  });
}

function mcpTool(agent: AgentSnapshot, server: McpServer, tool: McpTool, thread: ThreadTools): AnyTool {
  const { policy } = mcpToolConfig(agent, server.name, tool.name);
  return {
    spec: {
      name: tool.shown_as,
      description: `${tool.description || 'No description is given.'}\n(A tool of the MCP server "${oneLine(server.name)}".)`,
      input_schema: tool.input_schema,
      // A server says of itself that a tool only reads, and a call that is made twice can cost money or send two letters.
      // So its word counts only where a person has said that the tool may run unasked.
      idempotent: tool.read_only === true && policy === 'always_allow',
      sandboxed: server.type === 'stdio',
      mcp: { server, tool: tool.name },
      summary: (input) => `${server.name}: ${tool.name} ${oneLine(JSON.stringify(input))}`,
    },
    schema: ANY_INPUT,
    changes: true,
    execute: (input, context) => thread.call(server.name, tool.name, ANY_INPUT.parse(input), context),
  };
}
