import { constants } from 'node:fs';
import { cp, mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { git } from './git.ts';

/** A repository whose objects are larger, in KiB, comes along with its newest commits only. */
const WHOLE_KIB = 1024 * 1024;
const NEWEST = 200;

/**
 * Gives a copy a repository of its own: the same branches, tags and HEAD, nothing shared with the person's. Objects are
 * copied, never linked: a link would let the sandbox write into the person's repository. Remotes stay behind, since
 * their addresses may hold credentials; so do hooks and settings. Returns what is not as in the original.
 */
export async function clonePrivately(folder: string, copy: string): Promise<string[]> {
  const into = join(copy, '.git');
  const large = (await objectsKib(folder)) > WHOLE_KIB;
  const how = large
    ? ['--depth', String(NEWEST), '--no-single-branch', `file://${folder}`]
    : ['--no-hardlinks', folder];
  await git(folder, ['clone', '--quiet', '--bare', '--template=', ...how, into]);
  const own = (...args: string[]) => git(copy, ['--git-dir', into, ...args]);
  await own('config', 'core.bare', 'false');
  await own('remote', 'remove', 'origin');
  for (const name of ['user.name', 'user.email']) {
    const value = (await git(folder, ['config', name]).catch(() => '')).trim();
    if (value) await own('config', name, value);
  }
  await mkdir(join(into, 'hooks'), { recursive: true });
  // A branch that has no commit yet has no tree either.
  await own('--work-tree', copy, 'read-tree', 'HEAD').catch(() => undefined);
  await copyModules(folder, into);
  return large ? [`commits before the newest ${NEWEST} of each branch`] : [];
}

async function objectsKib(folder: string): Promise<number> {
  const said = await git(folder, ['count-objects', '-v']);
  const kib = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(said)?.[1] ?? 0);
  return kib('size') + kib('size-pack');
}

/** Submodules keep their repositories in their parent's. */
async function copyModules(folder: string, into: string): Promise<void> {
  const from = (await git(folder, ['rev-parse', '--path-format=absolute', '--git-path', 'modules'])).trim();
  const there = await stat(from).catch(() => undefined);
  if (!there?.isDirectory()) return;
  await cp(from, join(into, 'modules'), { recursive: true, mode: constants.COPYFILE_FICLONE, verbatimSymlinks: true });
}
