import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { mcpHosts } from '../../src/harness/egress-owner.ts';
import { ExecutionId } from '../../src/protocol/ids.ts';
import type { Bound } from '../../src/vault/egress.ts';
import { proxyUrl, secure, tunnel } from './client.ts';
import { injectable, makeStage, SECRET, type Stage, type StageOptions } from './stage.ts';

const run = promisify(execFile);
let stage: Stage | undefined;
let folder: string | undefined;

afterEach(async () => {
  await stage?.close();
  stage = undefined;
  if (folder) await rm(folder, { recursive: true, force: true });
  folder = undefined;
});

/** A stage whose `api.test` has a credential, and a host beside it; both know the ports only when they listen. */
async function open(
  handler: (request: IncomingMessage, response: ServerResponse) => void,
  more: StageOptions = {},
  onSocket?: (client: WebSocket, request: IncomingMessage) => void,
) {
  const bound: Bound[] = [];
  const hosts: string[] = [];
  const credential = { ...injectable(), ...more.injectables?.[0] };
  stage = await makeStage({
    networking: { type: 'limited', allowed_hosts: hosts },
    ...more,
    injectables: [{ ...credential, bound }],
  });
  const port = await stage.secure(handler, onSocket);
  bound.push({ host: 'api.test', port });
  hosts.push(`api.test:${port}`, `other.test:${port}`);
  return { stage, port, placeholder: credential.placeholder };
}

async function curl(of: Stage, ...args: string[]): Promise<string> {
  folder ??= await mkdtemp(join(tmpdir(), 'drover-proxy-'));
  const ca = join(folder, 'ca.pem');
  await writeFile(ca, of.gate.files[0]?.content ?? '');
  const all = ['-sS', '--max-time', '15', '-x', proxyUrl(of).href, '--cacert', ca, ...args];
  const { stdout } = await run('curl', all, { maxBuffer: 2 ** 28 }).catch((error: { stdout: string }) => error);
  return stdout;
}

