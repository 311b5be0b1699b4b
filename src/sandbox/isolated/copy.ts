import { constants, type Dirent, type Stats } from 'node:fs';
import {
  chown,
  copyFile,
  lchown,
  lstat,
  mkdir,
  readdir,
  readlink,
  rename,
  rm,
  symlink,
  utimes,
} from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../protocol/errors.ts';
import { SessionId } from '../../protocol/ids.ts';
import { draft } from '../../protocol/record.ts';
import { type SandboxOwner, SandboxUnavailable } from '../sandbox.ts';
import { type Base, copyPaths, readBase, stampOf, writeBase } from './base.ts';
import { clonePrivately } from './clone.ts';
import { entryOf, isMissing } from './entry.ts';
import { ignoredIn, repository } from './git.ts';

/**
 * What git ignores (dependencies, builds) comes along up to so many bytes and files for each ignored path; on a disk
 * that shares the blocks of copies (btrfs, XFS, APFS) without limit. What is larger can be installed anew inside.
 */
const IGNORED_BYTES = 1024 ** 3;
const IGNORED_FILES = 100_000;
/** Files copied at the same time. */
const SIDE_BY_SIDE = 32;

/**
 * Makes the session's own copy of the workspace folder, as the folder is now, with its untracked and changed files,
 * and keeps what it was made from. A copy that is there already is taken as it is. Throws `SandboxUnavailable`.
 */
export async function ensureCopy(owner: CopyOwner): Promise<void> {
  const key = copyPaths(owner.workspaceFolder, owner.session).copy;
  const copying = making.get(key) ?? makeCopy(owner).finally(() => making.delete(key));
  making.set(key, copying);
  await copying;
}

type CopyOwner = Pick<SandboxOwner, 'session' | 'workspaceFolder' | 'record' | 'onProgress'>;

/** Copies in the making: sandboxes that are made at the same time share them. */
const making = new Map<string, Promise<void>>();

async function makeCopy(owner: CopyOwner): Promise<void> {
  const paths = copyPaths(owner.workspaceFolder, owner.session);
  const there = await lstat(paths.copy).catch(() => undefined);
  if (there && (await readBase(paths.base))) return;
  try {
    await rm(paths.partial, { recursive: true, force: true });
    const copying = new Copying(owner.workspaceFolder, paths.partial, owner.onProgress);
    // Whoever put a folder there, without a state that it was made from, started from the folder as it is now.
    const { base, ...made } = await copying.run();
    await writeBase(paths.base, base);
    if (there) return await rm(paths.partial, { recursive: true, force: true });
    await rename(paths.partial, paths.copy);
    await owner.record([draft('drover.workspace_copied', made)]);
  } catch (error) {
    await rm(paths.partial, { recursive: true, force: true }).catch(() => undefined);
    throw new SandboxUnavailable(
      'container',
      `The session's own copy of the workspace could not be made (${messageOf(error)}); nothing of it is left. See that there is room on the disk, or use an environment that works in the folder itself.`,
      { cause: error },
    );
  }
}

/** Removes a session's copy and what is kept beside it, if it has one. No sandbox may use it any more. */
export async function removeCopy(workspaceFolder: string, session: SessionId): Promise<void> {
  const { copy, partial, base } = copyPaths(workspaceFolder, session);
  await rm(partial, { recursive: true, force: true });
  // Under the other name, what a crash leaves of it is not taken for a whole one.
  await rename(copy, partial).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
  });
  await rm(base, { force: true });
  await rm(partial, { recursive: true, force: true, maxRetries: 3 });
}

/** A copy may be there a little before its session, so only one that is older, in ms, can have been left over. */
const LEFT_OVER_MS = 60 * 60_000;

/** Removes the copies of sessions that are no longer there: a crash came between the one and the other. */
export async function removeLeftCopies(workspaceFolder: string): Promise<void> {
  const root = join(workspaceFolder, '.drover');
  const names = await readdir(join(root, 'work')).catch(() => []);
  for (const name of names) {
    const session = SessionId.safeParse(name.split('.', 1)[0]).data;
    const info = await lstat(join(root, 'work', name)).catch(() => undefined);
    if (!session || !info || Date.now() - info.ctimeMs < LEFT_OVER_MS) continue;
    const known = await lstat(join(root, 'sessions', session)).catch((error: unknown) => isMissing(error) && null);
    if (known === null) await removeCopy(workspaceFolder, session);
  }
}

interface Copied {
  base: Base;
  files: number;
  bytes: number;
  /** What did not come along, in words. */
  left_out: string[];
}

/** One copy in the making. */
class Copying {
  readonly #from: string;
  readonly #to: string;
  readonly #onProgress: ((line: string) => void) | undefined;
  readonly #base: Base = { version: 1, files: {}, ignored: [] };
  readonly #leftOut: string[] = [];
  #files = 0;
  #bytes = 0;
  #shares = false;

