import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionId } from '../../protocol/ids.ts';
import { ExecutionId as ExecutionIdSchema } from '../../protocol/ids.ts';
import {
  type EgressOwner,
  type EgressSession,
  type Gate,
  INSIDE,
  type InsideFile,
  type SessionSecrets,
} from '../egress.ts';
import { Actors } from './actors.ts';
import { DialingAgent } from './agents.ts';
import type { SessionAuthority } from './authority.ts';
import type { Dialer } from './dial.ts';
import { destination, exchange, tell } from './exchange.ts';
import { fieldsOf } from './fields.ts';
import { isAllowed, isBound, parseAuthority, type Target } from './hosts.ts';
import { type Inside, insideEnv, insideFiles, proxyEnv } from './inside.ts';
import { Ledger } from './ledger.ts';
import { Refused } from './refused.ts';
import { type Inner, type TunnelContext, tunnel } from './tunnel.ts';
import { Visit } from './visit.ts';
import { refuse, websocket } from './websocket.ts';

const SETTLE_MS = 200;
/** Connections at the same time. A program that opens more must not take what the editor itself needs. */
const MOST_CONNECTIONS = 512;
/** The user name of what belongs to no call. */
const NOBODY = 'sandbox';

export interface GateParts {
  token: string | undefined;
  secrets: SessionSecrets | undefined;
  dialer: Dialer;
  authority: SessionAuthority;
  /** PEM. */
  trusted: readonly string[];
}

/** The way out of one sandbox: it listens nowhere, connections are handed to it. */
export class SessionGate implements Gate {
  readonly env: Readonly<Record<string, string>>;
  readonly files: readonly InsideFile[];
  readonly #session: EgressSession;
  readonly token: string;
  readonly #inside: Inside;
  readonly #placeholders: Readonly<Record<string, string>>;
  readonly #context: TunnelContext;
  readonly #ledger: Ledger;
  readonly #server: Server;
  readonly #plain: DialingAgent;
  readonly #actors = new Actors();
  readonly #connections = new Set<Duplex>();
  readonly #asked = new Map<string, Promise<boolean>>();
  #closed = false;

  constructor(session: EgressSession, parts: GateParts) {
    const { secrets } = parts;
    this.#session = session;
    this.#inside = session.inside ?? INSIDE;
    this.token = parts.token ?? randomBytes(24).toString('base64url');
    this.#ledger = new Ledger((drafts) => session.record(drafts));
    this.#placeholders = secrets?.env ?? {};
    this.env = { ...this.#placeholders, ...insideEnv(NOBODY, this.token, this.#inside) };
    this.files = insideFiles(parts.authority.certificate, parts.trusted, this.#inside);
    this.#plain = new DialingAgent(({ host, port }) =>
      parts.dialer.tcp({ scheme: 'http', host: (host ?? '').replace(/^\[|\]$/g, ''), port: Number(port) }),
    );
    this.#server = createServer({ requestTimeout: 0, headersTimeout: 60_000, keepAliveTimeout: 120_000 });
    this.#context = {
      ledger: this.#ledger,
      injectables: async () => (await secrets?.injectables()) ?? [],
      onTripped: (what) => session.owner()?.onTripped(what),
      dialer: parts.dialer,
      authority: parts.authority,
      isBound: async (target) => ((await secrets?.injectables()) ?? []).some(({ bound }) => isBound(bound, target)),
      http: this.#server,
      inner: new WeakMap<Duplex, Inner>(),
      actor: (caller) => this.#actors.of(caller),
      visits: new Set(),
    };
    this.#serve();
  }

  envFor(execution: ExecutionId): Readonly<Record<string, string>> {
    return { ...this.#placeholders, ...proxyEnv(execution, this.token, this.#inside) };
  }

  actFor(server: ExecutionId, call: ExecutionId): () => void {
    return this.#actors.begin(server, call);
  }

  accept(connection: Duplex): void {
    connection.on('error', () => connection.destroy());
    if (this.#closed || this.#connections.size >= MOST_CONNECTIONS) {
      connection.destroy();
      return;
    }
    this.#connections.add(connection);
    connection.once('close', () => this.#connections.delete(connection));
    this.#server.emit('connection', connection);
  }

  async settle(execution: ExecutionId): Promise<void> {
    const open = () => [...this.#context.visits].some((visit) => visit.execution === execution);
    // Of a program that has ended the connections end a moment later.
    for (const until = Date.now() + SETTLE_MS; open() && Date.now() < until; ) await sleep(5);
    await this.#ledger.flush();
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const connection of this.#connections) connection.destroy();
    this.#plain.destroy();
    // What is being ended is put down in the ledger as it ends.
    await new Promise((resolve) => setImmediate(resolve));
    await this.#ledger.flush();
  }

  #serve(): void {
    // None of these throws. If one does all the same, its own connection is what ends by it, and not the extension host.
    const guarded = (socket: Duplex, work: Promise<void>) => void work.catch(() => socket.destroy());
    this.#server.on('request', (request, response) => guarded(request.socket, this.#request(request, response)));
    this.#server.on('connect', (request, socket, head) => guarded(socket, this.#connect(request, socket, head)));
    this.#server.on('upgrade', (request, socket, head) => guarded(socket, this.#upgrade(request, socket, head)));
    this.#server.on('clientError', (_error, socket: Duplex & { _httpMessage?: ServerResponse | null }) => {
      // In the middle of an answer nothing else can be said.
      if (!socket.writable || socket._httpMessage?.headersSent) socket.destroy();
      else socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n', () => socket.destroy());
    });
  }

