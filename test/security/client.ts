import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { Stage } from './stage.ts';

/** Where a stage's gate is reached, with the login it wants. */
export const proxyUrl = (of: Stage): URL => {
  const url = new URL(of.gate.env.HTTPS_PROXY ?? '');
  url.port = String(of.port);
  return url;
};

/** The field by which a program shows that it may use the proxy. */
export function proxyLogin(of: Stage): string {
  const url = proxyUrl(of);
  return `Proxy-Authorization: Basic ${Buffer.from(`${url.username}:${url.password}`).toString('base64')}\r\n`;
}

/** A tunnel, as a client opens one. Throws if the proxy does not open it. */
export async function tunnel(of: Stage, authority: string): Promise<Socket> {
  const socket = connect(of.port, '127.0.0.1');
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${proxyLogin(of)}\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  if (!/^HTTP\/1\.1 200/.test(answer.toString())) throw new Error(answer.toString());
  return socket;
}

/** TLS in a tunnel, with the session's authority alone trusted. */
export async function secure(of: Stage, host: string, port: number, alpn: string): Promise<TLSSocket> {
  const socket = await tunnel(of, `${host}:${port}`);
  const ca = of.gate.files[0]?.content ?? '';
  const client = connectTls({ socket, servername: host, ca, ALPNProtocols: [alpn] });
  await once(client, 'secureConnect');
  return client;
}
