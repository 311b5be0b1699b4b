import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { ExecutionId, SessionId, ThreadId } from '../../protocol/ids.ts';
import type { McpServer } from '../../protocol/mcp.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';

/** For whom a server is connected. */
export interface McpPurpose {
  session: SessionId;
  /** The thread that uses it: each has a connection of its own. */
  thread: ThreadId;
  /** Aborted: nobody waits for the connection any more. What is open by then is closed through the transport. */
  signal: AbortSignal;
  /** The session's sandbox, made at the first call of this. Throws `SandboxUnavailable`. A url server never asks for it. */
  sandbox(): Promise<Sandbox>;
}

/** A way to a server, and what it may know beyond what the SDK asks for. */
export interface McpTransport extends Transport {
  /** Of a program in the sandbox: what the ledger puts its connections down to. */
  readonly executionId?: ExecutionId;
  /** Why it did not open or has ended, in one sentence, where that is known. */
  readonly whyClosed?: string | undefined;
}

/** Makes the way to one kind of server. */
export interface McpConnector<Server extends McpServer = McpServer> {
  /**
   * A transport that the caller starts and closes. Closing it ends whatever was started for it.
   * Throws with one clear sentence where there can be none.
   */
  open(server: Server, purpose: McpPurpose): Promise<McpTransport>;
}
