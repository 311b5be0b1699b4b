import type { Stats } from 'node:fs';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { SessionId } from '../../protocol/ids.ts';
import { Entry } from './entry.ts';

/** A file of the copy as it was made: what changed since is found without reading what did not. */
const BaseEntry = Entry.extend({
  /** See `stampOf`. */
  stamp: z.string(),
});

/** The state of the folder that a session's copy was made from. Kept beside the copy, out of the sandbox's reach. */
export const Base = z.object({
  version: z.literal(1),
  /** By path relative to the folder, with slashes. */
  files: z.record(z.string(), BaseEntry),
  /** Paths that git ignored then; those of folders end in a slash. They are no part of what is reviewed. */
  ignored: z.array(z.string()),
});
export type Base = z.infer<typeof Base>;

/** Says whether a file may have been written to: its number, size and time of change, which nobody can set at will. */
export const stampOf = (info: Stats): string => `${info.ino} ${info.size} ${info.ctimeMs}`;

/** Where the copies of a workspace folder are, and what is kept beside each. */
export const copyPaths = (workspaceFolder: string, session: SessionId) => {
  const work = join(workspaceFolder, '.drover', 'work');
  const copy = join(work, session);
  return { work, copy, partial: `${copy}.partial`, base: `${copy}.base.json` };
};

/** The kept state; null if there is no copy that it was kept for. */
export async function readBase(path: string): Promise<Base | null> {
  try {
    return Base.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch {
    // None was written, or a crash cut it: it is written last, in one step.
    return null;
  }
}

/** Replaces the kept state in one step. */
export async function writeBase(path: string, base: Base): Promise<void> {
  const draft = `${path}.tmp`;
  try {
    const file = await open(draft, 'w', 0o600);
    try {
      await file.writeFile(JSON.stringify(base));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
