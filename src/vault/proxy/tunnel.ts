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
  return new Promise((resolve) => {
    const end = () => {
      visit.bytesOut = upstream.bytesWritten;
      visit.bytesIn = upstream.bytesRead;
      socket.destroy();
      upstream.destroy();
      visit.allowed();
      resolve();
    };
    socket.once('close', end);
    upstream.once('close', end);
    socket.pipe(upstream);
    begin(socket);
  });
}

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
  // Both sides speak the same protocol: it is the host that chooses from what the client offers.
  const upstream = await context.dialer.tls(
    target,
    first.alpn.filter((one) => one === 'h2' || one === 'http/1.1'),
  );
  const chosen = upstream.alpnProtocol || undefined;
  const client = new TLSSocket(socket, {
    isServer: true,
    secureContext: context.authority.contextFor(target.host),
    ...(chosen ? { ALPNProtocols: [chosen] } : {}),
  });
  client.on('error', () => client.destroy());
  upstream.on('error', () => upstream.destroy());
  socket.once('close', () => {
    client.destroy();
    // Last words, such as the end of a websocket, may still be on their way.
    setTimeout(() => upstream.destroy(), LAST_WORDS_MS).unref();
  });
  await new Promise<void>((resolve, reject) => {
    client.once('secure', resolve);
    client.once('close', () => reject(new Refused('not_http', 'the client ended the TLS handshake')));
  });
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
  const url = `https://${authority(target)}`;
  const settings = { enablePush: false };
  let upstream: Promise<ClientHttp2Session> = Promise.resolve(
    quiet(connectHttp2(url, { createConnection: () => first, settings })),
  );
  const session = async (): Promise<ClientHttp2Session> => {
    const current = await upstream.catch(() => undefined);
    if (current && !current.destroyed && !current.closed) return current;
    upstream = context.dialer
      .tls(target, ['h2'])
      .then((socket) => quiet(connectHttp2(url, { createConnection: () => socket, settings })));
    return await upstream;
  };
  const server = quiet(performServerHandshake(client));
  server.on('close', () => {
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