describe('the egress proxy', () => {
  it('puts the value in on the way out and the placeholder back on the way in, over HTTP/1.1 and HTTP/2', async () => {
    const seen: string[] = [];
    const { stage, port, placeholder } = await open((request, response) => {
      seen.push(`${request.httpVersion} ${request.headers.authorization}`);
      response.setHeader('x-echo', String(request.headers.authorization));
      response.end(`you said ${request.headers.authorization}`);
    });
    for (const version of ['--http1.1', '--http2']) {
      const answer = await curl(
        stage,
        version,
        '-i',
        '-H',
        `Authorization: Bearer ${placeholder}`,
        `https://api.test:${port}/`,
      );
      expect(answer).toContain(`x-echo: Bearer ${placeholder}`);
      expect(answer).toContain(`you said Bearer ${placeholder}`);
      expect(answer).not.toContain(SECRET);
    }
    expect(seen).toEqual([`1.1 Bearer ${SECRET}`, `2.0 Bearer ${SECRET}`]);
  });

  it('swaps inside a login, and in a body only where the credential allows it', async () => {
    const seen: string[] = [];
    const echo = async (request: IncomingMessage, response: ServerResponse) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      seen.push(`${request.headers.authorization} ${body}`);
      response.end('ok');
    };
    const first = await open((q, s) => void echo(q, s));
    const json = ['-H', 'content-type: application/json', '-d', `{"t":"${first.placeholder}"}`];
    await curl(first.stage, '-u', `me:${first.placeholder}`, ...json, `https://api.test:${first.port}/`);
    const login = Buffer.from(`me:${SECRET}`).toString('base64');
    expect(seen).toEqual([`Basic ${login} {"t":"${first.placeholder}"}`]);
    await first.stage.close();
    const second = await open((q, s) => void echo(q, s), { injectables: [injectable({ inBody: true })] });
    await curl(second.stage, ...json, `https://api.test:${second.port}/`);
    expect(seen[1]).toBe(`undefined {"t":"${SECRET}"}`);
  });

  it('passes a host without a credential on untouched: the client sees that host’s own certificate', async () => {
    const { stage, port } = await open((_request, response) => void response.end('hello'));
    // The session's own authority stands first; others follow that the host trusts.
    const [ca] = stage.gate.files[0]?.content.split(/(?<=-----END CERTIFICATE-----)/) ?? [];
    const vouchedFor: Record<string, boolean> = {};
    for (const servername of ['api.test', 'other.test']) {
      const socket = await tunnel(stage, `${servername}:${port}`);
      const client = connectTls({ socket, servername, ca, rejectUnauthorized: false });
      await once(client, 'secureConnect');
      vouchedFor[servername] = client.authorized;
      client.destroy();
    }
    // The session's authority made the one certificate and not the other.
    expect(vouchedFor).toEqual({ 'api.test': true, 'other.test': false });
  });

  it('keeps one connection alive over many requests, and many streams side by side', async () => {
    let connections = 0;
    const sockets = new Set<unknown>();
    const { stage, port, placeholder } = await open((request, response) => {
      if (!sockets.has(request.socket)) connections++;
      sockets.add(request.socket);
      response.end(`${request.url}`);
    });
    const client = await secure(stage, 'api.test', port, 'h2');
    const session = connectHttp2(`https://api.test:${port}`, { createConnection: () => client });
    const answers = await Promise.all(
      Array.from({ length: 50 }, async (_, n) => {
        const stream = session.request({ ':path': `/${n}`, authorization: `Bearer ${placeholder}` });
        let body = '';
        for await (const chunk of stream) body += chunk;
        return body;
      }),
    );
    session.close();
    expect(answers).toEqual(Array.from({ length: 50 }, (_, n) => `/${n}`));
    expect(connections).toBeLessThanOrEqual(50);
    const args = Array.from({ length: 20 }, () => `https://api.test:${port}/x`);
    const before = connections;
    await curl(stage, '--http1.1', '-H', `Authorization: Bearer ${placeholder}`, ...args);
    expect(connections - before).toBe(1);
  });

  it('takes a stream that is called off before its answer for what it is, and goes on with the others', async () => {
    let came = 0;
    const { stage, port, placeholder } = await open((request, response) => {
      came++;
      if (request.url === '/stays') response.end('here');
    });
    const client = await secure(stage, 'api.test', port, 'h2');
    const session = connectHttp2(`https://api.test:${port}`, { createConnection: () => client });
    const fields = { authorization: `Bearer ${placeholder}` };
    const gone = session.request({ ':method': 'POST', ':path': '/gone', ...fields });
    gone.on('error', () => undefined);
    gone.write('a beginning');
    await expect.poll(() => came, { timeout: 5_000 }).toBe(1);
    gone.close(constants.NGHTTP2_CANCEL);
    const stays = session.request({ ':path': '/stays', ...fields });
    let body = '';
    for await (const chunk of stays) body += chunk;
    session.close();
    expect(body).toBe('here');
    await stage.settled();
    expect(stage.ledger.map(({ path, verdict }) => `${path} ${verdict}`).sort()).toEqual([
      '/gone failed',
      '/stays allowed',
    ]);
  });

  it('passes events on as they come, not when the answer ends', async () => {
    let finish = () => {};
    const { stage, port, placeholder } = await open((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: first\n\n');
      finish = () => void response.end('data: last\n\n');
    });
    const client = await secure(stage, 'api.test', port, 'http/1.1');
    client.write(`GET / HTTP/1.1\r\nHost: api.test:${port}\r\nAuthorization: Bearer ${placeholder}\r\n\r\n`);
    let text = '';
    client.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    await expect.poll(() => text, { timeout: 5_000 }).toContain('data: first\n\n');
    expect(text).not.toContain('last');
    finish();
    await expect.poll(() => text).toContain('data: last');
    client.destroy();
  });

  it('holds a fast sender back when the reader is slow, both through a tunnel and through an opened connection', async () => {
    const { stage, port } = await open((_request, response) => {
      const piece = Buffer.alloc(1_000_000, 'x');
      let left = 60;
      const more = () => {
        while (left-- > 0) if (!response.write(piece)) return void response.once('drain', more);
        response.end();
      };
      more();
    });
    const before = process.memoryUsage().rss;
    for (const host of ['api.test', 'other.test']) {
      const socket = await tunnel(stage, `${host}:${port}`);
      const client = connectTls({ socket, servername: host, rejectUnauthorized: false });
      await once(client, 'secureConnect');
      client.write(`GET / HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: close\r\n\r\n`);
      await once(client, 'readable');
      await new Promise((resolve) => setTimeout(resolve, 300));
      let bytes = 0;
      for await (const chunk of client) bytes += (chunk as Buffer).length;
      expect(bytes).toBeGreaterThan(60_000_000);
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(250_000_000);
  });

  it('speaks websocket both ways, and puts the placeholder back in messages', async () => {
    const seen: unknown[] = [];
    const { stage, port, placeholder } = await open(
      (_request, response) => void response.end(),
      {},
      (client, request) => {
        seen.push(request.headers.authorization);
        client.on('message', (data, binary) => client.send(binary ? data : `${data} ${SECRET}`, { binary }));
        client.on('close', (code) => seen.push(code));
      },
    );
    const socket = await secure(stage, 'api.test', port, 'http/1.1');
    const client = new WebSocket(`ws://api.test:${port}/`, {
      headers: { authorization: `Bearer ${placeholder}` },
      createConnection: () => socket,
    });
    await once(client, 'open');
    client.send('hello');
    expect(String((await once(client, 'message'))[0])).toBe(`hello ${placeholder}`);
    const bytes = Buffer.alloc(3_000_000, 7);
    client.send(bytes);
    expect(Buffer.compare((await once(client, 'message'))[0] as Buffer, bytes)).toBe(0);
    client.close(4001, 'done');
    await expect.poll(() => seen).toEqual([`Bearer ${SECRET}`, 4001]);
  });

  it('goes through the proxy above, which does the resolving, with what that one asks for', async () => {
    const asked: string[] = [];
    const above = createHttp();
    above.on('connect', (request, socket, head) => {
      asked.push(`${request.url} ${request.headers['proxy-authorization']}`);
      const on = connect(Number(request.url?.split(':')[1]), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        on.write(head);
        on.pipe(socket).pipe(on);
      });
      for (const one of [on, socket]) one.on('error', () => one.destroy());
    });
    above.listen(0, '127.0.0.1');
    await once(above, 'listening');
    try {
      const { stage, port, placeholder } = await open(
        (request, response) => void response.end(request.headers.authorization),
        {
          upstreamProxy: () => `http://me:pw@127.0.0.1:${(above.address() as AddressInfo).port}`,
          resolve: async () => [],
        },
      );
      const bearer = ['-H', `Authorization: Bearer ${placeholder}`];
      expect(await curl(stage, ...bearer, `https://api.test:${port}/`)).toBe(`Bearer ${placeholder}`);
      expect(await curl(stage, '-k', '-H', 'Authorization: x', `https://other.test:${port}/`)).toBe('x');
      const login = `Basic ${Buffer.from('me:pw').toString('base64')}`;
      expect(asked).toEqual([`api.test:${port} ${login}`, `other.test:${port} ${login}`]);
    } finally {
      above.close();
      above.closeAllConnections();
    }
  });

  it('does not trust a host with a credential whose certificate nobody vouches for', async () => {
    const { stage, port, placeholder } = await open((_request, response) => void response.end(SECRET), {
      extraCertificates: () => [],
    });
    const answer = await curl(stage, '-H', `Authorization: Bearer ${placeholder}`, `https://api.test:${port}/`);
    expect(answer).toBe('');
    await stage.settled();
    expect(stage.ledger).toMatchObject([
      { verdict: 'failed', reason: 'upstream', host: 'api.test', credential_ids: [] },
    ]);
  });

  it.each([
    '127.0.0.1',
    'localhost',
    '[::1]',
    '10.1.2.3',
    '169.254.169.254',
    '[fd00::1]',
    '[::ffff:10.0.0.1]',
    '0.0.0.0',
  ])('refuses %s although every public host is allowed', async (host) => {
    stage = await makeStage({
      networking: { type: 'unrestricted' },
      privateRanges: [],
      resolve: async () => ['127.0.0.1', '::1'],
    });
    const port = await stage.plain((_request, response) => void response.end('REACHED'));
    expect(await curl(stage, `http://${host}:${port}/`)).toMatch(/private network/);
    await stage.settled();
    expect(stage.ledger).toMatchObject([{ verdict: 'refused', reason: 'private_address' }]);
  });

  it('allows no host at all where the environment says none, whoever would allow it', async () => {
    const asked: string[] = [];
    stage = await makeStage({ networking: { type: 'none' }, ask: async ({ host }) => asked.push(host) > 0 });
    expect(await curl(stage, 'http://plain.test/')).toMatch(/not among the hosts/);
    expect(asked).toEqual([]);
  });

  it('asks for a host that no rule names, once for all who wait, and lets it through when it may', async () => {
    const asked: string[] = [];
    const answer = Promise.withResolvers<boolean>();
    stage = await makeStage({
      networking: { type: 'limited', allowed_hosts: [] },
      ask: async ({ host }) => {
        asked.push(host);
        return await answer.promise;
      },
    });
    const port = await stage.plain((request, response) => void response.end(`hello ${request.url}`));
    const both = Promise.all([curl(stage, `http://new.test:${port}/a`), curl(stage, `http://new.test:${port}/b`)]);
    await expect.poll(() => asked).toEqual(['new.test']);
    answer.resolve(true);
    expect(await both).toEqual(['hello /a', 'hello /b']);
  });

  it('lets through to the agents’ MCP servers where the environment says so, and not where it does not', async () => {
    const agents: Parameters<typeof mcpHosts>[0][number][] = [];
    const asked: string[] = [];
    const visit = async (allow_mcp_servers: boolean) => {
      stage = await makeStage({
        networking: { type: 'limited', allowed_hosts: [], allow_mcp_servers },
        mcpHosts: () => mcpHosts(agents),
        ask: async ({ host }) => {
          asked.push(host);
          return false;
        },
      });
      const port = await stage.plain((_, response) => void response.end('hello'));
      const servers = (name: string) => [{ type: 'url' as const, name, url: `http://${name}.test:${port}/mcp` }];
      const inside = { type: 'stdio' as const, name: 'inside', command: 'server' };
      agents.splice(0, 9, { mcp_servers: [...servers('own'), inside] }, { mcp_servers: servers('roster') }, {});
      const answers = [];
      for (const name of ['own', 'roster', 'other']) answers.push(await curl(stage, `http://${name}.test:${port}/`));
      await stage.close();
      return answers.map((answer) => answer === 'hello');
    };
    expect(await visit(true)).toEqual([true, true, false]);
    expect(asked).toEqual(['other.test']);
    expect(await visit(false)).toEqual([false, false, false]);
  });

  it('puts what a call does down to that call, without the query, and counts what is the same', async () => {
    stage = await makeStage({ networking: { type: 'unrestricted' } });
    const port = await stage.plain(async (request, response) => {
      for await (const _ of request);
      response.end('12345');
    });
    const execution = ExecutionId.parse('exec_1234567890');
    const url = new URL(stage.gate.envFor(execution).HTTP_PROXY ?? '');
    url.port = String(stage.port);
    const args = ['-sS', '-x', url.href, '-d', 'four'];
    const target = `http://web.test:${port}/path?token=abc`;
    await run('curl', [...args, target, target, target]);
    await stage.settled();
    expect(stage.ledger).toMatchObject([
      {
        execution_id: execution,
        method: 'POST',
        path: '/path?…',
        status: 200,
        bytes_out: 12,
        bytes_in: 15,
        verdict: 'allowed',
        count: 3,
      },
    ]);
  });

  it('tells a stranger nothing but that it wants a login', async () => {
    stage = await makeStage({ networking: { type: 'unrestricted' } });
    const { stdout } = await run('curl', ['-sS', '-i', '-x', `http://127.0.0.1:${stage.port}`, 'http://web.test/']);
    expect(stdout).toMatch(/^HTTP\/1\.1 407/);
    await stage.settled();
    expect(stage.ledger).toEqual([]);
  });
});
