import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type Docker from 'dockerode';

/**
 * Folders of the workspace whose contents are run or trusted on the host: what is written there from inside
 * would get out. Where they exist they are mounted read-only.
 */
const READ_ONLY = ['.devcontainer', '.devcontainer.json', '.vscode', '.git/hooks'];
/** The sessions' own logs: an empty folder is mounted over them, so they can be neither read nor forged. */
const HIDDEN = '.drover';

export interface ProtectedPath {
  /** Relative to the workspace folder. */
  path: string;
  hidden: boolean;
}

/** What of this workspace folder must not be written from inside, as far as it exists now. */
export function protectedPaths(workspaceFolder: string): ProtectedPath[] {
  const there = (path: string) => existsSync(join(workspaceFolder, path));
  return [
    ...READ_ONLY.filter(there).map((path) => ({ path, hidden: false })),
    ...(there(HIDDEN) ? [{ path: HIDDEN, hidden: true }] : []),
  ];
}

/** Why a container does not hold what a sandbox promises; undefined if it does. */
export function weakness(info: Docker.ContainerInspectInfo, workspaceFolder: string): string | undefined {
  const { HostConfig: host, Mounts: mounts } = info;
  if (host.Privileged) return 'it is privileged';
  // A debugger's capability reaches only processes of the same container, and many prebuilt images ask for it.
  const added = (host.CapAdd ?? []).filter((name: string) => !/^(CAP_)?SYS_PTRACE$/i.test(name));
  if (added.length > 0) return `it adds the capabilities ${added.join(', ')}`;
  if (!(host.CapDrop ?? []).some((name: string) => name.toUpperCase() === 'ALL')) return 'it keeps capabilities';
  if (!(host.SecurityOpt ?? []).some((option: string) => option.startsWith('no-new-privileges')))
    return 'it allows new privileges';
  if (host.NetworkMode === 'host' || host.PidMode === 'host' || host.IpcMode === 'host')
    return "it shares the host's network, processes or memory";
  // An engine in a virtual machine shows host paths below a prefix of its own.
  const foreign = mounts.find(
    ({ Type, Source }) => Type === 'bind' && !`${Source}/`.includes(`${workspaceFolder.replace(/[\\/]+$/, '')}/`),
  );
  return foreign ? `it mounts ${foreign.Source} of the host` : undefined;
}
