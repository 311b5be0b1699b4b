/*
 * The two ends of the proxy's benchmarks, each a process of its own, so that what is measured shares no event loop with them.
 * Usage: node proxy-programs.ts serve ADDRESS KEY_FILE CERTIFICATE_FILE     prints its port
 *        node proxy-programs.ts ask URL COUNT AUTHORIZATION [PROXY]         prints the times of all requests, ms, as JSON
 */
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { Agent, createServer, get } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { connect } from 'node:tls';

const [mode = '', ...args] = process.argv.slice(2);
if (mode === 'serve') serve(...args);
else await ask(...args);

/** `/big` is 200 MB, all else a few bytes that depend on what was shown. */
function serve(address = '', keyFile = '', certificateFile = ''): void {
  const chunk = Buffer.alloc(1_000_000, 'x');
  const server = createServer(
    { key: readFileSync(keyFile), cert: readFileSync(certificateFile), keepAlive: true },
    (request, response) => {
      if (request.url !== '/big') {
        response.end(`{"ok":true,"length":${request.headers.authorization?.length}}`);
        return;
      }
      let left = 200;
      response.writeHead(200, { 'content-length': left * chunk.length });
      const more = () => {
        while (left-- > 0) {
          if (!response.write(chunk)) {
            response.once('drain', more);
            return;
          }
        }
        response.end();
      };
      more();
    },
  );
  server.listen(0, address, () => console.log((server.address() as AddressInfo).port));
}

async function ask(url = '', count = '', authorization = '', proxy?: string): Promise<void> {
  const target = new URL(url);
  const socket = await (proxy ? through(new URL(proxy), target) : undefined);
  const secure = connect({
    ...(socket ? { socket } : { host: process.env.ADDRESS, port: Number(target.port) }),
    servername: target.hostname,
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1'],
  });
  await new Promise<void>((resolve, reject) => {
    secure.once('secureConnect', resolve);
    secure.once('error', reject);
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => secure;
  const times: number[] = [];
  for (let i = 0; i < Number(count); i++) {
    const from = performance.now();
    await once(url, agent, authorization);
    times.push(performance.now() - from);
  }
  // Not before all of it is written.
  process.stdout.write(`${JSON.stringify(times)}\n`, () => process.exit(0));
}

function once(url: string, agent: Agent, authorization: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = get(url, { agent, headers: { authorization, 'accept-encoding': 'identity' } }, (response) => {
      response.resume();
      response.on('end', () =>
        response.statusCode === 200 ? resolve() : reject(new Error(`status ${response.statusCode}`)),
      );
    });
    sent.on('error', reject);
  });
}

function through(proxy: URL, target: URL): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const login = Buffer.from(`${proxy.username}:${proxy.password}`).toString('base64');
    const sent = request({
      host: proxy.hostname,
      port: proxy.port,
      method: 'CONNECT',
      path: target.host,
      headers: { host: target.host, 'proxy-authorization': `Basic ${login}` },
    });
    sent.on('connect', (response, socket) =>
      response.statusCode === 200 ? resolve(socket) : reject(new Error(`status ${response.statusCode}`)),
    );
    sent.on('error', reject);
    sent.end();
  });
}
