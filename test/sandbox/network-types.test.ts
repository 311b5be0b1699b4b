import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureSampleImage } from '../../scripts/image.mjs';
import type { Networking } from '../../src/protocol/environment.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { createEgress } from '../../src/vault/proxy.ts';
import { describeWith, engineAvailable } from '../support/engine.ts';
import { HOST_NAMES } from './registries.ts';
import { makeImages, makeRig, type Rig, SAMPLE, sh, textOf } from './rig.ts';

/** Where the stand-ins for public hosts listen: of all private addresses the only one that is excepted. */
const PUBLIC = '127.7.7.12';

describeWith(await engineAvailable(), 'the network of an environment', () => {
  let rig: Rig;
  let servers: Server[];
  /** What came to a stand-in, as `host path`. */
  let asked: string[];
  let port: number;
  /** Of a listener of this machine, on all its addresses. */
  let own: number;

  const listen = async (address: string): Promise<number> => {
    const server = createServer((request, response) => {
      asked.push(`${request.headers.host} ${request.url}`);
      response.end('here');
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, address, resolve));
    return (server.address() as AddressInfo).port;
  };
  /** What each URL answers, asked through the proxy (or past it) with Node's own fetch: a status, or why there is none. */
  const fetched = async (sandbox: Sandbox, urls: readonly string[], past = ''): Promise<string[]> => {
    const program = `for (const url of ${JSON.stringify(urls)}) await fetch(url, { signal: AbortSignal.timeout(5000) })
      .then((answer) => console.log(answer.status), (error) => console.log("failed"));`;
    const { stdout, stderr } = await sh(sandbox, `${past} node --input-type=module -e '${program}'`, {
      timeoutMs: 60_000,
    });
    expect(textOf(stderr)).not.toMatch(/SyntaxError/);
    return textOf(stdout).trim().split('\n');
  };
  const acquire = (networking: Networking) =>
    rig.provider.acquire(rig.owner({ type: 'image', image: SAMPLE, networking }));

  beforeAll(() => makeImages(ensureSampleImage));
  beforeEach(async () => {
    servers = [];
    asked = [];
    port = await listen(PUBLIC);
    own = await listen('0.0.0.0');
    const names: Readonly<Record<string, string>> = { 'lan.test': '192.168.7.7', 'inward.test': '127.0.0.1' };
    rig = await makeRig({
      egress: createEgress({ resolve: async (host) => [names[host] ?? PUBLIC], privateRanges: [`${PUBLIC}/32`] }),
    });
  });
  afterEach(async () => {
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
    }
    await rig.clear();
  });

  it('of type none leads nowhere, by name or by number, with the proxy or past it', async () => {
    const sandbox = await acquire({ type: 'none' });
    const urls = [`http://any.test:${port}/`, `http://${PUBLIC}:${port}/`, `http://${HOST_NAMES.npm}/`];
    expect(await fetched(sandbox, urls)).toEqual(['failed', 'failed', 'failed']);
    const past = 'env -u HTTP_PROXY -u http_proxy -u NODE_USE_ENV_PROXY';
    expect(await fetched(sandbox, urls, past)).toEqual(['failed', 'failed', 'failed']);
    expect(asked).toEqual([]);
  });

  it('of type unrestricted leads to every public host at any port, and to nothing of this machine or its networks', async () => {
    const sandbox = await acquire({ type: 'unrestricted' });
    const open = [`http://one.test:${port}/a`, `http://two.example:${port}/b`];
    expect(await fetched(sandbox, open)).toEqual(['200', '200']);
    expect(asked).toEqual([`one.test:${port} /a`, `two.example:${port} /b`]);
    asked.length = 0;
    const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
    const ipv4 = addresses.filter(({ family, internal }) => family === 'IPv4' && !internal);
    const closed = [
      ...[
        'localhost',
        '127.0.0.1',
        '[::1]',
        'inward.test',
        'lan.test',
        '127.0.0.2',
        '[::ffff:127.0.0.1]',
        '0x7f000001',
      ],
      ...['169.254.169.254', '10.0.0.1', ...ipv4.map(({ address }) => address).filter(isPrivate)],
    ].map((host) => `http://${host}:${own}/`);
    for (const answer of await fetched(sandbox, closed)) expect(['403', 'failed']).toContain(answer);
    expect(asked).toEqual([]);
    await expect
      .poll(() => rig.events.flatMap((event) => (event.type === 'drover.egress' ? [event] : [])), { timeout: 5_000 })
      .toContainEqual(expect.objectContaining({ host: 'inward.test', verdict: 'refused', reason: 'private_address' }));
  });
});

/** This machine may have a public address as well, which is as public as any other. */
const isPrivate = (address: string): boolean => /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.)/.test(address);
