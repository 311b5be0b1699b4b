import type { EventOf, SessionError } from '../protocol/event.ts';
import type { LogRecord } from '../protocol/record.ts';
import type { McpListing, ThreadState } from './state.ts';

/** The newest list of a server counts. */
export function foldListed(thread: ThreadState, record: LogRecord, event: EventOf<'drover.mcp_tools_listed'>): void {
  put(thread, { server: event.mcp_server_name, tools: event.tools, failed: false, seq: record.seq });
}

/** A server that could not be reached, or refused the login. */
export const isOfServer = (error: SessionError): boolean => error.type.startsWith('mcp_');

/** The session goes on without the tools of a server that fails, until it is listed again. */
export function foldServerFailed(thread: ThreadState, record: LogRecord, error: SessionError): void {
  if (error.mcp_server_name === undefined) return;
  put(thread, { server: error.mcp_server_name, tools: [], failed: true, seq: record.seq });
}

/** A turn begins: what failed in the one before may be well again. */
export function foldTurn(thread: ThreadState): void {
  for (const listing of thread.mcp) listing.failed = false;
}

/** A server keeps its place. */
function put(thread: ThreadState, listing: McpListing): void {
  const known = thread.mcp.findIndex(({ server }) => server === listing.server);
  if (known < 0) thread.mcp.push(listing);
  else thread.mcp[known] = listing;
}
