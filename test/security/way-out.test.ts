import { createServer, type Server } from 'node:http';
import { createServer as createSecure } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import type { Networking } from '../../src/protocol/environment.ts';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import type { Tripped } from '../../src/vault/egress.ts';
import { SessionAuthority } from '../../src/vault/proxy/authority.ts';
import { createEgress } from '../../src/vault/proxy.ts';
import { environmentOf, makeRig, type Rig, SAMPLE, sh, textOf } from '../sandbox/rig.ts';
import { describeWith, docker, engineAvailable, osSandboxAvailable } from '../support/engine.ts';

const engine = await engineAvailable();
const os = await osSandboxAvailable();
const PUBLIC = '127.7.7.7';

let rig: Rig | undefined;
let server: Server | undefined;

afterEach(async () => {
  server?.close();
  server?.closeAllConnections();
  server = undefined;
  await rig?.clear();
  rig = undefined;
});

/** A host that sends back what it gets, and a sandbox's maker that may reach it. */
async function open(more: { cacheFolder?: string } = {}) {
  const listening = createServer((request, response) => {
    response.write(`${request.method} ${request.url} `);
    request.pipe(response);
  });
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, PUBLIC, resolve));
  const { port } = listening.address() as AddressInfo;
  const egress = createEgress({ resolve: async () => [PUBLIC], privateRanges: [`${PUBLIC}/32`] });
  const made = await makeRig({ egress, ...more });
  rig = made;
  const networking: Networking = { type: 'limited', allowed_hosts: [`web.test:${port}`] };
  const url = `http://web.test:${port}`;
  const owner = made.owner({ type: 'image', image: SAMPLE, networking });
  return { rig: made, url, networking, owner };
}

/** What a program inside gets from a URL, and sends there. */
const fetchIn = (url: string, body = ''): string =>
  `node -e 'fetch("${url}", ${body ? `{method: "POST", body: ${body}}` : '{}'}).then(async (r) => console.log(r.status, (await r.text()).length, "last")).catch((e) => console.log("failed", e.cause?.message ?? e.message))'`;

const id = (sandbox: Sandbox): string => docker('ps', '--quiet', '--filter', `label=drover.sandbox=${sandbox.id}`);

