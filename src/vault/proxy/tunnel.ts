import type { Server } from 'node:http';
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  performServerHandshake,
  type ServerHttp2Session,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import type { ExecutionId } from '../../protocol/ids.ts';
import { DialingAgent } from './agents.ts';
import type { SessionAuthority } from './authority.ts';
import type { Dialer } from './dial.ts';
import { exchange2, isFor, tell2 } from './exchange2.ts';
import { type FirstWord, firstWord, namesHost } from './hello.ts';
import { authority, type Target } from './hosts.ts';
import { Refused } from './refused.ts';
import { Visit, type VisitContext } from './visit.ts';

/** What an inner connection is: to whom it was opened, and how its requests get there. */
export interface Inner {
  target: Target;
  agent: DialingAgent;
  caller: ExecutionId | undefined;
}

export interface TunnelContext extends VisitContext {
  dialer: Dialer;
  authority: SessionAuthority;
  /** Whether a credential belongs there: then the connection is opened up. */
  isBound(target: Target): Promise<boolean>;
  /** Takes HTTP/1 connections whose requests go to one place. */
  http: Server;
  inner: WeakMap<Duplex, Inner>;
}

const LAST_WORDS_MS = 2_000;
const HANDSHAKE_MS = 15_000;
const ESTABLISHED = 'HTTP/1.1 200 Connection established\r\n\r\n';

/**
 * One CONNECT to an allowed host. What a credential is bound to is opened up and read request by request; all else is
 * passed on as it is, once its first words name the very host that was asked for. Throws `Refused`, before or after
 * the client was told that it is connected.
 */
export async function tunnel(
  context: TunnelContext,
  visit: Visit,
  socket: Duplex,
  connected: () => void,
): Promise<void> {
  const { target } = visit;
  if (await context.isBound(target)) {
    connected();
    socket.write(ESTABLISHED);
    const first = await firstWord(socket);
    if (first.kind === 'tls') await openUp(context, visit, socket, first);
    else passRequests(context, visit, socket);
    return;
  }
  // The host is reached first: who can't be is told so in place of "connected".
  const { socket: upstream, begin } = await context.dialer.bulk(target);
  upstream.on('error', () => upstream.destroy());
  try {
    connected();
    socket.write(ESTABLISHED);
    const first = await firstWord(socket);
    if (first.kind === 'tls') {
      if (!namesHost(first.serverName, target.host))
        throw new Refused(
          'wrong_name',
          `the connection was opened to ${target.host} but names ${first.serverName ?? 'no host'}`,
        );
      await passOn(visit, socket, upstream, begin);
    } else {
      upstream.destroy();
      passRequests(context, visit, socket);
    }
  } catch (error) {
    upstream.destroy();
    throw error;
  }
}

/** Bytes both ways until both sides have ended. */
function passOn(visit: Visit, socket: Duplex, upstream: Socket, begin: (to: Duplex) => void): Promise<void> {
  if (socket.destroyed || upstream.destroyed) throw new Refused('upstream', 'one side hung up before it began');
  return new Promise((resolve) => {
    socket.once('close', () => {
      visit.bytesOut = upstream.bytesWritten;
      visit.bytesIn = upstream.bytesRead;
      if (socket.readableEnded) later(upstream);
      else upstream.destroy();
      visit.allowed();
      resolve();
    });
    upstream.once('close', () => {
      socket.resume();
      // A slow client has not read yet all that came before the host hung up.
      if (!upstream.readableEnded || socket.writableFinished) socket.destroy();
      else socket.once('finish', () => socket.destroy());
    });
    socket.pipe(upstream);
    begin(socket);
  });
}

/** Ends it when its last words, such as the end of a websocket, have had time to get out. */
const later = (upstream: Socket): void => void setTimeout(() => upstream.destroy(), LAST_WORDS_MS).unref();

/** HTTP in a tunnel: each request is looked at as if it had come without one. */
function passRequests(context: TunnelContext, visit: Visit, socket: Duplex): void {
  const target: Target = { ...visit.target, scheme: 'http' };
  const agent = new DialingAgent(() => context.dialer.tcp(target), 1);
  handOver(context, visit, socket, { target, agent, caller: visit.caller });
}

