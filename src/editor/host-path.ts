import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import type { Project } from './project.ts';

/**
 * Where a path that an agent names lies on this machine: the agent sees the folder as its sandbox mounts it, as
 * `/workspace` or `/workspaces/<name>`, or at its own place. Undefined if it is not inside the folder.
 */
export function hostPath(project: Project, path: string): string | undefined {
  const mounted = /^\/workspaces?(?:\/|$)/.test(path) && !inside(project.path, path);
  const full = mounted ? fromMount(project, path) : isAbsolute(path) ? path : join(project.path, path);
  return inside(project.path, full) ? full : undefined;
}

function fromMount(project: Project, path: string): string {
  const [, root, ...rest] = path.split('/');
  return join(project.path, ...(root === 'workspaces' ? rest.slice(1) : rest));
}

function inside(folder: string, path: string): boolean {
  const way = relative(folder, resolve(path));
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
