import type { Agent, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import { endToEnd, fieldsOf, valuesOf, without } from './fields.ts';
import { authority } from './hosts.ts';
import type { Injection } from './injection.ts';
import { Refused } from './refused.ts';
import { told } from './told.ts';
import type { Visit } from './visit.ts';

const OPEN_MS = 20_000;
/** A message beyond it ends the connection. Bytes. */
const LARGEST = 64 * 1024 * 1024;
/** Of why it was closed, bytes. */
const LONGEST_REASON = 123;
/** So much may wait for a slow reader before its sender is made to wait. Bytes. */
const WAITING = 1024 * 1024;

/** The subprotocol the host agreed to, as the client may hear of it, until it has. */
const agreed = new WeakMap<IncomingMessage, string>();

/** Messages are not compressed on the way: each is looked through as it is. */
const doors = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: LARGEST,
  handleProtocols: (_offered, request) => agreed.get(request) || false,
});

/** Sends a websocket on: first to the host, and only if that agrees is the client answered. Never throws. */
export async function websocket(
  visit: Visit,
  path: string,
  agent: Agent,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  socket.on('error', () => socket.destroy());
  try {
    if (request.headers.upgrade?.toLowerCase() !== 'websocket')
      throw new Refused('not_http', 'this kind of upgrade is not passed on');
    const injection = await visit.injection();
    const upstream = await openUpstream(visit, path, agent, request, injection);
    visit.status = 101;
    agreed.set(request, injection.cleanedText(upstream.protocol));
    let begun = false;
    doors.handleUpgrade(request, socket, head, (client) => {
      begun = true;
      relay(visit, injection, client, upstream);
    });
    if (begun) return;
    // It hung up meanwhile, or what it asked for was no websocket: then it has been told so.
    upstream.terminate();
    visit.ended(new Refused('not_http', 'the client did not keep to the websocket protocol'));
  } catch (error) {
    refuse(socket, visit.ended(error));
  }
}

/** An answer to a request that was to become something else than HTTP. */
export function refuse(socket: Duplex, refused: Refused): void {
  const body = told(refused);
  socket.end(
    `HTTP/1.1 ${refused.status} Refused\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nX-Drover-Refused: ${refused.reason}\r\nConnection: close\r\n\r\n${body}`,
  );
}

function openUpstream(
  visit: Visit,
  path: string,
  agent: Agent,
  request: IncomingMessage,
  injection: Injection,
): Promise<WebSocket> {
  const { fields } = injection.outgoing(path, endToEnd(fieldsOf(request.rawHeaders)));
  const own = ['sec-websocket-key', 'sec-websocket-version', 'sec-websocket-extensions', 'sec-websocket-protocol'];
  const headers: Record<string, string> = {};
  for (const [name, value] of without(fields, ...own, 'host', 'accept-encoding')) headers[name] = value;
  // Some services take a token in this place.
  const protocols = valuesOf(fields, 'sec-websocket-protocol').flatMap((value) =>
    value.split(',').map((one) => one.trim()),
  );
  const { scheme, host, port } = visit.target;
  const name = host.includes(':') ? `[${host}]` : host;
  const upstream = new WebSocket(
    // The agent decides what the connection is; a scheme of `wss` would make it TLS twice.
    `ws://${name}:${port}${path}`,
    protocols.filter(Boolean),
    {
      agent,
      headers: { ...headers, Host: authority({ scheme, host, port }) },
      perMessageDeflate: false,
      maxPayload: LARGEST,
      handshakeTimeout: OPEN_MS,
      followRedirects: false,
    },
  );
  return new Promise((resolve, reject) => {
    upstream.on('open', () => {
      upstream.pause();
      resolve(upstream);
    });
    upstream.on('error', (error) => reject(error));
    upstream.on('unexpected-response', (_request, response) => {
      visit.status = response.statusCode ?? null;
      upstream.terminate();
      reject(new Refused('upstream', `${host} refused the websocket with status ${response.statusCode}`));
    });
  });
}

function relay(visit: Visit, injection: Injection, client: WebSocket, upstream: WebSocket): void {
  const stop = (error: unknown) => {
    visit.ended(error);
    client.close(1008);
    upstream.close(1001);
  };
  forward(client, upstream, stop, {
    message: (data, binary) => {
      visit.bytesOut += data.byteLength;
      return injection.outgoingMessage(data, binary);
    },
    reason: (reason) => injection.outgoingMessage(reason, true),
  });
  forward(upstream, client, stop, {
    message: (data) => {
      visit.bytesIn += data.byteLength;
      return injection.incomingMessage(data);
    },
    reason: (reason) => injection.incomingMessage(reason),
  });
  let open = 2;
  for (const side of [client, upstream]) {
    side.on('error', () => side.terminate());
    side.on('close', () => {
      if (--open === 0) visit.allowed();
    });
  }
  upstream.resume();
}

function forward(
  from: WebSocket,
  to: WebSocket,
  stop: (error: unknown) => void,
  change: { message: (data: Buffer, binary: boolean) => Buffer; reason: (reason: Buffer) => Buffer },
): void {
  from.on('message', (data, binary) => {
    try {
      to.send(change.message(bytesOf(data), binary), { binary }, () => {
        if (from.isPaused && to.bufferedAmount < WAITING) from.resume();
      });
    } catch (error) {
      stop(error);
    }
    if (to.bufferedAmount >= WAITING) from.pause();
  });
  from.on('close', (code, reason) => {
    // 1005 and 1006 say that there was no code: they are never sent.
    if (code === 1005) to.close();
    else if (code === 1006 || code === 1015) to.terminate();
    else {
      try {
        to.close(code, change.reason(reason).subarray(0, LONGEST_REASON));
      } catch (error) {
        stop(error);
      }
    }
  });
}

function bytesOf(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}
