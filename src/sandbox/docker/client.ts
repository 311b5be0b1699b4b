import { existsSync, readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { messageOf } from '../../protocol/errors.ts';
import { SandboxUnavailable } from '../sandbox.ts';
import { type EngineEndpoint, engineEndpoints, isLocal } from './endpoint.ts';
import { sshAgent } from './ssh-agent.ts';

/** ms. A local engine answers in a few, one that is started by the question in seconds; after that it hangs. */
const PING_MS = 10_000;
const REMOTE_PING_MS = 20_000;

export interface Engine {
  docker: Docker;
  endpoint: EngineEndpoint;
  version: string;
  /** The processor it runs containers for, as Go names it. */
  arch: string;
  kind: 'docker' | 'podman';
  /** It is on another machine, or as good as: what is mounted from this one's files is not there. */
  elsewhere: boolean;
  /** It runs as a person without root: the user 0 inside is that person outside, or with Podman whoever is asked for. */
  rootless: boolean;
}

/** For people: which engine, where, and why this one. */
export function describeEngine({ kind, rootless, version, endpoint, elsewhere }: Engine): string {
  const name = `${kind === 'podman' ? 'Podman' : 'Docker'} ${version}${rootless ? ' (rootless)' : ''}${elsewhere ? ', on another machine' : ''}`;
  return `${name} at ${endpoint.host} (from ${endpoint.from})`;
}

/**
 * Finds an engine that answers. dockerode is loaded here, at the first need, not with the extension.
 * Throws `SandboxUnavailable('engine')`.
 */
export async function connect(env: NodeJS.ProcessEnv): Promise<Engine> {
  const endpoints = engineEndpoints(env);
  const failures: string[] = [];
  for (const endpoint of endpoints) {
    try {
      return await open(endpoint, env);
    } catch (error) {
      failures.push(`${endpoint.host} (from ${endpoint.from}) ${why(endpoint, error)}`);
    }
  }
  throw new SandboxUnavailable('engine', noEngine(failures));
}

function noEngine(failures: string[]): string {
  const advice = 'start Docker (or set DOCKER_HOST), or use an environment of type "os"';
  if (failures.length === 0)
    return `No container engine was found on this machine, so the sandbox can't start; ${advice}.`;
  return `No container engine answers (${failures.join('; ')}), so the sandbox can't start; ${advice}.`;
}

/** An engine that is there but not for us is another trouble than one that is not there. */
function why(endpoint: EngineEndpoint, error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'EACCES' || code === 'EPERM') {
    const socket = endpoint.host.replace(/^unix:\/\//, '');
    return `is not open to the user ${userName()}: add that user to the group that owns ${socket} (usually "docker", then log in again), or run a rootless engine`;
  }
  const { certificates } = endpoint;
  if (certificates && typeof code === 'string') {
    const said = firstLine(messageOf(error));
    if (UNTRUSTED.test(code))
      return `showed a certificate that is not trusted (${said}): see that ${join(certificates, 'ca.pem')} is of the authority that signed it, and that the address is one it was made for`;
    if (/^ERR_SSL_|^ECONNRESET$/.test(code))
      return `ended the TLS connection (${said}): see that it speaks TLS at this address and accepts cert.pem and key.pem in ${certificates}`;
  }
  return `does not answer: ${firstLine(messageOf(error))}`;
}

/** What is said of a certificate that can't be verified, as Node and OpenSSL name it. */
const UNTRUSTED = /SIGNED|UNABLE_TO|^CERT_|ALTNAME|INVALID_CA/;

async function open(endpoint: EngineEndpoint, env: NodeJS.ProcessEnv): Promise<Engine> {
  const { default: Dockerode } = await import('dockerode');
  const docker = new Dockerode(connection(endpoint, env));
  const hung = new Promise<never>((_, reject) => {
    const ms = isLocal(endpoint.host) ? PING_MS : REMOTE_PING_MS;
    setTimeout(() => reject(new Error(`no answer within ${ms / 1000} s`)), ms).unref();
  });
  const [version, info] = await Promise.race([Promise.all([docker.version(), docker.info()]), hung]);
  const podman = version.Components?.some(({ Name }) => /podman/i.test(Name)) ?? false;
  const options: string[] = info.SecurityOptions ?? [];
  // Docker says it among its options, Podman in a field of its own.
  const rootless = options.some((option) => /\brootless\b/.test(option)) || info.Rootless === true;
  const kind = podman ? 'podman' : 'docker';
  return {
    docker,
    endpoint,
    version: version.Version,
    arch: version.Arch,
    kind,
    rootless,
    elsewhere: !isLocal(endpoint.host),
  };
}

function connection(endpoint: EngineEndpoint, env: NodeJS.ProcessEnv): Docker.DockerOptions {
  const { host, certificates, unverified } = endpoint;
  if (host.startsWith('ssh://')) {
    const dialled = { protocol: 'http' as const, host: 'docker', port: 80, agent: sshAgent(host, env) };
    return dialled;
  }
  if (host.startsWith('unix://')) return atSocket(host.slice('unix://'.length));
  if (host.startsWith('npipe://')) return atSocket(host.slice('npipe://'.length));
  const url = new URL(host.replace(/^tcp:/, certificates ? 'https:' : 'http:'));
  const options: Docker.DockerOptions = {
    protocol: certificates ? 'https' : 'http',
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port || (certificates ? 2376 : 2375),
  };
  if (!certificates) return options;
  const read = (name: string) => {
    const file = join(certificates, name);
    return existsSync(file) ? readFileSync(file) : undefined;
  };
  const [ca, cert, key] = ['ca.pem', 'cert.pem', 'key.pem'].map(read);
  // Without an authority of its own those are trusted that all programs trust.
  const checked = unverified ? { rejectUnauthorized: false } : ca ? { ca } : {};
  const secured = { ...options, agent: new Agent({ ...checked, ...(cert && key ? { cert, key } : {}) }) };
  return secured;
}

/** The client takes what is left out here from this process's DOCKER_HOST, and a host before a socket. */
function atSocket(socketPath: string): Docker.DockerOptions {
  const options = { socketPath, host: undefined };
  return options as Docker.DockerOptions;
}

/** A user may have a number only, as in many containers. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'of this process');
  }
}

const firstLine = (text: string): string => text.split('\n', 1)[0] ?? '';

/** The HTTP status of an engine's refusal, or undefined if it never answered. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number'
    ? error.statusCode
    : undefined;
}

/** What the engine said, without dockerode's wrapping. */
export function reasonOf(error: unknown): string {
  if (error instanceof Error && 'json' in error) {
    const body = error.json;
    if (typeof body === 'object' && body !== null && 'message' in body && typeof body.message === 'string')
      return firstLine(body.message);
  }
  return firstLine(messageOf(error));
}
