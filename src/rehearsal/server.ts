import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { messageOf } from '../protocol/errors.ts';
import { ApiError } from './api-error.ts';
import { type Fault, type FaultPlan, Faults } from './faults.ts';
import { Messages } from './messages.ts';
import { describeModel, REHEARSAL_MODEL, rehearsalModel } from './models.ts';
import { idOf } from './reply.ts';
import { type Delays, sendJson } from './send.ts';

export interface RehearsalOptions {
  /** 0 or absent: any free one. */
  port?: number;
  host?: '127.0.0.1';
  /** ms before the first content, and before each further piece. Default: none. */
  delays?: Delays;
  faults?: FaultPlan;
  /** Ids of the models it answers for. Default: `drover-rehearsal` alone. */
  models?: readonly string[];
  /** The only key it accepts. Default: any, or none. */
  apiKey?: string;
  /** The piece to play where no marker names one. */
  scenario?: string;
}

/** A request as it came in. The key is not kept. */
export interface RecordedRequest {
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  /** Parsed JSON, null if there was none. */
  body: unknown;
  /** ms since 1970. */
  at: number;
}

export interface Rehearsal {
  /** The base URL for a client. */
  url: string;
  port: number;
  /** The latest requests, oldest first. */
  requests: readonly RecordedRequest[];
  /** Orders faults for the coming requests for a reply, one each. */
  fail(...faults: Fault[]): void;
  close(): Promise<void>;
  /** `close()` for owners that do not wait. */
  dispose(): void;
}

/** Requests kept for inspection. */
const KEPT = 500;
/** The API's limit on a body. */
const MOST_BYTES = 32 * 1024 * 1024;
const SECRET = new Set(['x-api-key', 'authorization']);

/**
 * Starts a server on the loopback interface that speaks the Messages API and plays pieces instead of asking a model.
 * Each reply is computed from its request alone, so another server on another port can go on with the conversation.
 */
export async function startRehearsal(options: RehearsalOptions = {}): Promise<Rehearsal> {
  const requests: RecordedRequest[] = [];
  const faults = new Faults(options.faults);
  const service = new Service(options, faults, requests);
  const server = createServer((request, response) => void service.serve(request, response));
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, options.host ?? '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    fail: (...ordered) => faults.order(ordered),
    close,
    dispose: () => void close(),
  };
}

class Service {
  readonly #options: RehearsalOptions;
  readonly #requests: RecordedRequest[];
  readonly #models: readonly string[];
  readonly #messages: Messages;
  #served = 0;

  constructor(options: RehearsalOptions, faults: Faults, requests: RecordedRequest[]) {
    this.#options = options;
    this.#requests = requests;
    this.#models = options.models ?? [REHEARSAL_MODEL];
    this.#messages = new Messages({
      faults,
      model: (id) => this.#model(id),
      delays: options.delays ?? { firstTokenMs: 0, perChunkMs: 0 },
      scenario: options.scenario,
    });
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#served += 1;
    const requestId = idOf('req', `${this.#served} ${Date.now()}`);
    response.setHeader('request-id', requestId);
    try {
      await this.#route(request, response);
    } catch (error) {
      if (response.headersSent || response.destroyed) return void response.destroy();
      const answer = error instanceof ApiError ? error : new ApiError(500, messageOf(error));
      for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value);
      sendJson(response, answer.status, answer.body(requestId));
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const body = await this.#read(request, pathname);
    this.#authorize(request);
    const route = `${request.method} ${pathname}`;
    if (route === 'POST /v1/messages') return await this.#messages.reply(body, request, response);
    if (route === 'POST /v1/messages/count_tokens') return sendJson(response, 200, this.#messages.count(body));
    if (route === 'GET /v1/models') return sendJson(response, 200, this.#list());
    const [, id] = /^GET \/v1\/models\/(.+)$/.exec(route) ?? [];
    if (id) return sendJson(response, 200, describeModel(this.#model(decodeURIComponent(id))));
    throw new ApiError(404, `Not found: ${route}`);
  }

  async #read(request: IncomingMessage, path: string): Promise<unknown> {
    const text = await textOf(request);
    let body: unknown = null;
    let problem: string | undefined;
    try {
      if (text) body = JSON.parse(text);
    } catch (error) {
      problem = `The request body is not valid JSON: ${messageOf(error)}`;
    }
    this.#requests.push({ method: request.method ?? '', path, headers: headersOf(request), body, at: Date.now() });
    if (this.#requests.length > KEPT) this.#requests.shift();
    if (problem) throw new ApiError(400, problem);
    return body;
  }

  #authorize(request: IncomingMessage): void {
    const { apiKey } = this.#options;
    if (apiKey !== undefined && keyOf(request) !== apiKey) throw new ApiError(401, 'invalid x-api-key');
    if (!request.headers['anthropic-version']) throw new ApiError(400, 'anthropic-version: header is required');
  }

  #model(id: string) {
    if (!this.#models.includes(id)) throw new ApiError(404, `model: ${id}`);
    return rehearsalModel(id);
  }

  #list() {
    const data = this.#models.map((id) => describeModel(rehearsalModel(id)));
    return { data, has_more: false, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw new ApiError(413, 'Request exceeds the maximum size');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The key comes in one of two headers: the SDK sends it as a bearer token, many other clients as `x-api-key`. */
const keyOf = ({ headers }: IncomingMessage): string =>
  String(headers['x-api-key'] ?? headers.authorization?.replace(/^Bearer /, ''));

const headersOf = (request: IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(request.headers)
      .filter(([name]) => !SECRET.has(name))
      .map(([name, value]) => [name, String(value)]),
  );
