import { spawnSync } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureSecurityImage } from '../../scripts/image.mjs';
import type { EventOf } from '../../src/protocol/event.ts';
import { type CredentialId, type ExecutionId, mint, type SessionId } from '../../src/protocol/ids.ts';
import type { RunResult, Sandbox } from '../../src/sandbox/sandbox.ts';
import type { Injectable, SessionSecrets, Tripped } from '../../src/vault/egress.ts';
import { gitHelperEnv } from '../../src/vault/git-helper.ts';
import { placeholderFor } from '../../src/vault/placeholder.ts';
import { createEgress } from '../../src/vault/proxy.ts';
import { makeRig, type Rig } from '../sandbox/rig.ts';
import { docker } from '../support/engine.ts';
import { type Internet, openInternet, PUBLIC, REACHED } from './internet.ts';

const IMAGE = 'drover-security:latest';
/** A link-local network, as a cloud's metadata service is on. One of many: another run may be at work. */
const METADATA = linkLocal(randomInt(1, 255));
const MOST_MS = 20_000;

function linkLocal(third: number) {
  return { subnet: `169.254.${third}.0/24`, address: `169.254.${third}.7` };
}

/** Listens on all its addresses, tells whoever comes, and prints what came. */
const NEIGHBOUR = `
const say = (what) => console.log('HIT ' + what);
require('http').createServer((q, s) => { say('http ' + q.url); s.end('${REACHED}'); }).listen(8080, '::');
require('dgram').createSocket('udp6').on('message', (m) => say('udp ' + m)).bind(5353, '::');
console.log('listening');
`;

/**
 * A sandbox as a session gets it, on a real engine, and around it stand-ins for all that it must not reach: a neighbour
 * container with addresses of three kinds, a listener of the host's, hosts of an internet in this process.
 */
export interface Field {
  sandbox: Sandbox;
  internet: Internet;
  ledger: EventOf<'drover.egress'>[];
  tripped: Tripped[];
  secret: string;
  /** Variables for the hostile scripts: where everything is. */
  places: Readonly<Record<string, string>>;
  workspace: string;
  run(script: string): Promise<{ execution: ExecutionId; result: RunResult; output: string }>;
  /** What was reached that must not be, since it was last asked. */
  reached(): Promise<string[]>;
  /** Where bytes of the secret are that the sandbox could see, or that were logged. */
  search(): Promise<string[]>;
  settled(): Promise<void>;
  close(): Promise<void>;
}

export async function openField(): Promise<Field> {
  const image = await ensureSecurityImage({ log: () => {} });
  if (!image.ok) throw new Error(image.why);
  const secret = `s3cr3t/${randomBytes(18).toString('base64')}`;
  const folder = await mkdtemp(join(tmpdir(), 'drover-field-'));
  const repository = join(folder, 'project.git');
  makeRepository(repository, join(folder, 'seed'));
  const internet = await openInternet({
    token: secret,
    repository,
    elsewhere: {
      'rebind.test': ['127.0.0.1'],
      'metadata.test': [METADATA.address],
      'six.test': ['::1', 'fd00::1'],
    },
  });
  const session = mint.session();
  const secrets = secretsOf(session, internet.tlsPort, secret);
  const rig = await makeRig({
    egress: createEgress({
      resolve: internet.resolve,
      privateRanges: [`${PUBLIC}/32`],
      extraCertificates: () => [internet.certificate],
      secrets: async () => secrets,
    }),
  });
  return await new Standing(rig, internet, secret, folder, session).open(secrets);
}

const CREDENTIALS = { api: 'cred_api', git: 'cred_git', registry: 'cred_registry', body: 'cred_body' } as const;

function secretsOf(session: SessionId, port: number, secret: string): SessionSecrets {
  const placeholder = (id: string) => placeholderFor(session, id as CredentialId);
  const one = (credentialId: string, host: string, inBody = false): Injectable => ({
    credentialId,
    placeholder: placeholder(credentialId),
    bound: [{ host, port }],
    inHeader: true,
    inBody,
    value: async () => secret,
  });
  const { api, git, registry, body } = CREDENTIALS;
  const git_ = gitHelperEnv([{ host: `git.test:${port}`, user: 'agent', placeholder: placeholder(git) }]);
  return {
    injectables: async () => [
      one(api, 'api.test'),
      one(git, 'git.test'),
      one(registry, 'registry.test'),
      one(body, 'body.test', true),
    ],
    env: {
      API_TOKEN: placeholder(api),
      NPM_TOKEN: placeholder(registry),
      BODY_TOKEN: placeholder(body),
      ...git_,
    },
  };
}

