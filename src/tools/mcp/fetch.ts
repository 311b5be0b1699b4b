import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import { messageOf } from '../../protocol/errors.ts';
import type { McpUrlServer } from '../../protocol/mcp.ts';
import type { McpToken, McpTokens } from '../../protocol/mcp-tokens.ts';
import { McpFailed } from '../mcp.ts';
import type { Exchange } from './ledger.ts';

/** Bytes of one answer. A stream that a server keeps open for its own messages has no limit. */
const MOST_BYTES = 64 * 1024 * 1024;

export interface FetchOptions {
  server: McpUrlServer;
  tokens: McpTokens | undefined;
  /** Default: Node's own, asked for at each request. In VS Code that goes through its proxy settings and trusts what it trusts. */
  fetch: FetchLike | undefined;
  /** Told of each request when its answer has ended. */
  onExchange(exchange: Exchange): void;
  /** Told when an answer's body has ended, well or not. `resumable`: the rest can be asked for. */
  onBodyEnd(request: BodyEnd): void;
}

export interface BodyEnd {
  /** Of the JSON-RPC request the answer was for. */
  id: string | number | null;
  resumable: boolean;
}

/**
 * How requests to one server are made: with its token, put in here and nowhere else, on requests to that very origin
 * alone. Redirects are not followed here; the SDK follows them within the origin only. Throws `McpFailed` where the login
 * is refused, after the token was renewed once.
 */
export function fetchFor(options: FetchOptions): FetchLike {
  const { origin } = new URL(options.server.url);
  return async (url, init) => {
    const target = new URL(url);
    const token = target.origin === origin ? await tokenOf(options) : undefined;
    const response = await exchange(options, target, init, token, token?.token);
    if (response.status !== 401 && response.status !== 403) return response;
    await response.body?.cancel();
    const fresh = response.status === 401 ? await renewed(options.server, token) : undefined;
    if (fresh === undefined) throw refused(options.server, response.status, token);
    const again = await exchange(options, target, init, token, fresh);
    if (again.status !== 401 && again.status !== 403) return again;
    await again.body?.cancel();
    throw refused(options.server, again.status, token);
  };
}

async function tokenOf({ server, tokens }: FetchOptions): Promise<McpToken | undefined> {
  try {
    return await tokens?.tokenFor(server.url);
  } catch (error) {
    throw unusable(server, error);
  }
}

async function renewed(server: McpUrlServer, token: McpToken | undefined): Promise<string | undefined> {
  try {
    return await token?.refreshed();
  } catch (error) {
    throw unusable(server, error);
  }
}

const unusable = (server: McpUrlServer, error: unknown): McpFailed => {
  const message = `MCP server "${server.name}" can’t be used: ${messageOf(error).replace(/\.$/, '')}`;
  return new McpFailed('authentication', message, { cause: error });
};

function refused({ name, url }: McpUrlServer, status: number, token: McpToken | undefined): McpFailed {
  const { host } = new URL(url);
  const why = token
    ? `${host} refused the token that the session’s vaults have for it (status ${status}); put a new one into the vault`
    : `${host} wants a login (status ${status}), and the session’s vaults have no credential for ${url}`;
  return new McpFailed('authentication', `MCP server "${name}" can’t be used: ${why}`);
}

async function exchange(
  options: FetchOptions,
  url: URL,
  init: RequestInit | undefined,
  token: McpToken | undefined,
  value: string | undefined,
): Promise<Response> {
  const headers = new Headers(init?.headers);
  // A value that can't be sent would make fetch throw an error that quotes it.
  if (value !== undefined && !/^[\x21-\x7e]+$/.test(value)) throw refused(options.server, 401, token);
  if (value !== undefined) headers.set('authorization', `Bearer ${value}`);
  const said = {
    url,
    method: init?.method ?? 'GET',
    bytesOut: typeof init?.body === 'string' ? Buffer.byteLength(init.body) : 0,
    credentialIds: token ? [token.credentialId] : [],
  };
  const from = performance.now();
  const tell = (status: number | null, bytesIn: number, failed: boolean) =>
    options.onExchange({ ...said, status, bytesIn, failed, durationMs: Math.round(performance.now() - from) });
  try {
    const send = options.fetch ?? globalThis.fetch;
    const response = await send(url, { ...init, headers, redirect: 'manual' });
    return watched(response, options, requestId(init), tell);
  } catch (error) {
    tell(null, 0, true);
    throw error;
  }
}

/** The same answer; its end is told, however it comes. */
function watched(
  response: Response,
  options: FetchOptions,
  id: BodyEnd['id'],
  tell: (status: number, bytesIn: number, failed: boolean) => void,
): Response {
  const { status, statusText, headers, body } = response;
  if (!body) {
    tell(status, 0, false);
    return response;
  }
  const streams = /^text\/event-stream/i.test(headers.get('content-type') ?? '');
  // What the server keeps open for its own messages would be told when nobody keeps the log any more.
  const ownStream = streams && id === null;
  if (ownStream) tell(status, 0, false);
  let bytes = 0;
  let resumable = false;
  let over = false;
  const end = (failed: boolean) => {
    if (over) return;
    over = true;
    if (!ownStream) tell(status, bytes, failed);
    if (streams && id !== null) options.onBodyEnd({ id, resumable });
  };
  const reader = body.getReader();
  const passed = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          end(false);
          controller.close();
          return;
        }
        bytes += value.length;
        resumable ||= streams && /(^|\n)id:/.test(Buffer.from(value).toString('latin1'));
        if (bytes > MOST_BYTES && !ownStream) throw new Error(`its answer has more than ${MOST_BYTES} bytes`);
        controller.enqueue(value);
      } catch (error) {
        end(true);
        controller.error(error);
        reader.cancel().catch(() => undefined);
      }
    },
    async cancel(reason) {
      end(false);
      await reader.cancel(reason);
    },
  });
  return new Response(passed, { status, statusText, headers });
}

/** Of the JSON-RPC request that is sent, if it is one that is answered. */
function requestId(init: RequestInit | undefined): BodyEnd['id'] {
  if (typeof init?.body !== 'string') return null;
  const message: unknown = JSON.parse(init.body);
  if (typeof message !== 'object' || message === null || !('id' in message) || !('method' in message)) return null;
  return typeof message.id === 'string' || typeof message.id === 'number' ? message.id : null;
}
