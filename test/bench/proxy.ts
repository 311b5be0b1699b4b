import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { aptInstall } from '../../scripts/apt.mjs';
import { ensureSecurityImage } from '../../scripts/image.mjs';
import type { Networking } from '../../src/protocol/environment.ts';
import { mint } from '../../src/protocol/ids.ts';
import type { Egress, Injectable } from '../../src/vault/egress.ts';
import { createEgress } from '../../src/vault/proxy.ts';
import { environmentOf, makeRig } from '../sandbox/rig.ts';
import { docker, removeLabelled } from '../support/engine.ts';
import { figure, quantile } from './figure.ts';
import type { Bench } from './given.ts';

const run = promisify(execFile);
const PROGRAMS = join(import.meta.dirname, 'proxy-programs.ts');
const LABEL = 'drover.bench=proxy';
/** Downloads of each kind, one after the other in turns; the middle one counts. */
const ROUNDS = 5;
const REQUESTS = 2_000;
const MEMORY_REQUESTS = 10_000;
const PLACEHOLDER = `drover_ph_${'Bench123'.repeat(4)}`;
const VALUE = 'a-value-that-only-the-host-may-see-0123456789';

interface Server {
  port: number;
  certificate: string;
  close(): Promise<void>;
}

/** 200 MB from a container through relay and proxy, over the same download from a container with a network. */
export const passthrough: Bench = async (given, say) => {
  if (!given.have.engine) return [];
  const image = await ensureSecurityImage({ log: say });
  if (!image.ok) {
    say(`proxy.passthrough is not measured: ${image.why}`);
    return [];
  }
  docker('network', 'create', '--label', LABEL, 'drover-bench-proxy');
  const gateway = docker('network', 'inspect', '--format', '{{(index .IPAM.Config 0).Gateway}}', 'drover-bench-proxy');
  const server = await serve(gateway);
  const rig = await makeRig({ egress: egressTo(gateway, server, []) });
  try {
    const direct = docker(
      ...['run', '-d', '--init', '--label', LABEL, '--network', 'drover-bench-proxy'],
      ...['--add-host', `bench.test:${gateway}`, image.image, 'sleep', '600'],
    );
    const owner = rig.owner({ type: 'image', image: image.image });
    const networking: Networking = { type: 'limited', allowed_hosts: [`bench.test:${server.port}`] };
    const sandbox = await rig.provider.acquire({
      ...owner,
      environment: environmentOf({ type: 'image', image: image.image, networking }),
    });
    const behind = docker('ps', '--quiet', '--filter', `label=drover.sandbox=${sandbox.id}`);
    const times: Record<'direct' | 'behind', number[]> = { direct: [], behind: [] };
    for (let round = 0; round < ROUNDS; round++) {
      times.direct.push(await download(direct, server.port));
      times.behind.push(await download(behind, server.port));
    }
    // 0.7 of the throughput is 1 / 0.7 of the time.
    return [figure('proxy.passthrough', 'ms', median(times.behind), median(times.direct), 1 / 0.7)];
  } finally {
    await rig.clear();
    await server.close();
    removeLabelled(LABEL);
  }
};

/** What small requests take longer with a value put in on the way, over what mitmproxy adds for the same. */
export const inject: Bench = async (_given, say) => {
  const mitmdump = await findMitmproxy(say);
  if (!mitmdump) return [];
  const server = await serve('127.0.0.1');
  const injectable: Injectable = {
    credentialId: 'cred_bench',
    placeholder: PLACEHOLDER,
    bound: [{ host: 'bench.test', port: server.port }],
    inHeader: true,
    inBody: false,
    value: async () => VALUE,
  };
  const ours = await openGate(egressTo('127.0.0.1', server, [injectable]), server.port);
  const theirs = await startMitmproxy(mitmdump);
  try {
    const url = `https://bench.test:${server.port}/small`;
    const ask = (count: number, authorization: string, proxy?: string) => client(url, count, authorization, proxy);
    const times: Record<'direct' | 'ours' | 'theirs', number[]> = { direct: [], ours: [], theirs: [] };
    for (let round = 0; round < 3; round++) {
      times.direct.push(...(await ask(REQUESTS, `Bearer ${VALUE}`)).slice(100));
      times.ours.push(...(await ask(REQUESTS, `Bearer ${PLACEHOLDER}`, ours.url)).slice(100));
      times.theirs.push(...(await ask(REQUESTS, `Bearer ${PLACEHOLDER}`, theirs.url)).slice(100));
    }
    const added = (of: number[]) => quantile(of, 0.5) - quantile(times.direct, 0.5);
    const before = await heap();
    await ask(MEMORY_REQUESTS, `Bearer ${PLACEHOLDER}`, ours.url);
    const after = await heap();
    return [
      figure('proxy.inject', 'ms', added(times.ours), added(times.theirs), 0.7),
      figure('proxy.inject_memory', 'bytes', after, before, 1.1),
    ];
  } finally {
    theirs.process.kill('SIGTERM');
    await ours.close();
    await server.close();
  }
};

