import type { Tool } from '@modelcontextprotocol/sdk/types.js';
import type { McpTool } from '../../protocol/mcp.ts';
import type { McpOffer } from '../mcp.ts';
import { shownAs } from './names.ts';

/** Characters of a description: enough for any honest one, and it is paid for with each request. */
const LONGEST_DESCRIPTION = 8_000;
/** Characters of a schema as JSON. */
const LARGEST_SCHEMA = 64_000;
/** Tools of one server that are looked at. */
const MOST = 256;

/** What a server lists, as it is kept in the log and shown to the model. */
export function offered(server: string, listed: readonly Tool[]): Pick<McpOffer, 'tools' | 'leftOut'> {
  const tools: McpTool[] = [];
  const leftOut: McpOffer['leftOut'] = [];
  const names = new Set<string>();
  for (const tool of listed) {
    const shown = shownAs(server, tool.name);
    const why = problem(tool, shown, tools.length, names);
    if (why !== undefined) leftOut.push({ name: readable(tool.name).slice(0, 128), why });
    else {
      names.add(shown);
      tools.push(asTool(shown, tool));
    }
  }
  return { tools, leftOut };
}

function problem(tool: Tool, shown: string, count: number, names: ReadonlySet<string>): string | undefined {
  if (tool.name === '' || tool.name.length > 256) return 'its name is empty or too long';
  if (count >= MOST) return `a server’s first ${MOST} tools are all that is shown`;
  if (names.has(shown)) return 'another tool of this server has the same name';
  if (JSON.stringify(tool.inputSchema).length > LARGEST_SCHEMA) return 'its input schema is too large';
  return undefined;
}

function asTool(shown: string, tool: Tool): McpTool {
  const description = readable(tool.description ?? tool.title ?? '');
  const cut = description.length > LONGEST_DESCRIPTION;
  return {
    name: tool.name,
    shown_as: shown,
    description: cut ? `${description.slice(0, LONGEST_DESCRIPTION).toWellFormed()} […]` : description,
    input_schema: tool.inputSchema,
    ...(tool.annotations?.readOnlyHint === true ? { read_only: true } : {}),
  };
}

/** Without what a person would not see: control characters, and the letters of Unicode's invisible alphabet. */
const readable = (words: string): string =>
  words.replaceAll(/[\p{Cc}\u{e0000}-\u{e007f}]/gu, (one) => (one === '\n' || one === '\t' ? one : '')).trim();
