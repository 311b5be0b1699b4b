import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../protocol/errors.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { LeaseFile } from './lease.ts';
import { DeleteFailed, LeaseHeld, SessionMissing } from './log.ts';
import { codeOf, sessionFolder, sessionsFolder } from './paths.ts';
import { forgetCached } from './search/cache-place.ts';

/** Begins with a dot, so it is no session any more: what a crash left of it is taken away with the next deletion. */
const GONE = '.deleted-';

/**
 * Takes a session's folder away: its log, its blobs, all of it, and what the search knows of it. It goes in one step, so that no half of it is ever
 * listed; the lease is taken first, so that nobody begins to write meanwhile.
 * @throws LeaseHeld while another living process has it; SessionMissing; DeleteFailed
 */
export async function deleteSession(root: string, id: SessionId, file: LeaseFile): Promise<void> {
  try {
    const lease = await file.take();
    try {
      await rename(sessionFolder(root, id), join(sessionsFolder(root), `${GONE}${id}`));
    } finally {
      await lease.release();
    }
    await clear(sessionsFolder(root));
    await forgetCached(root, id);
  } catch (error) {
    if (error instanceof LeaseHeld) throw error;
    if (codeOf(error) === 'ENOENT') throw new SessionMissing(id);
    throw new DeleteFailed(messageOf(error), { cause: error });
  }
}

async function clear(folder: string): Promise<void> {
  const gone = (await readdir(folder)).filter((name) => name.startsWith(GONE));
  await Promise.all(gone.map((name) => rm(join(folder, name), { recursive: true, force: true, maxRetries: 5 })));
}
