import { realpathSync } from 'node:fs';
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import type { GuardedPath } from '../guard-rails.ts';
import { SandboxUnavailable } from '../sandbox.ts';
import type { DevcontainerConfig } from './devcontainer-config.ts';
import { opensGuarded } from './hardening.ts';
import { type CreationPlan, mountArgument, runArgs } from './plan.ts';

export interface HardenInput {
  config: DevcontainerConfig;
  /** Absolute path of the devcontainer.json. */
  file: string;
  /** The folder that is mounted, absolute. */
  folder: string;
  guarded: readonly GuardedPath[];
  /** The engine does not see this machine's files: nothing of the folder can be mounted. */
  elsewhere?: boolean;
  /** What our container is to be made with if the folder is mounted there. The first mount is the folder's own. */
  planAt(target: string): CreationPlan;
}

export interface Hardened {
  config: DevcontainerConfig;
  /** Where the folder is inside. */
  target: string;
  /** What of the file is not done, in words. */
  leftOut: string[];
}

/** Where the specification mounts a folder of this path. */
export const usualTarget = (folder: string): string => `/workspaces/${folder.split(/[\\/]/).findLast(Boolean)}`;

/**
 * A devcontainer.json can open any door of the host: it comes with the folder, from whoever wrote that.
 * So what would run on the host, mount the host's files or add privileges is left out, and said.
 */
export function harden(input: HardenInput): Hardened {
  const { file, folder } = input;
  const leftOut: string[] = [];
  const config: DevcontainerConfig = { ...input.config, init: true };
  for (const key of ['initializeCommand', 'privileged', 'capAdd', 'securityOpt'] as const) {
    if (config[key] === undefined) continue;
    leftOut.push(key === 'initializeCommand' ? 'initializeCommand (it would run outside the sandbox)' : key);
    delete config[key];
  }
  const inside = input.elsewhere ? () => false : mountableIn(folder, input.guarded);
  config.mounts = (config.mounts ?? []).filter((mount) => {
    const kept = mountAllowed(mount, inside);
    if (!kept) leftOut.push(`the mount ${typeof mount === 'string' ? mount : JSON.stringify(mount)}`);
    return kept;
  });
  const target = mountTarget(config, folder, leftOut);
  checkBuild(config, file, folder, leftOut);
  const plan = input.planAt(target);
  const [workspace, ...others] = plan.mounts;
  if (workspace) config.workspaceMount = mountArgument(workspace);
  config.workspaceFolder ??= target;
  const kept = allowedRunArgs(config.runArgs ?? [], { inside, ownNetwork: plan.network !== undefined }, leftOut);
  config.runArgs = [...kept, ...runArgs({ ...plan, mounts: others })];
  return { config, target, leftOut };
}

/** The file may say where the folder is mounted; that it is this folder, whole, is ours to say. */
function mountTarget(config: DevcontainerConfig, folder: string, leftOut: string[]): string {
  const usual = usualTarget(folder);
  if (!config.workspaceMount) return config.workspaceFolder ?? usual;
  const mount = Object.fromEntries(config.workspaceMount.split(',').map(fieldOf));
  const source = (mount.source ?? mount.src ?? '').replaceAll(LOCAL_FOLDER, folder);
  const target = mount.target ?? mount.dst ?? mount.destination;
  if (mount.type === 'bind' && target?.startsWith('/') && !target.includes('${') && resolve(source) === resolve(folder))
    return target.replace(/\/+$/, '');
  leftOut.push('workspaceMount (Drover mounts this folder, whole)');
  const asked = config.workspaceFolder;
  if (asked !== usual && !asked?.startsWith(`${usual}/`)) delete config.workspaceFolder;
  return usual;
}

/** Whether a path of the host may be mounted. */
export type MountCheck = (source: string) => boolean;

/** For mounts of the file's own: in the folder, and no second way to what is guarded. */
export const mountableIn =
  (folder: string, guarded: readonly GuardedPath[]): MountCheck =>
  (source) => {
    const path = source.replaceAll(LOCAL_FOLDER, folder);
    return isInside(folder, path) && !opensGuarded(folder, path, guarded);
  };

const LOCAL_FOLDER = /\$\{localWorkspaceFolder\}|\$\{localWorkspaceFolder:[^}]*\}/g;

