import { type Dirent, lstatSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { SandboxUnavailable } from './sandbox.ts';

/**
 * What of a folder must not be written from inside a sandbox, because a file there is run or trusted on the host.
 * `hidden`: an empty folder stands in for it. `read_only`: it can be read. `anchor`: it can be written, but neither
 * moved nor removed, so that what is guarded below it stays where it is.
 */
export interface GuardedPath {
  /** Relative to the folder, with forward slashes. A parent comes before what is below it. */
  path: string;
  how: 'hidden' | 'read_only' | 'anchor';
}

/** Nested repositories and submodules are looked for so deep, among so many folders. */
const DEPTH = 3;
const MAX_FOLDERS = 1_000;
const MAX_REPOSITORIES = 40;

/**
 * The guarded paths of a folder, as it is now. A mount needs something to be mounted over: where there is nothing yet,
 * `standIns` says which empty folders have to be made first (git, and whoever looks for a file, do not see them).
 * Throws `SandboxUnavailable` if one of them is a link: what it leads to can't be guarded by its name.
 */
export function guardRails(folder: string): { guarded: GuardedPath[]; standIns: string[] } {
  const guarded: GuardedPath[] = [];
  const standIns: string[] = [];
  const guard = (path: string, how: GuardedPath['how']) => {
    const kind = kindOf(join(folder, path));
    if (kind === 'link')
      throw new SandboxUnavailable(
        'container',
        `${path} in this folder is a link, which can't be write-protected in a sandbox; make it a real file or folder, or use "workspace": "isolated".`,
      );
    if (kind === 'nothing') standIns.push(path);
    guarded.push({ path, how });
  };
  const rail = (path: string, how: GuardedPath['how']) => {
    for (const parent of parentsOf(path)) if (!guarded.some((one) => one.path === parent)) guard(parent, 'anchor');
    if (!guarded.some((one) => one.path === path)) guard(path, how);
  };
  rail('.drover', 'hidden');
  for (const path of ['.vscode', '.devcontainer', '.devcontainer.json']) rail(path, 'read_only');
  guardGit(folder, '', rail);
  for (const nested of nestedRepositories(folder)) guardGit(folder, `${nested}/`, rail);
  return { guarded, standIns };
}

/** `a/b/c` → `a`, `a/b`. A folder that could be moved away would take its guarded content along, and a new one would not be guarded. */
function parentsOf(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}

type Guard = (path: string, how: GuardedPath['how']) => void;

/** One repository: `at` is empty or ends in a slash. */
function guardGit(folder: string, at: string, guard: Guard): void {
  const git = `${at}.git`;
  // A worktree's or submodule's `.git` is a file that names the real place; no repository is yet to be made otherwise.
  if (kindOf(join(folder, git)) !== 'folder' || !isRepository(join(folder, git))) {
    guard(git, 'read_only');
    return;
  }
  guard(git, 'anchor');
  guardGitFolder(folder, git, guard);
  for (const place of namedInConfig(folder, at, git)) guard(place, 'read_only');
  for (const module of submoduleFolders(join(folder, git, 'modules')))
    guardGitFolder(folder, `${git}/${module}`, guard);
}

function guardGitFolder(folder: string, git: string, guard: Guard): void {
  guard(`${git}/hooks`, 'read_only');
  // Without it there is nothing to mount over, and an empty one would be litter of ours in a repository.
  for (const name of ['config', 'config.worktree', 'commondir'])
    if (kindOf(join(folder, git, name)) !== 'nothing') guard(`${git}/${name}`, 'read_only');
}

/** Hooks and further configuration that the repository's own takes from the folder: git runs them on the host too. */
function namedInConfig(folder: string, at: string, git: string): string[] {
  let text: string;
  try {
    text = readFileSync(join(folder, git, 'config'), 'utf8');
  } catch {
    return [];
  }
  const named = [...text.matchAll(/^\s*(hookspath|path)\s*=\s*"?([^"\n#;]+?)"?\s*$/gim)].map(([, key, value]) => {
    const included = key?.toLowerCase() === 'path';
    // An included file is looked for beside the one that includes it, hooks in the working folder.
    return { included, path: resolve(folder, included ? git : at, value ?? '') };
  });
  const usual = new Set([`${git}/hooks`, `${git}/config`, `${git}/config.worktree`, `${git}/commondir`]);
  return [
    ...new Set(
      named
        .filter(({ included, path }) => !included || kindOf(path) === 'file')
        .map(({ path }) => relative(folder, path).split(sep).join('/'))
        .filter((path) => path !== '' && !/^(\.\.(\/|$)|[A-Za-z]:|\/)/.test(path) && path !== git && !usual.has(path)),
    ),
  ];
}

function submoduleFolders(modules: string, at = 'modules', depth = 0): string[] {
  return foldersIn(modules).flatMap((name) => {
    const path = join(modules, name);
    if (isRepository(path))
      return [`${at}/${name}`, ...submoduleFolders(join(path, 'modules'), `${at}/${name}/modules`)];
    return depth < DEPTH ? submoduleFolders(path, `${at}/${name}`, depth + 1) : [];
  });
}

/** Folders below this one that have a `.git` of their own, relative to it, nearest first. */
function nestedRepositories(folder: string): string[] {
  const found: string[] = [];
  let level = foldersIn(folder);
  let seen = 0;
  for (let depth = 1; depth <= DEPTH; depth++) {
    const next: string[] = [];
    for (const path of level) {
      if (++seen > MAX_FOLDERS || found.length >= MAX_REPOSITORIES) return found;
      if (kindOf(join(folder, path, '.git')) !== 'nothing') found.push(path);
      if (depth < DEPTH) next.push(...foldersIn(join(folder, path)).map((name) => `${path}/${name}`));
    }
    level = next;
  }
  return found;
}

const NOT_ENTERED = new Set(['.git', '.drover', 'node_modules', '.venv']);

function foldersIn(path: string): string[] {
  let entries: Dirent[];
  try {
    entries = readdirSync(path, { withFileTypes: true });
  } catch {
    // Gone, or not ours to read: then nobody inside reads it either.
    return [];
  }
  return entries.filter((entry) => entry.isDirectory() && !NOT_ENTERED.has(entry.name)).map((entry) => entry.name);
}

/** As git itself decides whether a folder is a repository. */
const isRepository = (path: string): boolean => kindOf(join(path, 'HEAD')) !== 'nothing';

function kindOf(path: string): 'nothing' | 'link' | 'folder' | 'file' {
  try {
    const found = lstatSync(path);
    if (found.isSymbolicLink()) return 'link';
    return found.isDirectory() ? 'folder' : 'file';
  } catch {
    return 'nothing';
  }
}

/** Makes the empty folders that mounts need. Throws `SandboxUnavailable` where the folder can't be written to. */
export function makeStandIns(folder: string, standIns: readonly string[]): void {
  for (const path of standIns) {
    try {
      mkdirSync(join(folder, path), { recursive: true });
    } catch (error) {
      throw new SandboxUnavailable(
        'container',
        `${path} does not exist in this folder and can't be made, so it can't be kept from a sandbox either; make the folder ${dirname(join(folder, path))} writable.`,
        { cause: error },
      );
    }
  }
}

/** Takes the stand-ins away again, those that are still empty. Never throws. */
export function removeStandIns(folder: string, standIns: readonly string[]): void {
  for (const path of [...standIns].reverse()) {
    try {
      rmdirSync(join(folder, path));
    } catch {
      // Something is in it by now, so it is the person's own; or it is gone.
    }
  }
}

/**
 * Which file each guarded path is now, by number. A mount covers a file, not a name: if the host puts another file in
 * its place, as `git config` does, the mount is gone. Equal answers mean that the mounts made at the first still hold.
 */
export function identities(folder: string, guarded: readonly GuardedPath[]): Record<string, string> {
  return Object.fromEntries(
    guarded.map(({ path }) => {
      try {
        const { dev, ino } = lstatSync(join(folder, path), { bigint: true });
        // A stand-in becomes a repository without becoming another folder.
        const state = /(^|\/)\.git$/.test(path) && isRepository(join(folder, path)) ? ':repository' : '';
        return [path, `${dev}:${ino}${state}`];
      } catch {
        return [path, 'gone'];
      }
    }),
  );
}
