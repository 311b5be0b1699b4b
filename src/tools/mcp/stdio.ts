import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  isJSONRPCErrorResponse,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  JSONRPCMessageSchema,
  type RequestId,
} from '@modelcontextprotocol/sdk/types.js';
import { DroverError, messageOf } from '../../protocol/errors.ts';
import { type ExecutionId, mint } from '../../protocol/ids.ts';
import type { McpStdioServer } from '../../protocol/mcp.ts';
import { type LivingProcess, type ProcessEnd, SandboxLost } from '../../sandbox/sandbox.ts';
import { onBehalfOf } from './ledger.ts';
import { Lines, LineTooLong } from './lines.ts';
import type { McpConnector } from './transport.ts';

/** Bytes of one message. */
const LINE_MAX = 16 << 20;
/** ms from the end of a program's input to its own. */
const END_MS = 1_000;
/** Characters of what a server said beside the protocol that are told when it ends. */
const TOLD = 600;
/** What the server acts for: around these the sandbox is looked after as around a command. */
const ACTS = new Set(['tools/call', 'resources/read', 'prompts/get']);

/** Servers that run inside the session's sandbox, with what every command there has: placeholders and its way out. */
export function stdioConnector(): McpConnector<McpStdioServer> {
  return {
    async open(server, { sandbox, signal }) {
      const { command, args = [], env } = server;
      const request = { executionId: mint.execution(), argv: [command, ...args], ...(env ? { env } : {}) };
      // One that died unnoticed is found to be gone by this; nothing has been done in it.
      const process = await (await sandbox()).open(request).catch(async (error: unknown) => {
        if (!(error instanceof SandboxLost)) throw error;
        return await (await sandbox()).open(request);
      });
      const transport = new StdioTransport(server.name, process);
      if (signal.aborted) await transport.close();
      signal.throwIfAborted();
      return transport;
    },
  };
}

