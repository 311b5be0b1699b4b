import { realpathSync } from 'node:fs';
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';
import { SandboxUnavailable } from '../sandbox.ts';
import type { DevcontainerConfig } from './devcontainer-config.ts';
import type { ProtectedPath } from './hardening.ts';
import { LABEL } from './labels.ts';

export interface HardenInput {
  config: DevcontainerConfig;
  /** Absolute path of the devcontainer.json. */
  file: string;
  workspaceFolder: string;
  protect: readonly ProtectedPath[];
  limits: { memory_mib?: number | undefined; cpus?: number | undefined; pids?: number | undefined };
}

export interface Hardened {
  config: DevcontainerConfig;
  /** What of the file is not done, in words. */
  leftOut: string[];
}

/**
 * A devcontainer.json can open any door of the host: it is a file of the workspace, which the sandbox may write to.
 * So what would run on the host, mount the host's files or add privileges is left out, and said.
 */
export function harden(input: HardenInput): Hardened {
  const { file, workspaceFolder } = input;
  const leftOut: string[] = [];
  const config: DevcontainerConfig = { ...input.config, init: true };
  if (config.dockerComposeFile)
    throw new SandboxUnavailable(
      'container',
      'This devcontainer.json uses Docker Compose, whose services Drover can\'t close off yet; use one with an "image" or a Dockerfile, or an environment of type "image".',
    );
  for (const key of ['initializeCommand', 'privileged', 'capAdd', 'securityOpt'] as const) {
    if (config[key] === undefined) continue;
    leftOut.push(key === 'initializeCommand' ? 'initializeCommand (it would run outside the sandbox)' : key);
    delete config[key];
  }
  const inside = (source: string) => isInside(workspaceFolder, source.replaceAll(LOCAL_FOLDER, workspaceFolder));
  config.mounts = (config.mounts ?? []).filter((mount) => {
    const kept = mountAllowed(mount, inside);
    if (!kept) leftOut.push(`the mount ${typeof mount === 'string' ? mount : JSON.stringify(mount)}`);
    return kept;
  });
  if (config.workspaceMount && !mountAllowed(config.workspaceMount, inside)) {
    leftOut.push('workspaceMount (it lies outside this folder)');
    delete config.workspaceMount;
    delete config.workspaceFolder;
  }
  checkBuild(config, file, workspaceFolder, leftOut);
  const kept = allowedRunArgs(config.runArgs ?? [], inside, leftOut);
  const target = config.workspaceFolder ?? `/workspaces/${workspaceFolder.split(/[\\/]/).findLast(Boolean)}`;
  config.runArgs = [...kept, ...ourRunArgs(input, target)];
  return { config, leftOut };
}

const LOCAL_FOLDER = /\$\{localWorkspaceFolder\}|\$\{localWorkspaceFolder:[^}]*\}/g;

/** Whether a path lies in the workspace, after links; one that does not exist is judged by its text. */
function isInside(workspaceFolder: string, source: string): boolean {
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

function allowedRunArgs(args: readonly string[], inside: (source: string) => boolean, leftOut: string[]): string[] {
  const kept: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? '';
    const at = arg.startsWith('--') ? arg.indexOf('=') : -1;
    const name = at === -1 ? arg : arg.slice(0, at);
    const takesValue = [WITH_VALUE, MOUNTING, NETWORK, REFUSED_WITH_VALUE].some((set) => set.has(name));
    const value = at === -1 ? (takesValue ? args[++i] : undefined) : arg.slice(at + 1);
    if (runArgAllowed(name, value, inside)) kept.push(...(takesValue && at === -1 ? [arg, value ?? ''] : [arg]));
    else leftOut.push(`the run argument ${value === undefined || at !== -1 ? arg : `${arg} ${value}`}`);
  }
  return kept;
}

function runArgAllowed(name: string, value: string | undefined, inside: (source: string) => boolean): boolean {
  if (WITHOUT_VALUE.has(name)) return value === undefined || value === 'true';
  if (value === undefined) return false;
  if (WITH_VALUE.has(name)) return true;
  if (NETWORK.has(name)) return value !== 'host' && !value.startsWith('container:');
  if (name === '--mount') return mountAllowed(value, inside);
  if (!MOUNTING.has(name)) return false;
  const source = value.split(':')[0] ?? '';
  return !value.includes(':') || !/[/\\.~$]/.test(source) || inside(source);
}

function ourRunArgs(input: HardenInput, target: string): string[] {
  const { limits, workspaceFolder } = input;
  const covers = input.protect.flatMap(({ path, hidden }) => [
    '--mount',
    hidden
      ? `type=tmpfs,target=${target}/${path},tmpfs-mode=0555`
      : `type=bind,source=${workspaceFolder}/${path},target=${target}/${path},readonly`,
  ]);
  return [
    '--cap-drop=ALL',
    '--security-opt=no-new-privileges',
    `--label=${LABEL.inside}=${target}`,
    ...(limits.memory_mib ? [`--memory=${limits.memory_mib}m`, `--memory-swap=${limits.memory_mib}m`] : []),
    ...(limits.cpus ? [`--cpus=${limits.cpus}`] : []),
    ...(limits.pids ? [`--pids-limit=${limits.pids}`] : []),
    ...covers,
  ];
}