  async #request(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.on('error', () => request.destroy());
    response.on('error', () => response.destroy());
    const inner = this.#context.inner.get(request.socket);
    const caller = inner ? inner.caller : this.#caller(request);
    if (caller === null) {
      response.writeHead(407, { 'proxy-authenticate': 'Basic realm="drover"', 'content-length': 0 });
      response.end();
      return;
    }
    const to = destination(request, inner?.target);
    if (!to) {
      tell(response, this.#misnamed(request, inner?.target, caller));
      return;
    }
    const visit = new Visit(this.#context, { ...to, method: request.method ?? '', caller });
    try {
      // Of a connection that was opened up the host was judged when it was opened.
      if (!inner) await this.#admit(visit, to.path, request);
    } catch (error) {
      tell(response, visit.ended(error));
      return;
    }
    await exchange(visit, to.path, inner?.agent ?? this.#plain, request, response);
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const inner = this.#context.inner.get(socket);
    const caller = inner ? inner.caller : this.#caller(request);
    if (caller === null) {
      refuse(socket, new Refused('unauthenticated', 'the proxy was not given its token'));
      return;
    }
    const to = destination(request, inner?.target);
    if (!to) {
      refuse(socket, this.#misnamed(request, inner?.target, caller));
      return;
    }
    const visit = new Visit(this.#context, { ...to, method: request.method ?? '', caller });
    try {
      if (!inner) await this.#admit(visit, to.path, request);
    } catch (error) {
      refuse(socket, visit.ended(error));
      return;
    }
    await websocket(visit, to.path, inner?.agent ?? this.#plain, request, socket, head);
  }

  async #connect(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const inner = this.#context.inner.get(socket);
    const caller = inner ? inner.caller : this.#caller(request);
    if (caller === null) {
      // The connection can't be used for a second try: the parser has let go of it.
      socket.end(
        'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="drover"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
      );
      return;
    }
    const target = /:\d+$/.test(request.url ?? '') ? parseAuthority(request.url, 'https') : undefined;
    // A tunnel inside one of ours, or one to nowhere.
    if (!target || inner) {
      refuse(socket, this.#misnamed(request, inner?.target, caller));
      return;
    }
    const visit = new Visit(this.#context, { target, method: 'CONNECT', caller });
    let connected = false;
    try {
      await this.#judge(target, visit.execution);
      if (head.length > 0) socket.unshift(head);
      await tunnel(this.#context, visit, socket, () => {
        connected = true;
      });
    } catch (error) {
      const refused = visit.ended(error);
      if (connected) socket.destroy();
      else refuse(socket, refused);
    }
  }

  /** Whose call a request is put down to: undefined is nobody's, null is a stranger. */
  #caller(request: IncomingMessage): ExecutionId | undefined | null {
    const basic = /^Basic\s+([A-Za-z0-9+/=]+)$/i.exec(request.headers['proxy-authorization'] ?? '');
    const [user = '', ...rest] = Buffer.from(basic?.[1] ?? '', 'base64')
      .toString('utf8')
      .split(':');
    const given = Buffer.from(rest.join(':'));
    const token = Buffer.from(this.token);
    if (given.length !== token.length || !timingSafeEqual(given, token)) return null;
    return /^exec_[0-9A-Za-z]{1,40}$/.test(user) ? ExecutionIdSchema.parse(user) : undefined;
  }

  /** Nobody is asked about a host that a placeholder is being carried to. Throws `Refused`. */
  async #admit(visit: Visit, path: string, request: IncomingMessage): Promise<void> {
    const injection = await visit.injection();
    injection.outgoing(path, fieldsOf(request.rawHeaders));
    await this.#judge(visit.target, visit.execution);
  }

  /** Whether the sandbox may go there, asking whoever may say so. Throws `Refused`. */
  async #judge(target: Target, execution: ExecutionId | undefined): Promise<void> {
    const { networking } = this.#session;
    const owner = this.#session.owner();
    if (isAllowed(networking, owner?.mcpHosts ?? [], target)) return;
    if (owner && networking?.type !== 'none' && (await this.#ask(owner, target, execution))) return;
    throw new Refused('not_listed', `${target.host}:${target.port} is not among the hosts this sandbox may reach`);
  }

  /** All that want the same host at the same time wait for one answer. */
  #ask(owner: EgressOwner, target: Target, execution: ExecutionId | undefined): Promise<boolean> {
    const key = `${target.host}:${target.port}`;
    let asked = this.#asked.get(key);
    if (!asked) {
      const wanted = { host: target.host, port: target.port, ...(execution ? { execution } : {}) };
      asked = owner.ask(wanted).finally(() => this.#asked.delete(key));
      this.#asked.set(key, asked);
    }
    return asked;
  }

  #misnamed(request: IncomingMessage, pinned: Target | undefined, caller: ExecutionId | undefined): Refused {
    const named = parseAuthority(request.headers.host, pinned?.scheme ?? 'http');
    const target = pinned ?? named ?? { scheme: 'http', host: '?', port: 0 };
    const visit = new Visit(this.#context, {
      target,
      method: request.method ?? '',
      ...(request.method === 'CONNECT' ? {} : { path: request.url ?? '' }),
      caller,
    });
    return visit.ended(
      new Refused(
        'wrong_name',
        'the request does not say in one way which host it is for; nothing else is served here',
      ),
    );
  }
}
