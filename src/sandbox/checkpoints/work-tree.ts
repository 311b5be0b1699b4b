import { randomUUID } from 'node:crypto';
import { closeSync, constants, lstatSync, openSync, type Stats } from 'node:fs';
import { copyFile, readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextRound } from 'node:timers/promises';
import { DroverError } from '../../protocol/errors.ts';
import type { SessionId } from '../../protocol/ids.ts';
import { type BytePath, joinPaths, splitPaths, toBytes } from './byte-path.ts';
import { changesSince } from './commit.ts';
import { excludes } from './excludes.ts';
import type { FileChange } from './raw-diff.ts';
import type { Repository } from './repository.ts';

/** A file that is in the folder and not in the checkpoint. */
export interface Skipped {
  path: BytePath;
  why: 'large' | 'unreadable';
  bytes: number;
}

export interface Snapshot {
  tree: string;
  skipped: Skipped[];
  /** What changed since the tree it was asked for, where that was found out on the way. */
  changes?: Promise<FileChange[]>;
}

/** A workspace of more files that nothing excludes is not kept: each checkpoint would take many seconds. */
const MAX_FILES = 200_000;
/** A larger file is left out of checkpoints, and named. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024;
/** What one checkpoint may add; files beyond it are left out, and named. */
const MAX_NEW_BYTES = 2 * 1024 * 1024 * 1024;
/** More new files than this go into one pack: several times faster than a file for each. */
const MANY = 500;
const INTO_ONE_PACK = 'core.bigFileThreshold=1';
/** Files that are looked at before other work gets its turn. */
const SLICE = 500;
/** Repositories inside repositories that are looked into. */
const MAX_NESTING = 10;
/** The name stands for a folder's first file for a moment: git goes into folders that it knows files of. */
const SEED = '.drover-inside';
const EMPTY_BLOB = 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391';
/** Git keeps its own files out of every tree. */
const OF_GIT = /(^|\/)\.git(\/|$)/i;
const OURS = '.drover/';

export class TooManyFiles extends DroverError {
  constructor(count: number) {
    super(
      'tool',
      `The folder has ${count} files that no .gitignore leaves out, so no checkpoints of it are kept: they would take too long. Name what is made from other files in a .gitignore to have them.`,
    );
  }
}

/** A work folder of one session, and git's index of it. One process uses it, one call at a time. */
export class WorkTree {
  readonly #repository: Repository;
  readonly #session: SessionId;
  readonly #folder: string;
  /** Folders of the same files: their sessions' indexes can be begun from. */
  readonly #shared: boolean;
  #index: string | undefined;
  /** The tree of the index, if nothing has changed in it since. */
  #tree: string | null = null;

  constructor(repository: Repository, of: { session: SessionId; folder: string; shared: boolean }) {
    this.#repository = repository;
    this.#session = of.session;
    this.#folder = of.folder;
    this.#shared = of.shared;
  }