describeWith(engine, 'the way out of a container', () => {
  it('is the only one, and is named in the ledger under the call that took it', async () => {
    const { rig, owner, url } = await open();
    const sandbox = await rig.provider.acquire(owner);
    expect(textOf((await sh(sandbox, 'ls /sys/class/net; cat /proc/net/route')).stdout)).toMatch(/^lo\nIface/);
    expect(textOf((await sh(sandbox, fetchIn(`${url}/a?b=c`))).stdout)).toBe('200 11 last\n');
    // Programs that look at no variable trust the session's authority as well, and the public ones as before.
    const store = '/etc/ssl/certs/ca-certificates.crt';
    const held = `grep -cF "$(sed -n 2p /run/drover/ca.pem)" ${store}; grep -c BEGIN ${store} | wc -c`;
    await expect.poll(async () => textOf((await sh(sandbox, held)).stdout), { timeout: 5_000 }).toBe('1\n4\n');
    await expect
      .poll(() => rig.events.filter(({ type }) => type === 'drover.egress'), { timeout: 5_000 })
      .toMatchObject([{ host: 'web.test', verdict: 'allowed', execution_id: expect.stringMatching(/^exec_/) }]);
  });

  it('is found again by another process at the same address, with the same token, while a command runs', async () => {
    const { rig, owner, url } = await open();
    const first = await rig.provider.acquire(owner);
    const before = textOf((await sh(first, 'cat /proc/1/environ | tr "\\0" "\\n" | grep HTTPS_PROXY')).stdout);
    const waiting = sh(first, `sleep 3; ${fetchIn(url)}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const provider = createSandboxProvider(rig.options);
    try {
      const second = await provider.acquire(owner);
      expect(second.id).toBe(first.id);
      expect(textOf((await sh(second, fetchIn(url))).stdout)).toMatch(/^200/);
      expect(textOf((await sh(second, 'cat /proc/1/environ | tr "\\0" "\\n" | grep HTTPS_PROXY')).stdout)).toBe(before);
      expect(textOf((await waiting).stdout)).toMatch(/^200/);
    } finally {
      await provider.dispose();
    }
  });

  it('is trusted by what runs on when another process takes it over, by what starts then, and by the system’s own store', async () => {
    const internet = new SessionAuthority();
    const listening = createSecure({ SNICallback: (name, done) => done(null, internet.contextFor(name)) }, (q, s) => {
      s.end(`${q.headers.authorization}`);
    });
    server = listening;
    await new Promise<void>((resolve) => listening.listen(0, PUBLIC, resolve));
    const { port } = listening.address() as AddressInfo;
    const placeholder = `drover_ph_${'Way0Out1'.repeat(4)}`;
    const token = { credentialId: 'cred_1', placeholder, inHeader: true, inBody: false };
    const anew = () =>
      createEgress({
        resolve: async () => [PUBLIC],
        privateRanges: [`${PUBLIC}/32`],
        extraCertificates: () => [internet.certificate],
        authorityKey: Buffer.alloc(32, 'a key of the test'),
        secrets: async () => ({
          injectables: async () => [
            { ...token, bound: [{ host: 'api.test', port }], value: async () => 'the-real-value-0123456789' },
          ],
          env: { API: placeholder },
        }),
      });
    const made = await makeRig({ egress: anew() });
    rig = made;
    const networking: Networking = { type: 'limited', allowed_hosts: [`api.test:${port}`] };
    const owner = made.owner({ type: 'image', image: SAMPLE, networking });
    const ask = (after: number) =>
      `-e 'setTimeout(() => fetch("https://api.test:${port}/", { headers: { authorization: process.env.API } }).then(async (r) => console.log(r.status, await r.text())).catch((e) => console.log("failed", e.cause?.message ?? e.message)), ${after})'`;
    const first = await made.provider.acquire(owner);
    const authority = async (sandbox: Sandbox) => textOf((await sh(sandbox, 'head -12 /run/drover/ca.pem')).stdout);
    const before = await authority(first);
    const running = sh(first, `node ${ask(6_000)}`);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const provider = createSandboxProvider({ ...made.options, egress: anew() });
    try {
      const second = await provider.acquire(owner);
      expect(second.id).toBe(first.id);
      // Another certificate, of the same key.
      expect(await authority(second)).not.toBe(before);
      const answer = `200 ${placeholder}\n`;
      expect(textOf((await sh(second, `node ${ask(0)}`)).stdout)).toBe(answer);
      const bare = 'env -u NODE_EXTRA_CA_CERTS -u SSL_CERT_FILE node --use-system-ca';
      expect(textOf((await sh(second, `${bare} ${ask(0)}`)).stdout)).toBe(answer);
      expect(textOf((await running).stdout)).toBe(answer);
    } finally {
      await provider.dispose();
    }
  }, 60_000);

  it('takes a credential that is for every host to each that is allowed, over TLS, and to no other', async () => {
    const internet = new SessionAuthority();
    const heard: string[] = [];
    const listening = createSecure({ SNICallback: (name, done) => done(null, internet.contextFor(name)) }, (q, s) => {
      heard.push(`${q.headers.host} ${q.headers.authorization}`);
      s.end(`you are ${q.headers.authorization}`);
    });
    await new Promise<void>((resolve) => listening.listen(0, PUBLIC, resolve));
    // Such a credential goes to port 443 alone, which not everybody may listen at: a proxy above leads there.
    const above = createServer((q, s) => void s.end(`plain ${q.headers.authorization}`));
    above.on('connect', (_request, socket) => {
      const { port } = listening.address() as AddressInfo;
      const on = connect(port, PUBLIC, () => socket.write('HTTP/1.1 200 OK\r\n\r\n'));
      for (const one of [on, socket]) one.on('error', () => one.destroy());
      on.pipe(socket).pipe(on);
    });
    server = above;
    await new Promise<void>((resolve) => above.listen(0, '127.0.0.1', resolve));
    const placeholder = `drover_ph_${'Any0Host'.repeat(4)}`;
    const value = 'the-real-value-0123456789';
    const tripped: string[] = [];
    const made = await makeRig({
      egress: createEgress({
        resolve: async () => [],
        upstreamProxy: () => `http://127.0.0.1:${(above.address() as AddressInfo).port}`,
        extraCertificates: () => [internet.certificate],
        secrets: async () => ({
          injectables: async () => [
            {
              credentialId: 'cred_1',
              placeholder,
              bound: 'any',
              inHeader: true,
              inBody: false,
              value: async () => value,
            },
          ],
          env: { API: placeholder },
        }),
      }),
    });
    rig = made;
    try {
      const networking: Networking = { type: 'limited', allowed_hosts: ['one.test', 'two.test'] };
      const egress = {
        vaultIds: [],
        mcpHosts: [],
        onTripped: ({ host, where }: Tripped) => void tripped.push(`${where} ${host}`),
        ask: async () => false,
      };
      const owner = { ...made.owner({ type: 'image', image: SAMPLE, networking }), egress };
      const sandbox = await made.provider.acquire(owner);
      const ask = async (url: string) => {
        const fetching = `fetch("${url}", { headers: { authorization: process.env.API } }).then(async (r) => console.log(r.status, await r.text())).catch((e) => console.log("failed"))`;
        return textOf((await sh(sandbox, `node -e '${fetching}'`)).stdout);
      };
      expect(await ask('https://one.test/')).toBe(`200 you are ${placeholder}\n`);
      expect(await ask('https://two.test/')).toBe(`200 you are ${placeholder}\n`);
      expect(await ask('https://evil.test/')).toBe('failed\n');
      expect(await ask('http://evil.test/')).toBe('failed\n');
      expect(await ask('http://one.test/')).toMatch(/^403 .*does not belong/);
      expect(heard).toEqual([`one.test ${value}`, `two.test ${value}`]);
      expect(tripped).toEqual(['header one.test']);
    } finally {
      listening.close();
      listening.closeAllConnections();
    }
  }, 60_000);

  it('is opened again when its relay dies', async () => {
    const { rig, owner, url } = await open();
    const sandbox = await rig.provider.acquire(owner);
    const relay = docker('exec', '-u', '65533', id(sandbox), 'sh', '-c', 'ps -C relay -o pid= | head -1').trim();
    docker('exec', '-u', '65533', id(sandbox), 'sh', '-c', `kill -9 ${relay}`);
    await expect
      .poll(async () => textOf((await sh(sandbox, fetchIn(url))).stdout), { timeout: 10_000, interval: 300 })
      .toMatch(/^200/);
  });

  it('carries megabytes both ways over the relay’s own input and output, where no socket can be mounted', async () => {
    // A socket's address is at most 107 bytes long.
    const { rig, owner, url } = await open();
    const long = `${rig.cache}/${'x'.repeat(100)}`;
    const provider = createSandboxProvider({ ...rig.options, cacheFolder: long });
    try {
      const sandbox = await provider.acquire(owner);
      expect(docker('exec', id(sandbox), 'sh', '-c', 'ls /run/drover')).not.toContain('proxy.sock');
      const body = '"z".repeat(5000000)';
      const many = Array.from({ length: 4 }, () => fetchIn(`${url}/up`, body)).join(' & ');
      const { stdout } = await sh(sandbox, `${many} & wait`, { timeoutMs: 40_000 });
      expect(textOf(stdout)).toBe('200 5000009 last\n'.repeat(4));
    } finally {
      await provider.dispose();
    }
  }, 90_000);

  it('is there for what a devcontainer runs when it is made', async () => {
    const { rig, url, networking } = await open();
    await rig.put(
      '.devcontainer/devcontainer.json',
      JSON.stringify({
        image: SAMPLE,
        runArgs: ['--network=host'],
        onCreateCommand: `${fetchIn(`${url}/created`)} > created.txt`,
      }),
    );
    const owner = { ...rig.owner({ type: 'devcontainer' }) };
    const environment = environmentOf({ type: 'devcontainer', networking });
    const sandbox = await rig.provider.acquire({ ...owner, environment });
    expect(textOf((await sh(sandbox, 'cat created.txt')).stdout)).toBe('200 13 last\n');
    expect(docker('inspect', '--format', '{{.HostConfig.NetworkMode}}', id(sandbox))).toBe('none');
  });

  it('ends with the container: nothing is left on the host', async () => {
    const { rig, owner } = await open();
    await rig.provider.acquire(owner);
    const left = async () => (await import('node:fs/promises')).readdir(`${rig.cache}/egress`).catch(() => []);
    expect(await left()).toHaveLength(1);
    await rig.provider.remove(owner, 'over');
    await expect.poll(left).toEqual([]);
  });
});