function handOver(context: TunnelContext, visit: Visit, socket: Duplex, inner: Inner): void {
  visit.opened();
  context.inner.set(socket, inner);
  socket.once('close', () => inner.agent.destroy());
  context.http.emit('connection', socket);
}

/** TLS is ended here: the host's certificate is checked on the far side, and the client is shown one of ours. */
async function openUp(
  context: TunnelContext,
  visit: Visit,
  socket: Duplex,
  first: Extract<FirstWord, { kind: 'tls' }>,
): Promise<void> {
  const { target } = visit;
  if (!namesHost(first.serverName, target.host))
    throw new Refused(
      'wrong_name',
      `the connection was opened to ${target.host} but names ${first.serverName ?? 'no host'}`,
    );
  const secureContext = context.authority.contextFor(target.host);
  // Both sides speak the same protocol: it is the host that chooses from what the client offers.
  const upstream = await context.dialer.tls(
    target,
    first.alpn.filter((one) => one === 'h2' || one === 'http/1.1'),
  );
  upstream.on('error', () => upstream.destroy());
  // Of who hung up while the host was reached no event would tell.
  if (socket.destroyed) {
    upstream.destroy();
    throw new Refused('upstream', 'whoever asked hung up');
  }
  const chosen = upstream.alpnProtocol || undefined;
  const client = new TLSSocket(socket, {
    isServer: true,
    secureContext,
    ...(chosen ? { ALPNProtocols: [chosen] } : {}),
  });
  client.on('error', () => client.destroy());
  socket.once('close', () => {
    client.destroy();
    later(upstream);
  });
  const timer = setTimeout(() => client.destroy(), HANDSHAKE_MS);
  await new Promise<void>((resolve, reject) => {
    client.once('secure', resolve);
    client.once('close', () => reject(new Refused('not_http', 'the client ended the TLS handshake')));
  }).finally(() => clearTimeout(timer));
  // Only a TLS server of Node's own would clear this flag, and HTTP/2 waits for it.
  Object.assign(client, { secureConnecting: false });
  if (chosen === 'h2') {
    speakHttp2(context, visit, client, upstream);
    return;
  }
  let ready: TLSSocket | undefined = upstream;
  const agent = new DialingAgent(async () => {
    const one = ready;
    ready = undefined;
    return one && !one.destroyed ? one : await context.dialer.tls(target, ['http/1.1']);
  }, 1);
  handOver(context, visit, client, { target, agent, caller: visit.caller });
}

function speakHttp2(context: TunnelContext, visit: Visit, client: TLSSocket, first: TLSSocket): void {
  const { target, caller } = visit;
  visit.opened();
  let over = false;
  const speakOver = (socket: TLSSocket): ClientHttp2Session => {
    if (over || socket.destroyed) {
      socket.destroy();
      throw new Refused('upstream', 'one side hung up');
    }
    const settings = { enablePush: false };
    return quiet(connectHttp2(`https://${authority(target)}`, { createConnection: () => socket, settings }));
  };
  let upstream: Promise<ClientHttp2Session> = Promise.resolve(first).then(speakOver);
  upstream.catch(() => undefined);
  const session = async (): Promise<ClientHttp2Session> => {
    const asked = upstream;
    const current = await asked.catch(() => undefined);
    if (current && !current.destroyed && !current.closed) return current;
    // The first of those who find it gone has a new one made, for all of them.
    if (upstream === asked) {
      upstream = context.dialer.tls(target, ['h2']).then(speakOver);
      upstream.catch(() => undefined);
    }
    return await upstream;
  };
  const server = quiet(performServerHandshake(client));
  server.on('close', () => {
    over = true;
    void upstream.then((one) => one.destroy()).catch(() => undefined);
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => stream.destroy());
    const inner = new Visit(context, {
      target,
      method: headers[':method'] ?? '',
      path: headers[':path'] ?? '/',
      caller,
    });
    if (isFor(headers, target)) void exchange2(inner, session, stream, headers);
    else tell2(stream, inner.ended(new Refused('wrong_name', `the request names another host than ${target.host}`)));
  });
}

/** A session that breaks off has told its streams: there is nobody else to tell. */
function quiet<S extends ClientHttp2Session | ServerHttp2Session>(session: S): S {
  session.on('error', () => session.destroy());
  return session;
}
