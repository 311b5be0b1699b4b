import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { Bound } from '../../src/vault/egress.ts';
import { proxyLogin, secure, tunnel } from './client.ts';
import { type Handler, injectable, makeStage, type Stage, type StageOptions } from './stage.ts';

/*
 * What hostile or unlucky peers do at each stage. An error that nobody takes would end the extension host: here it fails
 * the run.
 */

let stage: Stage | undefined;
const servers: Server[] = [];
const sockets = new Set<Socket>();

afterEach(async () => {
  await stage?.close();
  stage = undefined;
  for (const socket of sockets) socket.destroy();
  for (const server of servers.splice(0)) server.close();
});

/** A host, or a proxy above us, that answers by hand. */
async function byHand(onSocket: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => socket.destroy()));
    onSocket(socket);
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** A stage whose `api.test` has a credential. */
async function open(handler: Handler, onSocket?: (client: WebSocket) => void, more: StageOptions = {}) {
  const bound: Bound[] = [];
  stage = await makeStage({ networking: { type: 'unrestricted' }, injectables: [{ ...injectable(), bound }], ...more });
  const port = await stage.secure(handler, onSocket);
  bound.push({ host: 'api.test', port });
  return { stage, port, placeholder: injectable().placeholder };
}

const nothing = (_request: IncomingMessage, response: ServerResponse) => void response.end();

/** The first words of a TLS client. A host need not be one that could answer them. */
async function greeting(servername: string): Promise<Buffer> {
  const heard = Promise.withResolvers<Buffer>();
  const port = await byHand((socket) => socket.once('data', (bytes) => heard.resolve(bytes as Buffer)));
  const client = connectTls({ port, host: '127.0.0.1', servername });
  client.on('error', () => undefined);
  return await heard.promise.finally(() => client.destroy());
}

/** All that a client is answered until the connection ends. */
async function said(of: Stage, request: string): Promise<string> {
  const socket = connect(of.port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(request);
  let text = '';
  for await (const chunk of socket) text += (chunk as Buffer).toString('latin1');
  return text;
}

const get = (of: Stage, host: string): string =>
  `GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\n${proxyLogin(of)}Connection: close\r\n\r\n`;

describe('a host', () => {
  it.each([
    [
      'a reason that may not be sent',
      'HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nok',
      /^HTTP\/1\.1 (200 O\?K|502)/,
    ],
    ['a status that is none', 'HTTP/1.1 099 No\r\nContent-Length: 0\r\n\r\n', /^HTTP\/1\.1 502/],
    [
      'another protocol without being asked',
      'HTTP/1.1 101 Yes\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
      /^HTTP\/1\.1 502/,
    ],
    ['half an answer', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal', /^(HTTP\/1\.1 200[\s\S]*hal)?$/],
    ['what is no HTTP', '\0\0\0', /^HTTP\/1\.1 502/],
  ])('that answers with %s ends its own request alone', async (_what, answer, expected) => {
    stage = await makeStage({ networking: { type: 'unrestricted' } });
    const port = await byHand((socket) => socket.once('data', () => socket.end(answer, 'latin1')));
    expect(await said(stage, get(stage, `raw.test:${port}`))).toMatch(expected);
    expect(await said(stage, get(stage, `raw.test:${port}`))).toMatch(expected);
  });

  it('that hangs up gets a slow reader all it sent', async () => {
    stage = await makeStage({ networking: { type: 'unrestricted' } });
    const whole = Buffer.alloc(24_000_000, 'x');
    const port = await byHand((socket) => socket.once('data', () => socket.end(whole)));
    const socket = await tunnel(stage, `slow.test:${port}`);
    socket.write(await greeting('slow.test'));
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      socket.pause();
      setTimeout(() => socket.resume(), 3);
    });
    await once(socket, 'end');
    expect(bytes).toBe(whole.length);
  }, 60_000);
});

it('a proxy above that refuses and breaks off is told of, and its connection is ended', async () => {
  const above = await byHand((socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 407 No\r\nContent-Length: 4\r\n\r\nno');
      setTimeout(() => socket.resetAndDestroy(), 20);
    });
  });
  stage = await makeStage({ networking: { type: 'unrestricted' }, upstreamProxy: () => `http://127.0.0.1:${above}` });
  expect(await said(stage, get(stage, 'web.test:80'))).toMatch(
    /^HTTP\/1\.1 502[\s\S]*did not connect to web.test \(status 407\)/,
  );
  await sleep(100);
});