describeWith(os, 'the way out of a sandbox of the operating system', () => {
  it('leads through the proxy too, with the environment’s rules, its own certificates and the ledger', async () => {
    const { rig, url, networking } = await open();
    const owner = rig.owner({ type: 'os' });
    const sandbox = await rig.provider.acquire({ ...owner, environment: environmentOf({ type: 'os', networking }) });
    const get = async (line: string) => textOf((await sh(sandbox, line)).stdout);
    expect(await get(`curl -sS --max-time 5 ${url}/a?b=c 2>&1`)).toBe('GET /a?b=c ');
    expect(await get(`curl -sS --max-time 5 http://evil.test/ 2>&1`)).toMatch(/not among the hosts/);
    expect(await get(`curl -sS --max-time 5 --noproxy "*" http://${PUBLIC}:${new URL(url).port}/ 2>&1`)).toMatch(
      /^curl: /,
    );
    expect(
      await get('HTTP_PROXY= http_proxy=http://localhost:3128 curl -sSI --max-time 5 http://web.test/ 2>&1'),
    ).toMatch(/407/);
    expect(await get('curl -sS --max-time 5 -x socks5h://localhost:1080 http://evil.test/ 2>&1')).toMatch(/^curl: /);
    expect(await get('cat "$SSL_CERT_FILE" | grep -c BEGIN')).toMatch(/^\d{2,}/);
    await expect
      .poll(() => rig.events.filter(({ type }) => type === 'drover.egress'), { timeout: 5_000 })
      .toMatchObject([
        { host: 'web.test', verdict: 'allowed', execution_id: expect.stringMatching(/^exec_/) },
        { host: 'evil.test', verdict: 'refused', reason: 'not_listed' },
      ]);
  });
});
