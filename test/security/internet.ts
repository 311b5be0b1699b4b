import {
  createServer as createHttp,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createSecureServer } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import { gzipSync } from 'node:zlib';
import { WebSocketServer } from 'ws';
import { SessionAuthority } from '../../src/vault/proxy/authority.ts';
import { gitBackend, registry } from './services.ts';

/** The address of all stand-ins for public hosts: loopback, but not the one the host's own services use. */
export const PUBLIC = '127.7.7.7';

/** What a stand-in saw. */
export interface Hit {
  host: string;
  /** Method, URL and header fields, as text. */
  head: string;
  body: string;
}

/** What the hosts the test made say when they are reached by who must not reach them. */
export const REACHED = 'REACHED-WHAT-MUST-NOT-BE';

/** Stand-ins for the internet, in this process: every name ends in `.test`, and the egress is told where they are. */
export interface Internet {
  tlsPort: number;
  /** The same hosts, at another port. */
  otherPort: number;
  plainPort: number;
  hits: Hit[];
  certificate: string;
  resolve(host: string): Promise<string[]>;
  close(): Promise<void>;
}

export interface InternetOptions {
  /** Served by whoever has this token alone. */
  token: string;
  /** A bare repository. */
  repository: string;
  /** Where a name is, for names with an address of their own. */
  elsewhere: Readonly<Record<string, readonly string[]>>;
}

export async function openInternet({ token, repository, elsewhere }: InternetOptions): Promise<Internet> {
  const authority = new SessionAuthority();
  const hits: Hit[] = [];
  const servers: Server[] = [];
  const listen = async (server: Server, host = PUBLIC): Promise<number> => {
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    return (server.address() as AddressInfo).port;
  };
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const host = String(request.headers[':authority'] ?? request.headers.host ?? '?');
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const head = `${request.method} ${request.url}\n${JSON.stringify(request.headers)}`;
    hits.push({ host, head, body: body.toString('latin1') });
    if (host.startsWith('git.test')) await gitBackend(repository, token, request, response, body);
    else if (host.startsWith('registry.test')) registry(host, token, request, response);
    else answer(host, request, response, body);
  };
  const secure = () => {
    const server = createSecureServer({
      allowHTTP1: true,
      SNICallback: (name, done) => done(null, authority.contextFor(name)),
    });
    server.on('request', (request: unknown, response: unknown) => {
      serve(request as IncomingMessage, response as ServerResponse).catch(() => {});
    });
    const sockets = new WebSocketServer({ noServer: true });
    server.on('upgrade', (request: IncomingMessage, socket, head) => {
      hits.push({ host: String(request.headers.host), head: JSON.stringify(request.headers), body: '' });
      sockets.handleUpgrade(request, socket, head, (client) => {
        client.send(`you are ${request.headers.authorization}`);
        client.on('message', (data) => client.send(`echo ${String(data)}`));
      });
    });
    return server;
  };
  const plain: HttpServer = createHttp((request, response) => {
    // Who was cut off in the middle has no answer.
    serve(request, response).catch(() => {});
  });
  let asked = 0;
  return {
    tlsPort: await listen(secure()),
    otherPort: await listen(secure()),
    plainPort: await listen(plain),
    hits,
    certificate: authority.certificate,
    resolve: async (host) => {
      // A name that answers with a good address first, and with one of this machine from then on.
      if (host === 'flip.test') return [asked++ === 0 ? PUBLIC : '127.0.0.1'];
      return [...(elsewhere[host] ?? (host.endsWith('.test') ? [PUBLIC] : []))];
    },
    close: async () => {
      for (const server of servers) {
        server.close();
        if ('closeAllConnections' in server) plain.closeAllConnections();
      }
    },
  };
}

/** A host that tells whoever asks all it was told, in every way there is to tell it. */
function answer(host: string, request: IncomingMessage, response: ServerResponse, body: Buffer): void {
  const credential = String(request.headers.authorization ?? request.headers['x-token'] ?? '');
  const said = `${host.startsWith('evil') ? REACHED : 'hello'} from ${host}: ${credential} ${body.toString('latin1')}`;
  const path = (request.url ?? '').replace(/^[a-z]+:\/\/[^/]+/, '').split('?')[0];
  if (path === '/redirect') {
    const to = new URL(request.url ?? '', 'http://x').searchParams.get('to') ?? '';
    response.writeHead(302, { location: `${to}?was=${encodeURIComponent(credential)}`, 'x-echo': credential }).end();
  } else if (path === '/gzip') {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(said));
  } else if (path === '/coded') {
    const bytes = Buffer.from(credential);
    response.end([bytes.toString('base64'), bytes.toString('hex'), encodeURIComponent(credential)].join('\n'));
  } else if (path === '/slowly') {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const pieces = [...said];
    const next = () => {
      const piece = pieces.splice(0, 3).join('');
      if (piece) response.write(piece, () => setTimeout(next, 1));
      else response.end();
    };
    next();
  } else if (path === '/parts') {
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(String(request.headers.range)) ?? [];
    if (from === undefined) response.end(said);
    else response.writeHead(206).end(said.slice(Number(from), Number(to) + 1));
  } else if (path === '/beside') {
    response.writeHead(200, `OK ${credential}`).end(said);
  } else if (path === '/last') {
    response.addTrailers({ 'x-last': credential });
    response.end(said);
  } else if (path === '/large') {
    response.end(`${'x'.repeat(1_000_003)}${said}${'y'.repeat(200_000)}`);
  } else {
    response.writeHead(200, { 'x-echo': credential, 'set-cookie': `was=${credential}` }).end(said);
  }
}
