import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CallToolResultSchema,
  ListToolsResultSchema,
  type Progress,
  type Tool,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { McpOffer } from '../mcp.ts';
import { McpFailed } from '../mcp.ts';
import type { Outcome, ToolContext } from '../tools.ts';
import { onBehalfOf } from './ledger.ts';
import { offered } from './offer.ts';
import { outcomeOfFailure } from './outcome.ts';
import { outcomeOf } from './result.ts';
import { NotSent } from './stdio.ts';
import type { McpTransport } from './transport.ts';

/** Pages of one list: a server that never comes to an end is not followed there. */
const MOST_PAGES = 50;

/** ms. */
export interface Limits {
  /** To connect, and to list. */
  answer: number;
  /** A call may be silent for so long; whatever it says of its progress counts. */
  silence: number;
  /** A call in all. */
  total: number;
}

/** The connection is of no use any more, for the server forgot it or ended: nothing has run, and a new one may help. */
export class SessionGone extends Error {}

/** One connection to one server, from its first word to its end. */
export class Connection {
  readonly #name: string;
  readonly #client: Client;
  readonly #transport: McpTransport;
  readonly #limits: Limits;
  #offer: McpOffer | undefined;
  #changed = false;
  /** Ended, by whichever side. */
  closed = false;
  /** Calls under way. */
  busy = 0;

  private constructor(name: string, client: Client, transport: McpTransport, limits: Limits) {
    this.#name = name;
    this.#transport = transport;
    this.#client = client;
    this.#limits = limits;
  }

  /** Throws what the SDK throws, with the transport closed. `version`: ours, which the server is told. */
  static async open(
    name: string,
    transport: McpTransport,
    limits: Limits,
    version: string,
    onClose: () => void,
  ): Promise<Connection> {
    // Nothing that a server may ask of its client is offered: no sampling, no files, no questions to the person.
    const client = new Client({ name: 'drover', version }, { capabilities: {} });
    const connection = new Connection(name, client, transport, limits);
    client.onclose = () => {
      connection.closed = true;
      onClose();
    };
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      connection.#changed = true;
    });
    try {
      await client.connect(transport, { timeout: limits.answer, maxTotalTimeout: limits.answer });
    } catch (error) {
      await client.close().catch(() => undefined);
      await transport.close().catch(() => undefined);
      // The SDK knows no more than that it is closed.
      throw transport.whyClosed === undefined
        ? error
        : new McpFailed('connection', transport.whyClosed, { cause: error });
    }
    return connection;
  }

  get hasNews(): boolean {
    return this.#changed;
  }

  /** What it offers; asked once, and again when the server says that it has changed. */
  async offer(): Promise<McpOffer> {
    if (this.#offer && !this.#changed) return this.#offer;
    this.#changed = false;
    const tools = this.#client.getServerCapabilities()?.tools ? await this.#list() : [];
    const version = this.#client.getServerVersion();
    const server = version ? { name: version.name, version: version.version } : null;
    const { executionId } = this.#transport;
    this.#offer = { server, ...offered(this.#name, tools), ...(executionId ? { executionId } : {}) };
    return this.#offer;
  }

  async #list(): Promise<Tool[]> {
    const tools: Tool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MOST_PAGES; page += 1) {
      // Not `listTools`: it would make a program of each output schema, and those are the server's.
      const request = { method: 'tools/list' as const, params: cursor === undefined ? {} : { cursor } };
      const listed = await this.#client.request(request, ListToolsResultSchema, { timeout: this.#limits.answer });
      tools.push(...listed.tools);
      cursor = listed.nextCursor;
      if (cursor === undefined) break;
    }
    return tools;
  }

  /** Throws `McpFailed` where the login is refused, and `SessionGone`: in both cases nothing has run. */
  async call(name: string, input: object, context: ToolContext): Promise<Outcome> {
    const { signal, executionId, onOutput } = context;
    const request = { method: 'tools/call' as const, params: { name, arguments: { ...input } } };
    const options = {
      signal,
      timeout: this.#limits.silence,
      maxTotalTimeout: this.#limits.total,
      resetTimeoutOnProgress: true,
      onprogress: (progress: Progress) => onOutput(progressLine(progress)),
    };
    if (this.closed) throw gone(new Error('it has ended'));
    this.busy += 1;
    try {
      const asked = onBehalfOf.run(executionId, () => this.#client.request(request, CallToolResultSchema, options));
      return outcomeOf(await asked);
    } catch (error) {
      if (error instanceof McpFailed) throw error;
      if (error instanceof NotSent || (error instanceof StreamableHTTPError && error.code === 404)) throw gone(error);
      const { whyClosed } = this.#transport;
      return outcomeOfFailure(this.#name, error, { signal, silentMs: this.#limits.silence, whyClosed });
    } finally {
      this.busy -= 1;
    }
  }

  async close(): Promise<void> {
    await this.#client.close().catch(() => undefined);
  }
}

const gone = (error: Error): SessionGone => new SessionGone(error.message, { cause: error });

function progressLine({ progress, total, message }: Progress): string {
  const share = total === undefined ? String(progress) : `${progress} of ${total}`;
  return `${message === undefined ? share : `${message} (${share})`}\n`;
}
