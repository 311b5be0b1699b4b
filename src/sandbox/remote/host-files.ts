import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chmod, lstat, mkdir, readlink, rename, rm, rmdir, symlink, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { GuardedPath } from '../guard-rails.ts';

/** What a file of the workspace may never become from inside, wherever in it: git runs it, or is told by it what to run. */
const GIT_INSIDE =
  /(^|\/)\.git\/(modules\/.+\/|worktrees\/[^/]+\/)?(hooks(\/|$)|(config|config\.worktree|commondir)$)/i;
const TRUSTED = /^\.(vscode|devcontainer|devcontainer\.json|drover)(\/|$)/i;

/** Why a path is not brought back from a sandbox; undefined if it may be. */
export function refusal(
  path: string,
  kind: 'file' | 'folder' | 'link',
  guarded: readonly GuardedPath[],
): string | undefined {
  if (
    path === '' ||
    path.startsWith('/') ||
    path.split('/').some((part) => part === '..' || part === '.' || part === '')
  )
    return 'it is no path in the workspace';
  const isGitFile = /(^|\/)\.git$/i.test(path) && kind !== 'folder';
  const below = (one: GuardedPath) => path === one.path || path.startsWith(`${one.path}/`);
  const named = guarded.some((one) => one.how !== 'anchor' && !/(^|\/)\.git$/.test(one.path) && below(one));
  return TRUSTED.test(path) || GIT_INSIDE.test(path) || isGitFile || named
    ? 'it would be run or trusted on the host'
    : undefined;
}

/** Whether all folders above a path are real ones of the workspace: what is behind a link is somewhere else. */
export async function leadsOut(folder: string, path: string): Promise<boolean> {
  const parts = path.split('/').slice(0, -1);
  for (let depth = 1; depth <= parts.length; depth++) {
    const stats = await lstat(join(folder, ...parts.slice(0, depth))).catch(() => undefined);
    if (stats && !stats.isDirectory()) return true;
  }
  return false;
}

/** Writes a file as a whole or not at all; parents are made. The caller has asked `refusal` and `leadsOut`. */
export async function putFile(folder: string, path: string, mode: number, content: Readable): Promise<void> {
  const target = join(folder, path);
  await mkdir(join(target, '..'), { recursive: true });
  const fresh = `${target}.drover-${randomBytes(6).toString('hex')}`;
  try {
    await pipeline(content, createWriteStream(fresh, { flags: 'wx', mode: 0o600 }));
    await chmod(fresh, mode);
    await clearFolder(target);
    await rename(fresh, target);
  } finally {
    await rm(fresh, { force: true });
  }
}

/** Makes a link that says the same; nobody follows it here. */
export async function putLink(folder: string, path: string, to: string): Promise<void> {
  const target = join(folder, path);
  if ((await readlink(target).catch(() => undefined)) === to) return;
  await mkdir(join(target, '..'), { recursive: true });
  await clearFolder(target);
  await unlink(target).catch(() => {});
  await symlink(to, target);
}

export async function putFolder(folder: string, path: string, mode: number): Promise<void> {
  const target = join(folder, path);
  const stats = await lstat(target).catch(() => undefined);
  if (stats && !stats.isDirectory()) await unlink(target);
  await mkdir(target, { recursive: true });
  await chmod(target, mode);
}

/** Removes a file, a link, or an empty folder: one that holds something of the person's own stays. */
export async function removeOne(folder: string, path: string): Promise<void> {
  const target = join(folder, path);
  const stats = await lstat(target).catch(() => undefined);
  if (stats?.isDirectory()) await rmdir(target).catch(() => {});
  else if (stats) await unlink(target);
}

async function clearFolder(target: string): Promise<void> {
  const stats = await lstat(target).catch(() => undefined);
  if (stats?.isDirectory()) await rmdir(target);
}