  /** Where git stands for this folder. */
  async place(): Promise<{ index: string; workTree: string }> {
    this.#index ??= await this.#openIndex();
    return { index: this.#index, workTree: this.#folder };
  }

  /** False while the session has no folder of its own yet. */
  exists(): Promise<boolean> {
    return stat(this.#folder).then(
      (found) => found.isDirectory(),
      () => false,
    );
  }

  /** The index no longer says what the last snapshot said. */
  moved(): void {
    this.#tree = null;
  }

  /**
   * Keeps the files as they are now. Throws `GitMissing`, `GitFailed`, `TooManyFiles`.
   * @param since a tree; what changed since then is looked for while the new one is still being made
   */
  async snapshot(since?: string): Promise<Snapshot> {
    const place = await this.place();
    // First, and not beside git, which takes all processors: the listing would begin late.
    const untracked = await this.#untracked();
    const [changed, found] = await Promise.all([
      this.#repository.run(place, ['diff-files', '-z', '--name-only']).then(splitPaths),
      untracked(),
    ]);
    const inside = await this.#inside(found, untracked);
    if (inside.added.length > MAX_FILES) throw new TooManyFiles(inside.added.length);
    const { wanted, removed, skipped } = await this.#sort([...changed, ...inside.seeds], inside.added);
    // What is gone comes first, so that a file can take a folder's place.
    if (removed.length > 0) {
      await this.#repository.run(place, ['update-index', '-z', '--force-remove', '--stdin'], {
        stdin: joinPaths(removed),
      });
    }
    if (wanted.length > 0) {
      const args = ['update-index', '-z', '--add', '--remove', '--replace', '--stdin'];
      const config = wanted.length > MANY ? { config: INTO_ONE_PACK } : {};
      await this.#repository.run(place, args, { stdin: joinPaths(wanted), ...config });
    }
    if (removed.length + wanted.length > 0) this.#tree = null;
    if (this.#tree !== null) return { tree: this.#tree, skipped };
    const writing = this.#repository.run(place, ['write-tree']).then((printed) => printed.toString().trim());
    const changes = since === undefined ? undefined : changesSince(this.#repository, since, writing);
    // Who asked may have failed by then, or have no use for it.
    changes?.catch(() => undefined);
    this.#tree = await writing;
    return { tree: this.#tree, skipped, ...(changes ? { changes } : {}) };
  }

  /** Lists the files that git does not know of yet; one that names a folder ends in a slash. */
  async #untracked(): Promise<() => Promise<BytePath[]>> {
    const [place, patterns] = await Promise.all([
      this.place(),
      excludes(this.#folder).then((text) => this.#repository.writeExcludes(text)),
    ]);
    const args = ['ls-files', '-z', '--others', '--exclude-standard', `--exclude-from=${patterns}`, '-x', OURS];
    return async () => splitPaths(await this.#repository.run(place, args));
  }

  /**
   * Git shows a repository inside the folder as one name with a slash at its end and does not go into it, unless it
   * knows of a file there. So it is told of one, which is not there and so is gone again with the next update.
   */
  async #inside(
    found: BytePath[],
    again: () => Promise<BytePath[]>,
  ): Promise<{ seeds: Set<BytePath>; added: BytePath[] }> {
    const seeds = new Set<BytePath>();
    let paths = found;
    for (let depth = 0; depth < MAX_NESTING; depth += 1) {
      const closed = paths.filter((path) => path.endsWith('/') && !OF_GIT.test(path));
      const fresh = closed.map((path) => `${path}${SEED}`).filter((seed) => !seeds.has(seed));
      if (fresh.length === 0) break;
      for (const seed of fresh) seeds.add(seed);
      const entries = fresh.map((seed) => `100644 ${EMPTY_BLOB}\t${seed}\0`).join('');
      await this.#repository.run(await this.place(), ['update-index', '-z', '--index-info'], {
        stdin: Buffer.from(entries, 'latin1'),
      });
      paths = await again();
    }
    return { seeds, added: paths.filter((path) => !path.endsWith('/')) };
  }

