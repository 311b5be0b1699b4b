import { isAbsolute, join, relative, resolve, sep } from 'node:path';

/**
 * Where a path that an agent names lies on this machine: the agent sees the folder as its sandbox mounts it, as
 * `/workspace` or `/workspaces/<name>`, or at its own place. Undefined if it is not inside the folder.
 */
export function hostPath(folder: string, path: string): string | undefined {
  const mounted = /^\/workspaces?(?:\/|$)/.test(path) && !inside(folder, path);
  const full = mounted ? fromMount(folder, path) : isAbsolute(path) ? path : join(folder, path);
  return inside(folder, full) ? full : undefined;
}

function fromMount(folder: string, path: string): string {
  const [, root, ...rest] = path.split('/');
  return join(folder, ...(root === 'workspaces' ? rest.slice(1) : rest));
}

function inside(folder: string, path: string): boolean {
  const way = relative(folder, resolve(path));
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