describe('a client', () => {
  it('that hangs up while its host is reached leaves no connection to the host behind', async () => {
    const reached = Promise.withResolvers<void>();
    const there = new Set<unknown>();
    const { stage, port } = await open(nothing, undefined, {
      resolve: async () => {
        await reached.promise;
        return ['127.0.0.1'];
      },
    });
    const relay = await byHand((socket) => {
      there.add(socket);
      socket.once('close', () => there.delete(socket));
    });
    for (const authority of [`api.test:${port}`, `other.test:${relay}`]) {
      const socket = connect(stage.port, '127.0.0.1');
      socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${proxyLogin(stage)}\r\n`);
      connectTls({ socket, servername: 'api.test' }).on('error', () => undefined);
      await sleep(100);
      socket.destroy();
    }
    await sleep(100);
    reached.resolve();
    await expect.poll(() => stage.ledger.length, { timeout: 10_000 }).toBe(2);
    await expect.poll(() => there.size, { timeout: 5_000 }).toBe(0);
  });

  it('that asks for a websocket in a way that is none is refused, and the host’s is ended', async () => {
    const ends: number[] = [];
    const { stage, port } = await open(nothing, (client) => client.on('close', (code) => ends.push(code)));
    const client = await secure(stage, 'api.test', port, 'http/1.1');
    client.write(
      `GET / HTTP/1.1\r\nHost: api.test:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: none\r\n\r\n`,
    );
    const [answer] = (await once(client, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 400/);
    await expect.poll(() => ends, { timeout: 5_000 }).toEqual([1006]);
  });

  it('gets no value in an answer’s last fields, over HTTP/2', async () => {
    const { stage, port, placeholder } = await open((request, response) => {
      response.addTrailers({ 'grpc-message': String(request.headers.authorization) });
      response.end('body');
    });
    const client = await secure(stage, 'api.test', port, 'h2');
    const session = connectHttp2(`https://api.test:${port}`, { createConnection: () => client });
    const stream = session.request({ ':path': '/', authorization: `Bearer ${placeholder}`, te: 'trailers' });
    stream.resume();
    const [trailers] = await once(stream, 'trailers');
    session.destroy();
    expect(trailers).toMatchObject({ 'grpc-message': `Bearer ${placeholder}` });
  });

  it('gets no value in the words beside a status, in a field’s name, or as why a websocket was closed', async () => {
    const value = 'ghp_letters_and_digits_0123456789';
    const told: string[] = [];
    const { stage, port, placeholder } = await open(
      (request, response) => {
        told.push(`${request.headers.authorization} ${request.headers.range}`);
        response.writeHead(200, `OK ${value}`, { [`x-${value}`]: '1' }).end('ok');
      },
      (client) => client.close(4000, value),
      {},
    );
    for (const one of stage.injectables) one.value = async () => value;
    const client = await secure(stage, 'api.test', port, 'http/1.1');
    client.write(
      `GET / HTTP/1.1\r\nHost: api.test:${port}\r\nAuthorization: Bearer ${placeholder}\r\nRange: bytes=0-3\r\n\r\n`,
    );
    const [answer] = (await once(client, 'data')) as [Buffer];
    client.destroy();
    // Of a part nobody could tell whether it ends in the middle of a value.
    expect(told).toEqual([`Bearer ${value} undefined`]);
    expect(answer.toString()).toContain(`200 OK ${placeholder}\r\nx-${placeholder}: 1`);
    const socket = await secure(stage, 'api.test', port, 'http/1.1');
    const websocket = new WebSocket(`ws://api.test:${port}/`, {
      headers: { authorization: `Bearer ${placeholder}` },
      createConnection: () => socket,
    });
    const [code, reason] = await once(websocket, 'close');
    expect([code, String(reason)]).toEqual([4000, placeholder]);
  });

  it('that asks for a URL of https without a tunnel is refused: nothing goes there without TLS', async () => {
    const { stage, placeholder } = await open(nothing);
    let heard = '';
    const port = await byHand((socket) => {
      socket.on('data', (bytes) => {
        heard += bytes;
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      });
    });
    for (const one of stage.injectables) one.bound = [{ host: 'clear.test', port }];
    const host = `clear.test:${port}`;
    const request = `GET https://${host}/ HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${placeholder}\r\n${proxyLogin(stage)}Connection: close\r\n\r\n`;
    expect(await said(stage, request)).toMatch(/^HTTP\/1\.1 421/);
    expect(heard).toBe('');
  });

  it('is stopped with a placeholder on its way to a host that nobody allowed, and nobody is asked for it', async () => {
    const asked: string[] = [];
    const { stage, placeholder } = await open(nothing, undefined, {
      networking: { type: 'limited', allowed_hosts: [] },
      ask: async ({ host }) => asked.push(host) > 0,
    });
    const request = `GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nX-Token: ${placeholder}\r\n${proxyLogin(stage)}Connection: close\r\n\r\n`;
    expect(await said(stage, request)).toMatch(/^HTTP\/1\.1 403[\s\S]*does not belong/);
    expect([asked, stage.tripped.map(({ host }) => host)]).toEqual([[], ['evil.test']]);
  });

  it('sends nobody’s placeholder anywhere: not in a body’s pieces, not escaped beside what is no escape', async () => {
    const strange = `drover_ph_${'Zy9X8w7V'.repeat(4)}`;
    let body = '';
    const { stage } = await open(nothing);
    const port = await stage.plain((request, response) => {
      request.on('data', (chunk) => (body += chunk));
      request.on('end', () => response.end('REACHED'));
    });
    const host = `plain.test:${port}`;
    const head = (path: string, more: string) =>
      `POST http://${host}${path} HTTP/1.1\r\nHost: ${host}\r\n${proxyLogin(stage)}${more}Connection: close\r\n\r\n`;
    const socket = connect(stage.port, '127.0.0.1');
    socket.on('error', () => undefined).resume();
    const closed = once(socket, 'close');
    socket.write(`${head('/', 'Transfer-Encoding: chunked\r\n')}`);
    for (const piece of ['a beginning ', strange.slice(0, 6), strange.slice(6, 30), strange.slice(30), ' the end']) {
      socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`);
      await sleep(20);
    }
    await closed;
    const escaped = strange.replace('ver', '%76er');
    expect(await said(stage, head(`/?a=%&b=${escaped}`, 'Content-Length: 0\r\n'))).toMatch(/^HTTP\/1\.1 403/);
    await stage.settled();
    expect(body).toBe('a beginning ');
    expect(stage.tripped.map(({ where, credentialId }) => `${where} ${credentialId}`)).toEqual([
      'body null',
      'url null',
    ]);
    expect(stage.ledger.map(({ reason }) => reason)).toEqual(['placeholder', 'placeholder']);
  });
});
