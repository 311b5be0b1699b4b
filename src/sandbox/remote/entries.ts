import type { BigIntStats, Dirent } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** One file as it was seen: enough to tell whether it is still the same. */
export interface Entry {
  kind: 'file' | 'folder' | 'link';
  /** Permission bits. */
  mode: number;
  /** Changes whenever the file does; means nothing elsewhere. */
  stamp: string;
  /** Size and second of the last change: the same on both sides where one was copied from the other. */
  looks: string;
}

/** By path relative to the folder, with slashes. */
export type Entries = ReadonlyMap<string, Entry>;

/** Never carried: the sessions' own logs and copies. */
export const NOT_CARRIED = '.drover';
/** So many files are looked at; a folder with more is not for a copy over a network. */
const MAX_ENTRIES = 200_000;

/** All of a folder on this machine, but not what is behind its links. Throws if it holds too much. */
export async function entriesHere(folder: string): Promise<Map<string, Entry>> {
  const found = new Map<string, Entry>();
  const open = [''];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const entry of await listed(join(folder, at))) {
      const path = at === '' ? entry.name : `${at}/${entry.name}`;
      if (path === NOT_CARRIED || kindOf(entry) === undefined) continue;
      const seen = await entryHere(folder, path);
      if (!seen) continue;
      found.set(path, seen);
      if (found.size > MAX_ENTRIES) throw new Error(`the folder has more than ${MAX_ENTRIES} files`);
      if (seen.kind === 'folder') open.push(path);
    }
  }
  return found;
}

/** One file of this machine, or undefined if it is not there or nothing that can be carried. */
export async function entryHere(folder: string, path: string): Promise<Entry | undefined> {
  let stats: BigIntStats;
  try {
    stats = await lstat(join(folder, path), { bigint: true });
  } catch {
    return undefined;
  }
  const kind = kindOf(stats);
  // A folder's own time says only that something in it came or went, which those themselves say.
  const stamp = kind === 'folder' ? 'folder' : `${stats.size}:${stats.mtimeNs}:${stats.ino}`;
  const looks = kind === 'file' ? `${stats.size}:${stats.mtimeMs / 1000n}` : '';
  return kind && { kind, mode: Number(stats.mode & 0o777n), stamp, looks };
}

async function listed(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch {
    // Gone meanwhile, or not ours to read.
    return [];
  }
}

function kindOf(of: Pick<Dirent, 'isFile' | 'isDirectory' | 'isSymbolicLink'>): Entry['kind'] | undefined {
  if (of.isSymbolicLink()) return 'link';
  if (of.isDirectory()) return 'folder';
  return of.isFile() ? 'file' : undefined;
}

/** Where `stat` can say more than whole seconds it does. Without `find` there is no telling what a command changed. */
export const LIST_INSIDE = `
cd "$1" || exit 1
command -v find >/dev/null || { echo "this image has no find" >&2; exit 1; }
case $(stat -c %.9Z . 2>/dev/null) in *.?????????) c=%.9Z ;; *) c=%Z ;; esac
find . -path ./${NOT_CARRIED} -prune -o \\( -type f -o -type d -o -type l \\) -exec stat -c "%f %s %Y $c %i %n" {} +
`;

const KINDS = new Map<number, Entry['kind']>([
  [0o100000, 'file'],
  [0o040000, 'folder'],
  [0o120000, 'link'],
]);

/** What `LIST_INSIDE` printed. A name with a line break in it is passed over. */
export function entriesFrom(listing: string): Map<string, Entry> {
  const found = new Map<string, Entry>();
  for (const line of listing.split('\n')) {
    const [, hex, size, modified, changed, inode, path] =
      /^([0-9a-f]+) (\d+) (\d+) ([\d.]+) (\d+) \.\/(.+)$/.exec(line) ?? [];
    if (!hex || !path) continue;
    const bits = Number.parseInt(hex, 16);
    const kind = KINDS.get(bits & 0o170000);
    const stamp = kind === 'folder' ? 'folder' : `${size}:${changed}:${inode}`;
    const looks = kind === 'file' ? `${size}:${modified}` : '';
    if (kind) found.set(path, { kind, mode: bits & 0o777, stamp, looks });
  }
  return found;
}

/** What is new or different in `now`, and what is missing there; parents before what is in them. */
export function difference(before: Entries, now: Entries): { changed: string[]; gone: string[] } {
  const same = (a: Entry | undefined, b: Entry) => a?.kind === b.kind && a.mode === b.mode && a.stamp === b.stamp;
  return {
    changed: [...now]
      .filter(([path, entry]) => !same(before.get(path), entry))
      .map(([path]) => path)
      .sort(),
    gone: [...before.keys()].filter((path) => !now.has(path)).sort(),
  };
}
