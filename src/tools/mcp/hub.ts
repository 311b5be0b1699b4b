import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { VaultId } from '../../protocol/ids.ts';
import type { McpServer, McpStdioServer } from '../../protocol/mcp.ts';
import type { McpTokens } from '../../protocol/mcp-tokens.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { type Mcp, McpFailed, type McpOffer, type McpUse } from '../mcp.ts';
import type { Outcome, ToolContext } from '../tools.ts';
import { Connection, type Limits, SessionGone } from './connection.ts';
import { HttpTransport } from './http.ts';
import { ledgerDraft, onBehalfOf } from './ledger.ts';
import { why } from './outcome.ts';
import type { McpConnector, McpTransport } from './transport.ts';

/** ms a connection nobody uses is kept: the next turn of its session finds it, and need not wait. */
const IDLE_MS = 10 * 60_000;
const LIMITS: Limits = { answer: 30_000, silence: 4 * 60_000, total: 60 * 60_000 };
/** A program may first be fetched, by what starts it. */
const STDIO_ANSWER_MS = 2 * 60_000;

export interface HubOptions {
  /** Of Drover, for the servers. */
  version: string;
  /** The way to servers that run in the sandbox. Absent: there is none. */
  stdio?: McpConnector<McpStdioServer>;
  /** What the vaults of a session have for its servers. Absent: nothing. */
  tokens?: (vaults: readonly VaultId[]) => McpTokens;
  /** Default: Node's. */
  fetch?: FetchLike;
  limits?: Partial<Limits>;
}

export const createMcp = (options: HubOptions): Mcp => new Hub(options);

/** Connections to servers: one for each server of each thread, made when it is wanted, kept while it is used. */
class Hub implements Mcp {
  readonly #options: HubOptions;
  readonly #connections = new Map<string, Promise<Connection>>();
  readonly #living = new Map<string, Connection>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  /** Who uses a connection now: it may outlive the harness it was made for. */
  readonly #uses = new Map<string, McpUse>();
  #disposed = false;

  constructor(options: HubOptions) {
    this.#options = options;
  }

  async offer(use: McpUse, server: McpServer, signal: AbortSignal): Promise<McpOffer> {
    const asked = this.#connect(use, server).then((connection) => connection.offer());
    try {
      return await orAbort(asked, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      await this.#drop(keyOf(use, server));
      throw notReached(server, error);
    }
  }

  hasNews(use: McpUse, server: McpServer): boolean {
    return this.#living.get(keyOf(use, server))?.hasNews ?? false;
  }

  async call(use: McpUse, server: McpServer, tool: string, input: object, context: ToolContext): Promise<Outcome> {
    for (let attempt = 1; ; attempt += 1) {
      const connection = await this.#connected(use, server, context.signal);
      try {
        return await connection.call(tool, input, context);
      } catch (error) {
        await this.#drop(keyOf(use, server));
        if (!(error instanceof SessionGone)) throw error;
        if (attempt > 1) throw notReached(server, error);
      } finally {
        this.#used(keyOf(use, server));
      }
    }
  }

  async #connected(use: McpUse, server: McpServer, signal: AbortSignal): Promise<Connection> {
    try {
      return await orAbort(this.#connect(use, server), signal);
    } catch (error) {
      if (signal.aborted) throw error;
      throw notReached(server, error);
    }
  }

  /** Who waits for a connection may give up; it is made all the same, for who wants it next. */
  #connect(use: McpUse, server: McpServer): Promise<Connection> {
    if (this.#disposed) return Promise.reject(new Error('Drover is closing'));
    const key = keyOf(use, server);
    this.#uses.set(key, use);
    const made = this.#connections.get(key) ?? this.#open(key, use, server);
    this.#connections.set(key, made);
    this.#used(key);
    made.catch(() => this.#connections.get(key) === made && this.#connections.delete(key));
    return made;
  }

  async #open(key: string, use: McpUse, server: McpServer): Promise<Connection> {
    const held: Sandbox[] = [];
    let mine: Connection | undefined;
    const onClose = () => {
      for (const sandbox of held.splice(0)) this.#now(use, server).release(sandbox);
      if (mine && this.#living.get(key) === mine) this.#forget(key);
    };
    try {
      const transport = await this.#transport(use, server, held);
      const limits = {
        ...LIMITS,
        ...(server.type === 'stdio' ? { answer: STDIO_ANSWER_MS } : {}),
        ...this.#options.limits,
      };
      mine = await Connection.open(server.name, transport, limits, this.#options.version, onClose);
    } catch (error) {
      onClose();
      throw error;
    }
    if (this.#disposed) await mine.close();
    else this.#living.set(key, mine);
    return mine;
  }

  #transport(use: McpUse, server: McpServer, held: Sandbox[]): Promise<McpTransport> {
    const { stdio, tokens, fetch } = this.#options;
    if (server.type === 'url') {
      const onExchange: ConstructorParameters<typeof HttpTransport>[0]['onExchange'] = (exchange) =>
        // When the session rests, nobody keeps its log; then only what was said for the server's sake is not told.
        void this.#now(use, server)
          .record([ledgerDraft(server.name, exchange, onBehalfOf.getStore())])
          .catch(() => undefined);
      const of = { server, tokens: tokens?.(use.vaultIds), fetch, onExchange };
      return Promise.resolve(new HttpTransport(of));
    }
    if (!stdio) throw new Error('programs can’t be started here');
    const { signal } = new AbortController();
    const sandbox = async () => {
      const one = await use.sandbox(signal);
      held.push(one);
      return one;
    };
    return stdio.open(server, { session: use.session, thread: use.thread, signal, sandbox });
  }

  #now(use: McpUse, server: McpServer): McpUse {
    return this.#uses.get(keyOf(use, server)) ?? use;
  }

  async #drop(key: string): Promise<void> {
    const connection = this.#living.get(key);
    this.#forget(key);
    await connection?.close();
  }

  #forget(key: string): void {
    this.#living.delete(key);
    this.#connections.delete(key);
    this.#uses.delete(key);
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
  }

  /** Closed when it was not used for a while; not while it is. */
  #used(key: string): void {
    clearTimeout(this.#timers.get(key));
    if (!this.#connections.has(key)) return;
    const look = () => (this.#living.get(key)?.busy ? this.#used(key) : void this.#drop(key));
    this.#timers.set(key, setTimeout(look, IDLE_MS).unref());
  }

  async dispose(): Promise<void> {
    this.#disposed = true;
    await Promise.all([...this.#living.keys()].map((key) => this.#drop(key)));
  }
}

/** The server of a session's agent does not change under its name. */
const keyOf = (use: McpUse, server: McpServer): string => `${use.session} ${use.thread} ${server.name}`;

function notReached(server: McpServer, error: unknown): McpFailed {
  if (error instanceof McpFailed) return error;
  const what = server.type === 'url' ? `could not be reached at ${new URL(server.url).host}` : 'could not be started';
  return new McpFailed('connection', `MCP server "${server.name}" ${what}: ${why(error).replace(/\.$/, '')}`, {
    cause: error,
  });
}

function orAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason);
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  work.catch(() => undefined);
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', onAbort));
}