/** Whether a path lies in the workspace, after links; one that does not exist is judged by its text. */
export function isInside(workspaceFolder: string, source: string): boolean {
  if (source.includes('${')) return false;
  const real = (path: string) => {
    try {
      return realpathSync(path);
    } catch {
      return resolve(path);
    }
  };
  const way = relative(real(workspaceFolder), real(source));
  return way === '' || (!isAbsolute(way) && way !== '..' && !way.startsWith(`..${sep}`));
}

function mountAllowed(
  mount: string | { type?: string | undefined; source?: string | undefined },
  inside: (source: string) => boolean,
): boolean {
  const fields: Record<string, unknown> =
    typeof mount === 'string' ? Object.fromEntries(mount.split(',').map(fieldOf)) : { ...mount };
  const source = String(fields.source ?? fields.src ?? '');
  const type = fields.type ?? 'volume';
  if (type === 'tmpfs') return true;
  if (type === 'volume') return !/[/\\]/.test(source) && !('volume-opt' in fields);
  return type === 'bind' && inside(source);
}

function fieldOf(part: string): [string, string] {
  const at = part.indexOf('=');
  return at === -1 ? [part.trim(), ''] : [part.slice(0, at).trim(), part.slice(at + 1).trim()];
}

function checkBuild(config: DevcontainerConfig, file: string, workspaceFolder: string, leftOut: string[]): void {
  if (config.build && 'options' in config.build) {
    leftOut.push('build.options');
    const { options: _, ...build } = config.build;
    config.build = build;
  }
  const context = config.build?.context ?? config.context;
  if (context !== undefined && !isInside(workspaceFolder, resolve(dirname(file), context)))
    throw new SandboxUnavailable(
      'container',
      `The build context "${context}" in devcontainer.json lies outside this folder, so it is not read; move what the build needs into the folder.`,
    );
}

/** `docker run` options that open no door; by whether they take a value. Others are left out. */
const WITH_VALUE = new Set(
  `-e --env -h --hostname -l --label -u --user -w --workdir -m --memory --memory-swap --memory-reservation --shm-size
  --cpus --cpu-shares --cpuset-cpus --pids-limit --ulimit --tmpfs --add-host --dns --dns-search --dns-option --gpus
  --platform --entrypoint --expose -p --publish --cap-drop --stop-timeout --stop-signal`.split(/\s+/),
);
const WITHOUT_VALUE = new Set(['--init', '--read-only', '-t', '--tty', '-i', '--interactive']);
const MOUNTING = new Set(['-v', '--volume', '--mount']);
const NETWORK = new Set(['--network', '--net']);
const REFUSED_WITH_VALUE = new Set(
  `--cap-add --security-opt --pid --ipc --uts --userns --cgroupns --device --volumes-from --env-file --label-file --name
  --runtime --cgroup-parent --sysctl --group-add --cidfile --restart --link --device-cgroup-rule`.split(/\s+/),
);

interface Allowed {
  inside(source: string): boolean;
  /** Ours is the only network. */
  ownNetwork: boolean;
}

function allowedRunArgs(args: readonly string[], allowed: Allowed, leftOut: string[]): string[] {
  const kept: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? '';
    const at = arg.startsWith('--') ? arg.indexOf('=') : -1;
    const name = at === -1 ? arg : arg.slice(0, at);
    const takesValue = [WITH_VALUE, MOUNTING, NETWORK, REFUSED_WITH_VALUE].some((set) => set.has(name));
    const value = at === -1 ? (takesValue ? args[++i] : undefined) : arg.slice(at + 1);
    if (runArgAllowed(name, value, allowed)) kept.push(...(takesValue && at === -1 ? [arg, value ?? ''] : [arg]));
    else leftOut.push(`the run argument ${value === undefined || at !== -1 ? arg : `${arg} ${value}`}`);
  }
  return kept;
}

function runArgAllowed(name: string, value: string | undefined, { inside, ownNetwork }: Allowed): boolean {
  if (WITHOUT_VALUE.has(name)) return value === undefined || value === 'true';
  if (value === undefined) return false;
  if (WITH_VALUE.has(name)) return true;
  if (NETWORK.has(name)) return !ownNetwork && value !== 'host' && !value.startsWith('container:');
  if (name === '--mount') return mountAllowed(value, inside);
  if (!MOUNTING.has(name)) return false;
  const source = value.split(':')[0] ?? '';
  return !value.includes(':') || !/[/\\.~$]/.test(source) || inside(source);
}