/**
 * The protocol's own way to speak to a program: a message a line, over its input and output. A line that is no message
 * is passed over. When the program ends, `onerror` has the reason in one sentence, and `onclose` follows.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport['onmessage'];
  readonly #name: string;
  readonly #process: LivingProcess;
  /** Requests of ours that the server acts for now: told when they are answered, or never will be. */
  readonly #acting = new Map<RequestId, { over(): void; done: Promise<void> }>();
  /** What it printed that is no message, the last of it. */
  #stray = '';
  #heard = false;
  #refused: string | undefined;
  #closed: Promise<void> | undefined;

  constructor(name: string, process: LivingProcess) {
    this.#name = name;
    this.#process = process;
  }

  /** What the server's connections are put down to in the ledger. */
  get executionId(): ExecutionId {
    return this.#process.executionId;
  }

  /** Why it is closed, in one sentence; undefined while it is open. */
  get whyClosed(): string | undefined {
    const { end } = this.#process;
    return end && this.#why(end);
  }

  async start(): Promise<void> {
    const lines = new Lines(LINE_MAX);
    this.#process.stdout.on('data', (chunk: Buffer) => {
      if (this.#refused !== undefined) return;
      try {
        for (const line of lines.push(chunk)) this.#line(line);
      } catch (error) {
        if (!(error instanceof LineTooLong)) throw error;
        this.#refused = `sent a message of more than ${LINE_MAX >> 20} MiB, which is not taken, and was ended`;
        void this.#process.stop();
      }
    });
    // Its last words are read before its end is told.
    this.#closed = Promise.all([this.#process.ended, finished(this.#process)]).then(([end]) => this.#ended(end));
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (isJSONRPCRequest(message) && ACTS.has(message.method)) return await this.#act(message.id, message);
    if ('method' in message && message.method === 'notifications/cancelled') {
      const id = message.params?.requestId;
      if (typeof id === 'string' || typeof id === 'number') this.#over(id);
    }
    await this.#write(message);
  }

  async close(): Promise<void> {
    await this.#process.stop();
    await this.#closed;
  }

  /** Resolves when the request was sent; what is done after a call is done when its answer is here, before it is told. */
  async #act(id: RequestId, message: JSONRPCMessage): Promise<void> {
    const sent = Promise.withResolvers<void>();
    const answered = Promise.withResolvers<void>();
    const done = this.#process.during(async () => {
      await this.#write(message);
      sent.resolve();
      await Promise.race([answered.promise, this.#process.ended]);
    }, onBehalfOf.getStore());
    const over = done.catch((error: unknown) => {
      this.#acting.delete(id);
      const { end } = this.#process;
      const told = end ? new NotSent(this.#why(end)) : error;
      sent.reject(told);
      // One that was sent is answered, whatever became of what comes after.
      this.onerror?.(told instanceof Error ? told : new Error(messageOf(told)));
    });
    this.#acting.set(id, { over: answered.resolve, done: over });
    await sent.promise;
  }

  async #write(message: JSONRPCMessage): Promise<void> {
    const { stdin, end, ended } = this.#process;
    if (end) throw new NotSent(this.#why(end));
    const written = Promise.withResolvers<Error | undefined | null>();
    stdin.write(`${JSON.stringify(message)}\n`, written.resolve);
    if (!(await written.promise)) return;
    // Its end follows, unless it has closed its input alone.
    const how = await Promise.race([ended, sleep(END_MS, undefined, { ref: false })]);
    throw new NotSent(how ? this.#why(how) : `The MCP server “${this.#name}” takes nothing in any more.`);
  }

  #line(line: Buffer): void {
    const text = line.toString('utf8');
    const message = parsed(text);
    if (!message && text.trim() === '') return;
    if (!message) {
      this.#stray = `${this.#stray}${text}\n`.slice(-TOLD);
      return;
    }
    this.#heard = true;
    const answers = isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message);
    const done = answers && message.id !== undefined ? this.#over(message.id) : undefined;
    if (done) void done.then(() => this.onmessage?.(message));
    else this.onmessage?.(message);
  }

  /** The server acts for a request no more. Resolves when what is done after it is done; undefined: it does not act. */
  #over(id: RequestId): Promise<void> | undefined {
    const acting = this.#acting.get(id);
    this.#acting.delete(id);
    acting?.over();
    return acting?.done;
  }

  async #ended(end: ProcessEnd): Promise<void> {
    // An answer that came in time is told before the end, and so is who asked too late.
    await Promise.all([...this.#acting.values()].map(({ done }) => done));
    await turn();
    if (end.how !== 'stopped' || this.#refused !== undefined) this.onerror?.(new DroverError('tool', this.#why(end)));
    this.onclose?.();
  }

  /** One sentence, and what the server said itself. */
  #why({ how, exitCode, reason }: ProcessEnd): string {
    const server = `The MCP server “${this.#name}”`;
    if (this.#refused !== undefined) return `${server} ${this.#refused}.`;
    if (how === 'stopped') return `${server} was ended: ${reason}.`;
    if (how === 'lost') return `${server} is gone: ${reason}.`;
    const early = this.#heard
      ? 'ended'
      : exitCode === 127
        ? 'could not be started: it ended'
        : 'ended before it said anything,';
    const said = [this.#process.stderr(), this.#stray]
      .map((one) => one.trim().slice(-TOLD))
      .filter((one) => one !== '');
    return `${server} ${early} with exit code ${exitCode}${said.length > 0 ? `. Its last words:\n${said.join('\n')}` : ', and said nothing.'}`;
  }
}

/** The server has ended before it was asked, so nothing was done; a new one may be asked. `message` says why. */
export class NotSent extends DroverError {
  constructor(message: string) {
    super('tool', message);
  }
}

function parsed(text: string): JSONRPCMessage | undefined {
  if (!text.trimStart().startsWith('{')) return undefined;
  try {
    return JSONRPCMessageSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

const finished = ({ stdout }: LivingProcess): Promise<void> =>
  new Promise((resolve) => {
    if (stdout.readableEnded || stdout.destroyed) resolve();
    else stdout.once('close', resolve).once('end', resolve);
  });
