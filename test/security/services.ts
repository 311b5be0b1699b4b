import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { gunzipSync, gzipSync } from 'node:zlib';

/** Git over HTTP for who logs in as `agent` with the token: git's own program does the work. */
export async function gitBackend(
  repository: string,
  token: string,
  request: IncomingMessage,
  response: ServerResponse,
  body: Buffer,
): Promise<void> {
  const login = `Basic ${Buffer.from(`agent:${token}`).toString('base64')}`;
  if (request.headers.authorization !== login) {
    response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
    return;
  }
  const url = new URL(request.url ?? '/', 'http://git');
  const input = request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: repository,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_COUNT: '2',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
      GIT_CONFIG_KEY_1: 'http.receivepack',
      GIT_CONFIG_VALUE_1: 'true',
      PATH_INFO: url.pathname.replace('/project.git', ''),
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method ?? '',
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      CONTENT_LENGTH: String(input.length),
      REMOTE_USER: 'agent',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
    timeout: 20_000,
  });
  // It may have answered and ended before it was given anything to read.
  child.stdin.on('error', () => undefined).end(input);
  const chunks: Buffer[] = [];
  for await (const chunk of child.stdout) chunks.push(chunk as Buffer);
  const output = Buffer.concat(chunks);
  const end = output.indexOf('\r\n\r\n');
  const headers = output.subarray(0, end).toString('latin1').split('\r\n');
  const status = headers.find((line) => line.startsWith('Status: '))?.slice(8, 11) ?? '200';
  for (const line of headers) {
    const [name = '', value = ''] = line.split(': ', 2);
    if (name && name !== 'Status') response.setHeader(name, value);
  }
  response.writeHead(Number(status)).end(output.subarray(end + 4));
}

/** A registry of one package, `left-hand` 1.0.0, for who shows the token. */
export function registry(host: string, token: string, request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.authorization !== `Bearer ${token}`) {
    response.writeHead(401).end('{}');
    return;
  }
  const tarball = packed({
    'package/package.json': JSON.stringify({ name: 'left-hand', version: '1.0.0', main: 'index.js' }),
    'package/index.js': "module.exports = 'from the registry';\n",
  });
  if ((request.url ?? '').endsWith('.tgz')) {
    response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(tarball);
    return;
  }
  const dist = {
    tarball: `https://${host}/left-hand/-/left-hand-1.0.0.tgz`,
    integrity: `sha512-${createHash('sha512').update(tarball).digest('base64')}`,
  };
  const version = { name: 'left-hand', version: '1.0.0', main: 'index.js', dist };
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ name: 'left-hand', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }));
}

/** A gzipped tar of a few small files. */
function packed(files: Readonly<Record<string, string>>): Buffer {
  const blocks = Object.entries(files).flatMap(([name, content]) => {
    const body = Buffer.from(content);
    const head = Buffer.alloc(512);
    head.write(name, 0);
    head.write('0000644\0', 100);
    head.write('0000000\0', 108);
    head.write('0000000\0', 116);
    head.write(`${body.length.toString(8).padStart(11, '0')}\0`, 124);
    head.write('00000000000\0', 136);
    head.write('        ', 148);
    head.write('0', 156);
    head.write('ustar\x0000', 257);
    const sum = head.reduce((total, byte) => total + byte, 0);
    head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return [head, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}
