import type { Dirent } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionId } from '../../protocol/ids.ts';
import { type Base, copyPaths, readBase, stampOf } from './base.ts';
import { type Entry, entryAt, entryOf, isMissing, sameEntry } from './entry.ts';
import { ignoredOf, isOwn, repository } from './git.ts';

/** One file that the session has changed in its copy. */
export interface Change {
  /** Relative to the workspace folder, with slashes. */
  path: string;
  change: 'added' | 'modified' | 'deleted';
  /** As it was when the copy was made; null if it was not there. */
  base: Entry | null;
  /** As it is in the copy; null if it is not there any more. */
  now: Entry | null;
  /** `mine`: the folder's file is as it was. `same`: it is what the session made. `theirs`: the person changed it. */
  folder: 'mine' | 'same' | 'theirs';
}

/**
 * What a session has changed in its copy since that was made, by path; without what git ignores, and never anything of
 * a repository itself. null if the session has no copy.
 */
export async function changesIn(workspaceFolder: string, session: SessionId): Promise<Change[] | null> {
  const paths = copyPaths(workspaceFolder, session);
  const base = await readBase(paths.base);
  if (!base) return null;
  const now = await new Looking(workspaceFolder, paths.copy, base).run();
  const changes: Change[] = [];
  for (const path of new Set([...Object.keys(base.files), ...now.keys()])) {
    const [before, after] = [entryIn(base, path), now.get(path) ?? null];
    if (sameEntry(before, after)) continue;
    const change = before === null ? 'added' : after === null ? 'deleted' : 'modified';
    const theirs = await entryAt(workspaceFolder, path);
    const folder =
      theirs !== 'other' && sameEntry(theirs, after)
        ? 'same'
        : theirs !== 'other' && sameEntry(theirs, before)
          ? 'mine'
          : 'theirs';
    changes.push({ path, change, base: before, now: after, folder });
  }
  return changes.filter((one) => one.folder !== 'same').sort((a, b) => (a.path < b.path ? -1 : 1));
}

const entryIn = (base: Base, path: string): Entry | null => {
  const known = base.files[path];
  return known ? { kind: known.kind, mode: known.mode, sha256: known.sha256 } : null;
};

/** One look through a copy. Nothing in it is followed, run or asked: an agent may have written all of it. */
class Looking {
  readonly #folder: string;
  readonly #copy: string;
  readonly #base: Base;
  readonly #found = new Map<string, Entry>();
  /** Folders that the base has files in. */
  readonly #known = new Set<string>();
  readonly #ignored: Set<string>;

  constructor(folder: string, copy: string, base: Base) {
    this.#folder = folder;
    this.#copy = copy;
    this.#base = base;
    this.#ignored = new Set(base.ignored);
    for (const path of Object.keys(base.files)) {
      for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1))
        this.#known.add(path.slice(0, at + 1));
    }
  }

  async run(): Promise<Map<string, Entry>> {
    const rules = (await repository(this.#folder)) !== null;
    let folders = [''];
    while (folders.length > 0) {
      const fresh: string[] = [];
      for (const folder of folders) await this.#look(folder, fresh);
      // What is new is asked about in one go; new folders are entered only if they count.
      const ignored = rules ? await ignoredOf(this.#folder, fresh) : new Set<string>();
      const counting = fresh.filter((path) => !ignored.has(path));
      for (const path of counting) if (!path.endsWith('/')) await this.#take(path);
      folders = counting.filter((path) => path.endsWith('/'));
    }
    return this.#found;
  }

  /** Takes in what the base knows of a folder and those below, and lists what it does not know. */
  async #look(folder: string, fresh: string[]): Promise<void> {
    for (const entry of await entriesOf(join(this.#copy, folder))) {
      const path = `${folder}${entry.name}${entry.isDirectory() ? '/' : ''}`;
      if (entry.name === '.git' || isOwn(path) || this.#ignored.has(path)) continue;
      if (entry.isDirectory() && this.#known.has(path)) await this.#look(path, fresh);
      else if (this.#base.files[path]) await this.#take(path);
      else fresh.push(path);
    }
  }

  async #take(path: string): Promise<void> {
    const full = join(this.#copy, path);
    const info = await lstat(full).catch(() => undefined);
    if (!info) return;
    const known = entryIn(this.#base, path);
    const untouched = known !== null && this.#base.files[path]?.stamp === stampOf(info);
    const entry = untouched ? known : await entryOf(full, info);
    if (entry) this.#found.set(path, entry);
  }
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}
