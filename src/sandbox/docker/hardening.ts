import { relative, resolve, sep } from 'node:path';
import type Docker from 'dockerode';
import type { GuardedPath } from '../guard-rails.ts';
import { NO_NETWORK, type PlannedMount } from './plan.ts';

/** What a container promises about a folder: that it is seen at `target`, with these guard rails. */
export interface Promised {
  /** Absolute path of the folder on the host; undefined = its files are in a volume. */
  folder: string | undefined;
  target: string;
  guarded: readonly GuardedPath[];
  /** The network it shares with other services, seen to lead nowhere else; undefined = none at all. */
  network?: string | undefined;
  /** What its way out mounts into it. */
  wayOut?: PlannedMount | undefined;
}

/** Why a container does not hold what a sandbox promises; undefined if it does. */
export function weakness(info: Docker.ContainerInspectInfo, promised: Promised): string | undefined {
  const { HostConfig: host } = info;
  if (host.Privileged) return 'it is privileged';
  // A debugger's capability reaches only processes of the same container, and many prebuilt images ask for it.
  const added = (host.CapAdd ?? []).filter((name: string) => !/^(CAP_)?SYS_PTRACE$/i.test(name));
  if (added.length > 0) return `it adds the capabilities ${added.join(', ')}`;
  if (!dropsAll(host.CapDrop ?? [])) return 'it keeps capabilities';
  if (!(host.SecurityOpt ?? []).some((option: string) => option.startsWith('no-new-privileges')))
    return 'it allows new privileges';
  if ([host.NetworkMode, host.PidMode, host.IpcMode].includes('host'))
    return "it shares the host's network, processes or memory";
  if (host.NetworkMode !== (promised.network ?? NO_NETWORK)) return 'it has a network past the egress proxy';
  return weakMount(info, promised);
}

/** Podman names each capability that it drops; of those that make a user root, none may be missing. */
const dropsAll = (dropped: readonly string[]): boolean => {
  const names = new Set(dropped.map((name) => name.toUpperCase().replace(/^CAP_/, '')));
  return (
    names.has('ALL') || ['DAC_OVERRIDE', 'SETUID', 'SETGID', 'CHOWN', 'SYS_CHROOT'].every((name) => names.has(name))
  );
};

function weakMount(
  info: Docker.ContainerInspectInfo,
  { folder, target, guarded, wayOut }: Promised,
): string | undefined {
  const isWayOut = ({ Destination, RW }: { Destination: string; RW: boolean }) => !RW && Destination === wayOut?.target;
  const binds = info.Mounts.filter((mount) => mount.Type === 'bind' && !isWayOut(mount));
  for (const { Source, Destination, RW } of binds) {
    const path = folder === undefined ? undefined : pathIn(folder, Source);
    if (path === undefined) return `it mounts ${Source} of the host`;
    const inPlace = Destination === (path === '' ? target : `${target}/${path}`);
    if (RW && !inPlace && touches(path, guarded)) return `it mounts ${Source} a second time, without guard rails`;
  }
  if (folder === undefined) return undefined;
  const open = guarded.find(
    ({ path, how }) =>
      how === 'read_only' && !binds.some(({ Destination, RW }) => !RW && Destination === `${target}/${path}`),
  );
  return open ? `it can write to ${open.path}, which is run on the host` : undefined;
}

/** Path of a mount's source in the folder. An engine in a virtual machine shows host paths below a prefix of its own. */
function pathIn(folder: string, source: string): string | undefined {
  const whole = `${source}/`;
  const own = `${folder.replace(/[\\/]+$/, '')}/`;
  const at = whole.indexOf(own);
  return at === -1 ? undefined : whole.slice(at + own.length).replace(/\/$/, '');
}

/** Whether a path of the host, seen elsewhere inside, would be a way round the guard rails. */
export function opensGuarded(folder: string, source: string, guarded: readonly GuardedPath[]): boolean {
  return touches(relative(folder, resolve(source)).split(sep).join('/'), guarded);
}

const touches = (path: string, guarded: readonly GuardedPath[]): boolean =>
  guarded.some(
    (one) =>
      path === '' ||
      path === one.path ||
      one.path.startsWith(`${path}/`) ||
      (one.how !== 'anchor' && path.startsWith(`${one.path}/`)),
  );
