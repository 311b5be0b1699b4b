import { DroverError } from '../protocol/errors.ts';
import type { ExecutionId, SessionId, ThreadId, VaultId } from '../protocol/ids.ts';
import type { McpServer, McpTool } from '../protocol/mcp.ts';
import type { Draft } from '../protocol/record.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { Outcome, ToolContext } from './tools.ts';

/*
 * The interface of tools/mcp/: other people's tools, through the Model Context Protocol. What is connected is memory of
 * this process and nothing else: whoever wakes a session after a crash connects anew when a server is wanted.
 */

/** A server that could not be reached or spoken with, or that refused the login. The message is one sentence for people. */
export class McpFailed extends DroverError {
  readonly reason: 'connection' | 'authentication';

  constructor(reason: McpFailed['reason'], message: string, options?: { cause?: unknown }) {
    super('tool', message, options);
    this.reason = reason;
  }
}

/** For whom a server is used. */
export interface McpUse {
  session: SessionId;
  thread: ThreadId;
  /** Where a token for the server may be; the first vault that has one counts. */
  vaultIds: readonly VaultId[];
  /** The session's sandbox, for servers that run in one. Throws `SandboxUnavailable`. */
  sandbox(signal: AbortSignal): Promise<Sandbox>;
  /** The connection that wanted the sandbox is closed. */
  release(sandbox: Sandbox): void;
  /** Puts what the ledger has to say into the log. May reject when nobody keeps the log any more. */
  record(drafts: Draft[]): Promise<void>;
}

/** What a server offers. */
export interface McpOffer {
  server: { name: string; version: string } | null;
  tools: McpTool[];
  leftOut: { name: string; why: string }[];
  /** Of a server that runs in the sandbox: the execution it is there. */
  executionId?: ExecutionId;
}

export interface Mcp {
  /**
   * What the server offers this thread by now: connects if there is no connection, asks again only if the server has said
   * since that it has changed. Throws `McpFailed`, or the reason of `signal`.
   */
  offer(use: McpUse, server: McpServer, signal: AbortSignal): Promise<McpOffer>;
  /** The server has said that what it offers has changed, and nobody has asked since. */
  hasNews(use: McpUse, server: McpServer): boolean;
  /** One call. Throws `McpFailed` where it did not run, because there is no connection or the login was refused. */
  call(use: McpUse, server: McpServer, tool: string, input: object, context: ToolContext): Promise<Outcome>;
  /** Ends every connection, and with it what was started for it. */
  dispose(): Promise<void>;
}

/** The tools of servers as one thread has them: what is in the log, and a way to call them. */
export interface ThreadTools {
  /** In the order in which the model is shown them. */
  listings: readonly { server: string; tools: readonly McpTool[] }[];
  call(server: string, tool: string, input: object, context: ToolContext): Promise<Outcome>;
}
