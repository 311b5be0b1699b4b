import { AsyncLocalStorage } from 'node:async_hooks';
import type { ExecutionId } from '../../protocol/ids.ts';
import { type Draft, draft } from '../../protocol/record.ts';

/** One request to a server, as it went. */
export interface Exchange {
  url: URL;
  method: string;
  /** Of the answer; null if there was none. */
  status: number | null;
  bytesOut: number;
  bytesIn: number;
  durationMs: number;
  failed: boolean;
  credentialIds: string[];
}

/** The call on whose behalf requests are made: the SDK knows of none. */
export const onBehalfOf = new AsyncLocalStorage<ExecutionId>();

/** The same for the ledger of the session. */
export function ledgerDraft(server: string, exchange: Exchange, execution: ExecutionId | undefined): Draft {
  const { url, method, status, failed } = exchange;
  const scheme = url.protocol === 'https:' ? 'https' : 'http';
  return draft('drover.egress', {
    execution_id: execution ?? null,
    scheme,
    host: url.hostname,
    port: Number(url.port) || (scheme === 'https' ? 443 : 80),
    method,
    path: url.pathname,
    status,
    bytes_out: exchange.bytesOut,
    bytes_in: exchange.bytesIn,
    duration_ms: exchange.durationMs,
    verdict: failed ? 'failed' : 'allowed',
    reason: failed ? 'upstream' : null,
    credential_ids: exchange.credentialIds,
    count: 1,
    mcp_server_name: server,
  });
}