  constructor(from: string, to: string, onProgress: ((line: string) => void) | undefined) {
    this.#from = from;
    this.#to = to;
    this.#onProgress = onProgress;
  }

  async run(): Promise<Copied> {
    this.#onProgress?.('Copying the workspace for this session');
    await mkdir(this.#to, { recursive: true });
    await keepOwner(this.#to, await lstat(this.#from));
    const where = await repository(this.#from);
    if (where) this.#base.ignored = await ignoredIn(this.#from);
    await this.#folder('', new Set(this.#base.ignored), false);
    if (where === 'top') this.#leftOut.push(...(await clonePrivately(this.#from, this.#to)));
    this.#onProgress?.(`Copied ${this.#files} files of the workspace`);
    return { base: this.#base, files: this.#files, bytes: this.#bytes, left_out: this.#leftOut };
  }

  /** `path` is empty for the root, else ends in a slash. `unreviewed`: its files come along, but are no part of what is reviewed. */
  async #folder(path: string, ignored: ReadonlySet<string>, unreviewed: boolean): Promise<void> {
    const entries = await readdir(join(this.#from, path), { withFileTypes: true });
    const files: Dirent[] = [];
    for (const entry of entries) {
      const at = `${path}${entry.name}`;
      // The person's repository is never copied as it is; of nested ones nothing is reviewed.
      if (path === '' && (entry.name === '.drover' || entry.name === '.git')) continue;
      if (!entry.isDirectory()) {
        files.push(entry);
        continue;
      }
      const skip = ignored.has(`${at}/`);
      if (skip && !(await this.#fits(`${at}/`))) continue;
      const info = await lstat(join(this.#from, at));
      await mkdir(join(this.#to, at), { mode: info.mode & 0o777 });
      await keepOwner(join(this.#to, at), info);
      await this.#folder(`${at}/`, ignored, unreviewed || skip || entry.name === '.git');
    }
    for (let n = 0; n < files.length; n += SIDE_BY_SIDE) {
      const batch = files.slice(n, n + SIDE_BY_SIDE);
      await Promise.all(batch.map(({ name }) => this.#file(`${path}${name}`, unreviewed || ignored.has(path + name))));
    }
  }

  async #file(path: string, unreviewed: boolean): Promise<void> {
    const [from, to] = [join(this.#from, path), join(this.#to, path)];
    try {
      const info = await lstat(from);
      if (unreviewed && info.size > IGNORED_BYTES && !this.#shares) {
        this.#leftOut.push(`${path} (ignored by git, and large)`);
        return;
      }
      if (info.isSymbolicLink()) await symlink(await readlink(from), to);
      else if (info.isFile()) await copyFile(from, to, constants.COPYFILE_FICLONE);
      else return;
      if (info.isFile()) await utimes(to, info.atime, info.mtime);
      await keepOwner(to, info);
      this.#files += 1;
      this.#bytes += info.size;
    } catch (error) {
      // It went away while the folder was copied: programs at work do that to their own files.
      if (isMissing(error)) return;
      throw error;
    }
    if (unreviewed) return;
    const copied = await lstat(to);
    const entry = await entryOf(to, copied);
    if (entry) this.#base.files[path] = { ...entry, stamp: stampOf(copied) };
  }

  /** Whether an ignored folder is small enough to come along, or costs nothing. */
  async #fits(path: string): Promise<boolean> {
    this.#shares ||= await sharesBlocks(join(this.#from, path), this.#to);
    if (this.#shares || (await isSmall(join(this.#from, path)))) return true;
    this.#leftOut.push(`${path} (ignored by git, and large)`);
    return false;
  }
}

/** Whether the disk can make a copy that takes no room: tried with one file. */
async function sharesBlocks(folder: string, to: string): Promise<boolean> {
  const file = (await readdir(folder, { withFileTypes: true })).find((entry) => entry.isFile());
  if (!file) return false;
  const trial = join(to, '.drover-trial');
  try {
    await copyFile(join(folder, file.name), trial, constants.COPYFILE_FICLONE_FORCE);
    return true;
  } catch {
    return false;
  } finally {
    await rm(trial, { force: true });
  }
}

async function isSmall(folder: string): Promise<boolean> {
  let bytes = 0;
  let files = 0;
  const waiting = [folder];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    for (const entry of await readdir(at, { withFileTypes: true })) {
      files += 1;
      if (entry.isDirectory()) waiting.push(join(at, entry.name));
      else if (entry.isFile()) bytes += (await lstat(join(at, entry.name))).size;
      if (bytes > IGNORED_BYTES || files > IGNORED_FILES) return false;
    }
  }
  return true;
}

/** Whoever works in the sandbox is the one who owns the folder; only root makes files for others. */
async function keepOwner(path: string, info: Stats): Promise<void> {
  if (process.getuid?.() !== 0 || info.uid === 0) return;
  await (info.isSymbolicLink() ? lchown : chown)(path, info.uid, info.gid);
}
