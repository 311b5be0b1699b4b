import { mkdir, open, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { SessionId } from '../protocol/ids.ts';
import { SessionMissing } from './log.ts';

/** Where things are inside a session's folder, and the folder inside `.drover`. */
export const LOG_FILE = 'log.jsonl';
export const LEASE_FILE = 'lease';
export const SNAPSHOT_FILE = 'snapshot.jsonl';
export const BLOB_FOLDER = 'blobs';

export const sessionsFolder = (root: string): string => join(root, 'sessions');

/** True for what may be the name of a session's folder; an id comes from restored panels too, so it is not trusted. */
export const isFolderName = (id: string): boolean => /^[A-Za-z0-9_-]{1,128}$/.test(id);

export function sessionFolder(root: string, id: SessionId): string {
  if (!isFolderName(id)) throw new SessionMissing(id);
  return join(sessionsFolder(root), id);
}

/** Makes `.drover`, which keeps itself out of version control. */
export async function makeRoot(root: string): Promise<void> {
  await mkdir(dirname(root), { recursive: true });
  // On a read-only file system a recursive mkdir says ENOENT; a plain one says what is wrong.
  await mkdir(root).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
  await writeFile(join(root, '.gitignore'), '*\n', { flag: 'wx' }).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
}

/** Makes the names in a folder survive a power cut. Windows has no such call and needs none. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** The system's code of an error, such as `ENOSPC`; undefined if it has none. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
