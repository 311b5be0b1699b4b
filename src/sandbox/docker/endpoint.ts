import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';

/** Where an engine listens. `host` is in DOCKER_HOST's form, so that the CLI can be pointed at the very same one. */
export interface EngineEndpoint {
  host: string;
  /** For people: why this one. */
  from: string;
  /** If it speaks TLS: a folder with ca.pem, cert.pem and key.pem, of which any may be missing. */
  certificates?: string;
  /** With TLS, any certificate of the engine's will do: the person said so. */
  unverified?: true;
}

const ContextMeta = z.object({
  Endpoints: z.object({ docker: z.object({ Host: z.string(), SkipTLSVerify: z.boolean().optional() }) }),
});
const DockerConfig = z.object({ currentContext: z.string().optional() });

/**
 * The engines to try, in order: what the person named (DOCKER_HOST, else the docker context) and nothing else;
 * with nothing named, the sockets where the common engines listen.
 */
export function engineEndpoints(env: NodeJS.ProcessEnv): EngineEndpoint[] {
  if (env.DOCKER_HOST) return [withCertificates({ host: env.DOCKER_HOST, from: 'DOCKER_HOST' }, env)];
  const context = contextEndpoint(env);
  if (context) return [context];
  return usualSockets(env).map((host) => ({ host, from: 'its usual place' }));
}

function withCertificates(endpoint: EngineEndpoint, env: NodeJS.ProcessEnv): EngineEndpoint {
  if (!env.DOCKER_TLS_VERIFY && !env.DOCKER_TLS) return endpoint;
  const certificates = env.DOCKER_CERT_PATH || dockerFolder(env);
  return { ...endpoint, certificates, ...(env.DOCKER_TLS_VERIFY ? {} : { unverified: true }) };
}

const dockerFolder = (env: NodeJS.ProcessEnv): string => env.DOCKER_CONFIG ?? join(env.HOME ?? homedir(), '.docker');

function contextEndpoint(env: NodeJS.ProcessEnv): EngineEndpoint | undefined {
  const folder = dockerFolder(env);
  const name = env.DOCKER_CONTEXT ?? readJson(join(folder, 'config.json'), DockerConfig)?.currentContext;
  if (!name || name === 'default') return undefined;
  const key = createHash('sha256').update(name).digest('hex');
  const endpoint = readJson(join(folder, 'contexts', 'meta', key, 'meta.json'), ContextMeta)?.Endpoints.docker;
  if (!endpoint?.Host) return undefined;
  const certificates = join(folder, 'contexts', 'tls', key, 'docker');
  const unverified = endpoint.SkipTLSVerify === true;
  return {
    host: endpoint.Host,
    from: `the docker context "${name}"`,
    ...(unverified || existsSync(certificates) ? { certificates } : {}),
    ...(unverified ? { unverified } : {}),
  };
}

function usualSockets(env: NodeJS.ProcessEnv): string[] {
  if (process.platform === 'win32') return ['npipe:////./pipe/docker_engine'];
  const home = env.HOME ?? homedir();
  // Where a login session keeps its sockets; a service or a container may not have been told.
  const runtime = env.XDG_RUNTIME_DIR ?? `/run/user/${process.getuid?.() ?? 0}`;
  const sockets = [
    '/var/run/docker.sock',
    join(home, '.docker/run/docker.sock'),
    join(home, '.docker/desktop/docker.sock'),
    join(home, '.orbstack/run/docker.sock'),
    join(home, '.rd/docker.sock'),
    ...below(join(home, '.colima'), 'docker.sock'),
    ...below(join(env.XDG_CONFIG_HOME ?? join(home, '.config'), 'colima'), 'docker.sock'),
    ...below(join(home, '.lima'), 'sock/docker.sock'),
    join(runtime, 'docker.sock'),
    join(runtime, 'podman/podman.sock'),
    '/run/podman/podman.sock',
    ...below(join(home, '.local/share/containers/podman/machine'), 'podman.sock'),
    ...below(join(home, '.lima'), 'sock/podman.sock'),
  ];
  return sockets.filter((path) => existsSync(path)).map((path) => `unix://${path}`);
}

/** The same socket of each profile or machine of an engine that has many; the usual one first. */
function below(folder: string, socket: string): string[] {
  let names: string[];
  try {
    names = readdirSync(folder).sort((a, b) => Number(b === 'default') - Number(a === 'default'));
  } catch {
    // That engine is not installed.
    return [];
  }
  return names.map((name) => join(folder, name, socket));
}

function readJson<T>(file: string, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    // A missing or odd file of the docker CLI's names no engine.
    return undefined;
  }
}

/** An engine on this machine, so that a bind mount means this machine's files. */
export function isLocal(host: string): boolean {
  if (host.startsWith('unix://') || host.startsWith('npipe://')) return true;
  // Even to a loopback address: behind it is a virtual machine or a tunnel, or one would not go by ssh.
  if (host.startsWith('ssh://')) return false;
  try {
    return ['localhost', '127.0.0.1', '[::1]'].includes(new URL(host.replace(/^tcp:/, 'http:')).hostname);
  } catch {
    return false;
  }
}
