import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport, StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport, TransportSendOptions } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  ErrorCode,
  isInitializeRequest,
  type JSONRPCMessage,
  type RequestId,
} from '@modelcontextprotocol/sdk/types.js';
import type { McpUrlServer } from '../../protocol/mcp.ts';
import { McpFailed } from '../mcp.ts';
import { type BodyEnd, type FetchOptions, fetchFor } from './fetch.ts';

/** ms between the end of an answer and the moment it is sure that the SDK has read it. */
const GRACE_MS = 250;
/** ms a server gets to hear that its session is over. */
const GOODBYE_MS = 2_000;

/**
 * A server over HTTP: Streamable HTTP, or the older SSE where it does not know that. What the SDK's transports leave open
 * is closed here: a request whose answer broke off is answered with an error, so that nobody waits for it until its time
 * is over.
 */
export class HttpTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #server: McpUrlServer;
  readonly #streamable: StreamableHTTPClientTransport;
  readonly #fetch: FetchOptions['fetch'] & {};
  #older: SSEClientTransport | undefined;
  #refused: McpFailed | undefined;
  #closed = false;
  /** Requests without an answer; `broken`: the SDK tries to get the rest. */
  readonly #open = new Map<RequestId, 'waiting' | 'broken'>();

  constructor(options: Omit<FetchOptions, 'onBodyEnd'>) {
    this.#server = options.server;
    const fetch = fetchFor({ ...options, onBodyEnd: (end) => this.#bodyEnded(end) });
    this.#fetch = async (url, init) => {
      try {
        return await fetch(url, init);
      } catch (error) {
        // An SSE connection tells its errors in words alone.
        if (error instanceof McpFailed) this.#refused = error;
        throw error;
      }
    };
    this.#streamable = new StreamableHTTPClientTransport(new URL(this.#server.url), { fetch: this.#fetch });
    this.#streamable.onmessage = (message) => this.#received(message);
    this.#streamable.onerror = (error) => {
      if (/Maximum reconnection attempts/.test(error.message)) this.#fail('broken');
      this.onerror?.(error);
    };
  }

  get sessionId(): string | undefined {
    return this.#streamable.sessionId;
  }

  setProtocolVersion = (version: string): void => {
    (this.#older ?? this.#streamable).setProtocolVersion(version);
  };

  start(): Promise<void> {
    return this.#streamable.start();
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if ('method' in message && 'id' in message) this.#open.set(message.id, 'waiting');
    try {
      if (this.#older) return await this.#older.send(message);
      return await this.#streamable.send(message, resumed(options));
    } catch (error) {
      if (isInitializeRequest(message) && speaksOlder(error)) return await this.#sendOlder(message);
      if ('id' in message && message.id !== undefined) this.#open.delete(message.id);
      throw error;
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#older) await this.#older.close();
    else {
      const over = new Promise((resolve) => setTimeout(resolve, GOODBYE_MS).unref());
      await Promise.race([this.#streamable.terminateSession().catch(() => undefined), over]);
    }
    await this.#streamable.close();
    this.onclose?.();
  }

  async #sendOlder(message: JSONRPCMessage): Promise<void> {
    const older = new SSEClientTransport(new URL(this.#server.url), { fetch: this.#fetch });
    older.onmessage = (received) => this.#received(received);
    this.#refused = undefined;
    try {
      await older.start();
    } catch (error) {
      await older.close();
      throw this.#refused ?? error;
    }
    // It would connect anew by itself, to a server that knows nothing of what was asked before.
    older.onerror = () => void this.close();
    this.#older = older;
    await older.send(message);
  }

  #received(message: JSONRPCMessage): void {
    if (!('method' in message) && 'id' in message && message.id !== undefined) this.#open.delete(message.id);
    this.onmessage?.(message);
  }

  #bodyEnded({ id, resumable }: BodyEnd): void {
    if (id === null || this.#older) return;
    setTimeout(() => {
      if (!this.#open.has(id)) return;
      if (resumable) this.#open.set(id, 'broken');
      else this.#answerFor(id);
    }, GRACE_MS).unref();
  }

  #fail(which: 'broken'): void {
    for (const [id, state] of this.#open) if (state === which) this.#answerFor(id);
  }

  #answerFor(id: RequestId): void {
    if (this.#closed) return;
    const error = { code: ErrorCode.ConnectionClosed, message: 'Connection closed' };
    this.#received({ jsonrpc: '2.0', id, error });
  }
}

const resumed = (options: TransportSendOptions | undefined) => {
  const token = options?.resumptionToken;
  return token === undefined ? undefined : { resumptionToken: token };
};

/** A server that knows only the older transport has no use for a request at this address, and says so in one of these. */
const speaksOlder = (error: unknown): boolean =>
  error instanceof StreamableHTTPError && [400, 404, 405, 406, 415].includes(error.code ?? 0);