function makeRepository(bare: string, seed: string): void {
  const git = (...args: string[]) => {
    const done = spawnSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { encoding: 'utf8' });
    if (done.status !== 0) throw new Error(`git ${args[0]}: ${done.stderr}`);
  };
  git('init', '-q', '--bare', '-b', 'main', bare);
  git('init', '-q', '-b', 'main', seed);
  git('-C', seed, 'commit', '-q', '--allow-empty', '-m', 'begin');
  git('-C', seed, 'push', '-q', bare, 'main');
}

class Standing implements Field {
  readonly internet: Internet;
  readonly secret: string;
  readonly ledger: EventOf<'drover.egress'>[] = [];
  readonly tripped: Tripped[] = [];
  readonly workspace: string;
  readonly #rig: Rig;
  readonly #folder: string;
  readonly #session: SessionId;
  readonly #servers: Server[] = [];
  readonly #label: string;
  #sandbox: Sandbox | undefined;
  #reached: string[] = [];
  #told = 0;
  places: Record<string, string> = {};

  constructor(rig: Rig, internet: Internet, secret: string, folder: string, session: SessionId) {
    this.#rig = rig;
    this.internet = internet;
    this.secret = secret;
    this.#folder = folder;
    this.#session = session;
    this.workspace = rig.workspace;
    this.#label = `drover.workspace=${rig.workspace}`;
  }

