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
