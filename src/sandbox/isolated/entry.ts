import { createHash } from 'node:crypto';
import { createReadStream, type Stats } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';

/** What stands at a path: enough to tell whether it is still the same, without the content. */
export const Entry = z.object({
  kind: z.enum(['file', 'link']),
  /** Permission bits; of a link always 0. */
  mode: z.number(),
  /** SHA-256, hex, of the bytes, or of a link's target. */
  sha256: z.string(),
});
export type Entry = z.infer<typeof Entry>;

export const sameEntry = (one: Entry | null, other: Entry | null): boolean =>
  one === null || other === null
    ? one === other
    : one.kind === other.kind && one.mode === other.mode && one.sha256 === other.sha256;

/** What stands at `folder`/`path` (slashes); null if nothing does. `other`: a folder, a socket and the like. */
export async function entryAt(folder: string, path: string): Promise<Entry | null | 'other'> {
  const full = join(folder, path);
  let info: Stats;
  try {
    info = await lstat(full);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
  return (await entryOf(full, info)) ?? 'other';
}

/** The entry of a file or a link; undefined for everything else. */
export async function entryOf(full: string, info: Stats): Promise<Entry | undefined> {
  if (info.isSymbolicLink()) return { kind: 'link', mode: 0, sha256: sha256(await readlink(full)) };
  if (!info.isFile()) return undefined;
  return { kind: 'file', mode: modeOf(info), sha256: await hashFile(full) };
}

export const modeOf = (info: Stats): number => info.mode & 0o777;

export const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');

async function hashFile(full: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(full), hash);
  return hash.digest('hex');
}

const MISSING = new Set(['ENOENT', 'ENOTDIR']);
export const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' && MISSING.has(error.code);