  get sandbox(): Sandbox {
    if (!this.#sandbox) throw new Error('The field is not open yet.');
    return this.#sandbox;
  }

  async open(secrets: SessionSecrets): Promise<Field> {
    try {
      const { tlsPort, otherPort, plainPort } = this.internet;
      await this.#rig.put('.drover/marker', REACHED);
      await this.#rig.put('.git/config', '[core]\n\tbare = false\n');
      await mkdir(join(this.workspace, '.git/hooks'), { recursive: true });
      const neighbour = this.#neighbour();
      const onGateway = await this.#hostPort(neighbour.gateway);
      const onLoopback = await this.#hostPort('127.0.0.1');
      const owner = this.#rig.owner({
        type: 'image',
        image: IMAGE,
        networking: {
          type: 'limited',
          allowed_hosts: [
            ...['api', 'git', 'registry', 'body', 'allowed', 'flip', 'rebind', 'metadata', 'six'].map(
              (name) => `${name}.test:${tlsPort}`,
            ),
            ...[`api.test:${otherPort}`, `api.test:${plainPort}`, `plain.test:${plainPort}`],
            ...[`rebind.test:${onLoopback}`, 'metadata.test:8080', `six.test:${onLoopback}`],
          ],
        },
      });
      this.#sandbox = await this.#rig.provider.acquire({
        ...owner,
        session: this.#session,
        record: async (drafts) => {
          await owner.record(drafts);
          for (const { event } of drafts)
            if (event.type === 'drover.egress') this.ledger.push(event as EventOf<'drover.egress'>);
        },
        egress: {
          vaultIds: [],
          mcpHosts: [],
          onTripped: (what) => void this.tripped.push(what),
          ask: async () => false,
        },
      });
      const [other = ''] = Object.values(await strangersPlaceholder());
      this.places = {
        TLS: String(tlsPort),
        OTHER: String(otherPort),
        PLAIN: String(plainPort),
        NEIGHBOUR: neighbour.address,
        NEIGHBOUR6: neighbour.address6,
        METADATA: METADATA.address,
        GATEWAY: neighbour.gateway,
        ON_GATEWAY: String(onGateway),
        ON_LOOPBACK: String(onLoopback),
        STRANGER: other,
        API: secrets.env.API_TOKEN ?? '',
        GIT_SSL_NO_VERIFY: 'false',
      };
      return this;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async run(script: string) {
    const execution = mint.execution();
    const result = await this.sandbox.run({
      executionId: execution,
      argv: ['bash', '-c', `cd /tmp\n${script}`],
      env: this.places,
      timeoutMs: MOST_MS,
      signal: AbortSignal.timeout(MOST_MS + 5_000),
    });
    const output = [result.stdout, result.stderr].map((bytes) => Buffer.from(bytes).toString('latin1')).join('\n');
    return { execution, result, output };
  }

  async reached(): Promise<string[]> {
    const said = docker('logs', this.#name())
      .split('\n')
      .filter((line) => line.startsWith('HIT '));
    const news = [...said.slice(this.#told), ...this.#reached.splice(0)];
    this.#told = said.length;
    return news;
  }

  async search(): Promise<string[]> {
    const found: string[] = [];
    const forms = formsOf(this.secret);
    const look = (where: string, bytes: Buffer) => {
      for (const form of forms) if (bytes.includes(form)) found.push(`${where}: ${form.length} bytes of the secret`);
    };
    const id = docker('ps', '--quiet', '--filter', `label=drover.sandbox=${this.sandbox.id}`);
    const files = spawnSync('docker', ['export', id], { maxBuffer: 2 ** 30 });
    look('the container’s files', files.stdout);
    const memory = spawnSync(
      'docker',
      ['exec', id, 'sh', '-c', 'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; cat /run/drover/*.pem; env'],
      { maxBuffer: 2 ** 28 },
    );
    look('what processes inside show', memory.stdout);
    look('the engine’s description', Buffer.from(docker('inspect', id)));
    look('the workspace', spawnSync('tar', ['-C', this.workspace, '-c', '.'], { maxBuffer: 2 ** 28 }).stdout);
    look('the cache', spawnSync('tar', ['-C', this.#rig.cache, '-c', '.'], { maxBuffer: 2 ** 28 }).stdout);
    look('the log', Buffer.from(JSON.stringify(this.#rig.events)));
    if (files.stdout.length < 1_000_000) found.push('the container’s files could not be read');
    return found;
  }

  async settled(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 600));
  }

  async close(): Promise<void> {
    await this.#rig.clear();
    for (const server of this.#servers) server.close();
    await this.internet.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  #name(): string {
    return `drover-neighbour-${this.#session.slice(-8).toLowerCase()}`;
  }

  /** Another container, with an address of each kind. */
  #neighbour(): { address: string; address6: string; gateway: string } {
    const net = `${this.#name()}-4`;
    const six = `${this.#name()}-6`;
    const meta = `${this.#name()}-m`;
    const create = (...args: string[]) => docker('network', 'create', '--label', this.#label, ...args);
    create(net);
    create('--ipv6', '--subnet', `fd00:${randomBytes(2).toString('hex')}::/64`, six);
    create('--subnet', METADATA.subnet, meta);
    docker(
      'run',
      '-d',
      '--name',
      this.#name(),
      '--label',
      this.#label,
      '--network',
      net,
      IMAGE,
      'node',
      '-e',
      NEIGHBOUR,
    );
    docker('network', 'connect', six, this.#name());
    docker('network', 'connect', '--ip', METADATA.address, meta, this.#name());
    const format = (name: string, field: string) =>
      docker('inspect', '--format', `{{(index .NetworkSettings.Networks "${name}").${field}}}`, this.#name());
    return {
      address: format(net, 'IPAddress'),
      address6: format(six, 'GlobalIPv6Address'),
      gateway: format(net, 'Gateway'),
    };
  }

  /** A port of the host's, at an address the test made or at loopback. */
  async #hostPort(address: string): Promise<number> {
    const server = createServer((socket) => {
      this.#reached.push(`a port of the host at ${address}`);
      socket.end(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${REACHED}\n`);
      socket.on('error', () => socket.destroy());
    });
    this.#servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, address, resolve));
    return (server.address() as AddressInfo).port;
  }
}

const strangersPlaceholder = async () => ({ other: placeholderFor(mint.session(), CREDENTIALS.api as CredentialId) });

/** The secret as it is, and as base64 and URLs write it. */
function formsOf(secret: string): Buffer[] {
  const bytes = Buffer.from(secret);
  const cores = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
  });
  return [secret, encodeURIComponent(secret), bytes.toString('hex'), ...cores].map((form) => Buffer.from(form));
}

export const holdsSecret = (text: string, secret: string): boolean =>
  formsOf(secret).some((form) => text.includes(form.toString()));