async function serve(address: string): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-bench-proxy-'));
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')];
  const made = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=bench.test'],
    ...['-addext', 'subjectAltName=DNS:bench.test', '-keyout', key, '-out', certificate],
  ]);
  if (made.status !== 0) throw new Error(`openssl: ${made.stderr}`);
  const child = spawn(process.execPath, [PROGRAMS, 'serve', address, key, certificate], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.once('data', (line: Buffer) => resolve(Number(line)));
    child.once('exit', () => reject(new Error('The server ended.')));
  });
  return {
    port,
    certificate: await readFile(certificate, 'utf8'),
    close: async () => {
      child.kill('SIGKILL');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const egressTo = (address: string, server: Server, injectables: Injectable[]): Egress =>
  createEgress({
    resolve: async () => [address],
    privateRanges: [`${address}/32`],
    extraCertificates: () => [server.certificate],
    secrets: async () => ({ injectables: async () => injectables, env: {} }),
  });

/** A gate behind a port of this machine's, as a relay would be in front of it. */
async function openGate(egress: Egress, port: number) {
  const gate = await egress.open({
    session: mint.session(),
    networking: { type: 'limited', allowed_hosts: [`bench.test:${port}`] },
    owner: () => undefined,
    record: async () => {},
  });
  const door = createServer({ allowHalfOpen: true }, (socket) => gate.accept(socket));
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
  const url = new URL(gate.env.HTTPS_PROXY ?? '');
  url.port = String((door.address() as AddressInfo).port);
  return {
    url: url.href,
    close: async () => {
      await gate.close();
      door.close();
    },
  };
}

/** Debian's package, put there if this script may. */
async function findMitmproxy(say: (text: string) => void): Promise<string | undefined> {
  const find = () => spawnSync('sh', ['-c', 'command -v mitmdump'], { encoding: 'utf8' }).stdout.trim();
  if (find()) return find();
  const mayInstall = process.getuid?.() === 0 && spawnSync('apt-get', ['--version']).status === 0;
  try {
    if (!mayInstall) throw new Error('it is not installed, and this user may not install it');
    say('Installing mitmproxy: what it adds to a request is the baseline.');
    await aptInstall(['mitmproxy']);
  } catch (error) {
    say(`proxy.inject is not measured for want of mitmproxy: ${error instanceof Error ? error.message : error}`);
  }
  return find() || undefined;
}

async function startMitmproxy(program: string): Promise<{ url: string; process: ChildProcess }> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-bench-mitm-'));
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  const child = spawn(
    program,
    [
      ...['-q', '--listen-host', '127.0.0.1', '-p', String(port), '--set', `confdir=${folder}`, '--ssl-insecure'],
      // The name is known to nobody but this benchmark.
      ...['--set', 'connection_strategy=lazy', '--map-remote', '|bench.test|127.0.0.1'],
      ...['--set', 'keep_host_header=true', '--modify-headers', `/~q/authorization/Bearer ${VALUE}`],
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  child.once('exit', () => void rm(folder, { recursive: true, force: true }));
  for (let i = 0; i < 150; i++) {
    if (await listens(port)) break;
    await sleep(100);
  }
  return { url: `http://a:b@127.0.0.1:${port}`, process: child };
}

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

async function client(url: string, count: number, authorization: string, proxy?: string): Promise<number[]> {
  const { stdout } = await run(process.execPath, [PROGRAMS, 'ask', url, String(count), authorization, proxy ?? ''], {
    maxBuffer: 2 ** 26,
    timeout: 120_000,
    env: { ...process.env, ADDRESS: '127.0.0.1' },
  });
  return JSON.parse(stdout);
}

/** ms. */
async function download(container: string, port: number): Promise<number> {
  const args = ['-sS', '-k', '-o', '/dev/null', '-w', '%{time_total} %{size_download}', '--max-time', '120'];
  const { stdout } = await run('docker', ['exec', container, 'curl', ...args, `https://bench.test:${port}/big`]);
  const [seconds, bytes] = stdout.split(' ').map(Number);
  if (bytes !== 200_000_000) throw new Error(`Only ${bytes} bytes came.`);
  return (seconds ?? Number.NaN) * 1000;
}

const median = (of: number[]): number => quantile(of, 0.5);

/** Bytes in use after a collection. */
async function heap(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  await sleep(200);
  if (typeof collect === 'function') for (let i = 0; i < 3; i++) collect();
  return process.memoryUsage().heapUsed;
}