  /** What is to be taken in, what must leave the index, and what is left out. `known` is in the index, `added` is not. */
  async #sort(
    known: readonly BytePath[],
    added: readonly BytePath[],
  ): Promise<{ wanted: BytePath[]; removed: BytePath[]; skipped: Skipped[] }> {
    const wanted: BytePath[] = [];
    const removed: BytePath[] = [];
    const skipped: Skipped[] = [];
    let bytes = 0;
    const folders = new Folders(this.#folder);
    for (const [at, path] of [...known, ...added].entries()) {
      if (at % SLICE === SLICE - 1) await nextRound();
      if (OF_GIT.test(path)) continue;
      const isKnown = at < known.length;
      const file: Looked =
        isKnown && !folders.lead(path) ? { is: 'gone' } : look(this.#folder, path, MAX_NEW_BYTES - bytes);
      if (file.is === 'wanted') {
        bytes += file.bytes;
        wanted.push(path);
        continue;
      }
      if (file.is === 'skipped') skipped.push({ path, why: file.why, bytes: file.bytes });
      if (isKnown) removed.push(path);
    }
    return { wanted, removed, skipped };
  }

  /**
   * A copy of the newest index there is of this folder, under a name that no other process uses: a lock that was left
   * behind, or a git that outlived its host, can't be in the way.
   */
  async #openIndex(): Promise<string> {
    const { indexes } = this.#repository;
    // Opens the repository, so that the folder is there.
    await this.#repository.run({}, ['version']);
    const mine = `${this.#session}.`;
    const names = (await readdir(indexes)).filter((name) => name.endsWith('.idx'));
    const usable = names.filter((name) => name.startsWith(mine) || (this.#shared && name.includes('.shared.')));
    const dated = await Promise.all(
      usable.map(async (name) => ({
        name,
        mine: name.startsWith(mine),
        at: await stat(join(indexes, name)).then(
          (found) => found.mtimeMs,
          () => 0,
        ),
      })),
    );
    dated.sort((a, b) => Number(b.mine) - Number(a.mine) || b.at - a.at);
    const index = join(indexes, `${mine}${this.#shared ? 'shared' : 'own'}.${randomUUID()}.idx`);
    const [newest] = dated;
    if (newest) await copyIndex(join(indexes, newest.name), index);
    for (const name of await readdir(indexes)) {
      if (name.startsWith(mine) && !index.endsWith(name) && name !== `${mine}settled`) {
        await rm(join(indexes, name), { force: true });
      }
    }
    return index;
  }
}

/** The time of an index says which of its entries git must not trust, so it is copied too. */
async function copyIndex(from: string, to: string): Promise<void> {
  try {
    const { atime, mtime } = await stat(from);
    await copyFile(from, to);
    await utimes(to, atime, mtime);
  } catch {
    // Its process is tidying up. Git reads all files anew.
    await rm(to, { force: true });
  }
}

type Looked =
  | { is: 'wanted'; bytes: number }
  | { is: 'skipped'; why: Skipped['why']; bytes: number }
  /** Nothing is there, or nothing that has content: a folder, a socket. */
  | { is: 'gone' };

/** @param room bytes that the checkpoint may still take in */
function look(folder: string, path: BytePath, room: number): Looked {
  const full = fullPath(folder, path);
  const file = statOf(full);
  if (file?.isSymbolicLink()) return { is: 'wanted', bytes: 0 };
  if (!file?.isFile()) return { is: 'gone' };
  if (file.size > MAX_FILE_BYTES || file.size > room) return { is: 'skipped', why: 'large', bytes: file.size };
  return isReadable(full) ? { is: 'wanted', bytes: file.size } : { is: 'skipped', why: 'unreadable', bytes: file.size };
}

const fullPath = (folder: string, path: BytePath): Buffer => Buffer.concat([Buffer.from(`${folder}/`), toBytes(path)]);

/** Null if nothing is there, or no way leads there. */
function statOf(path: Buffer): Stats | null {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
  }
}

/** Whether the folders of a path are still folders: behind a link lies another file, and a file has none in it. */
class Folders {
  readonly #folder: string;
  readonly #known = new Map<BytePath, boolean>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  lead(path: BytePath): boolean {
    const parent = path.slice(0, Math.max(0, path.lastIndexOf('/')));
    if (parent === '') return true;
    let leads = this.#known.get(parent);
    if (leads === undefined) {
      leads = this.lead(parent) && statOf(fullPath(this.#folder, parent))?.isDirectory() === true;
      this.#known.set(parent, leads);
    }
    return leads;
  }
}

/** What root has made in a container may be nobody else's to read. Asked by opening: what else would say may be wrong. */
function isReadable(path: Buffer): boolean {
  try {
    closeSync(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK));
    return true;
  } catch {
    return false;
  }
}
