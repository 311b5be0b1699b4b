import { z } from 'zod';

/** What an agent's toolsets name a server by. */
const ServerName = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[^\p{C}]+$/u, 'must be one line');

/** A server that is spoken to over HTTP, from outside the sandbox. The public shape: what logs in at it is in a vault. */
export const McpUrlServer = z.object({
  type: z.literal('url'),
  name: ServerName,
  url: z
    .url({ protocol: /^https?$/, error: 'must be an http or https address' })
    .refine((url) => !/^https?:\/\/[^/?#]*@/i.test(url), 'must hold no login; put it into a vault'),
});
export type McpUrlServer = z.infer<typeof McpUrlServer>;

/** Drover's own: a program inside the session's sandbox, spoken to over its stdin and stdout. */
export const McpStdioServer = z.object({
  type: z.literal('stdio'),
  name: ServerName,
  /** A program on the sandbox's PATH, or a path inside. No shell reads it. */
  command: z.string().min(1),
  args: z.array(z.string()).optional(),
  /** Beside what every command in the sandbox gets. Kept in the log: nothing secret. */
  env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of a variable'), z.string()).optional(),
});
export type McpStdioServer = z.infer<typeof McpStdioServer>;

export const McpServer = z.discriminatedUnion('type', [McpUrlServer, McpStdioServer]);
export type McpServer = z.infer<typeof McpServer>;

/** A tool as its server described it. All of it is the server's word, and nothing is taken for granted because of it. */
export const McpTool = z.object({
  /** As the server calls it. */
  name: z.string(),
  /** What the model calls it: fits [A-Za-z0-9_-]{1,128}, and no other tool has it. */
  shown_as: z.string(),
  description: z.string(),
  input_schema: z.looseObject({ type: z.literal('object') }),
  /** The server says that it changes nothing. */
  read_only: z.boolean().optional(),
});
export type McpTool = z.infer<typeof McpTool>;

/**
 * What a standing rule calls a tool of a server. The server's address is part of it: another agent's server of the same
 * name, or the same name with another address, is not what a person has allowed.
 */
export function mcpRuleTool(shownAs: string, server: McpServer | undefined): string {
  if (!server) return shownAs;
  const where = server.type === 'url' ? server.url : [server.command, ...(server.args ?? [])].join(' ');
  return `${shownAs} (${where})`;
}
