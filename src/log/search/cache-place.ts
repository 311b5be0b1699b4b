import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionId } from '../../protocol/ids.ts';

/** In the folder's name, so that another version starts with an empty one. */
const VERSION = 1;

/** Where the search keeps a file for each session, named by its id. */
export const cacheFolder = (root: string): string => join(root, 'cache', `search-${VERSION}`);

/** Removes what the search knows of a session: its words go with it. */
export async function forgetCached(root: string, id: SessionId): Promise<void> {
  await rm(join(cacheFolder(root), id), { force: true });
}
