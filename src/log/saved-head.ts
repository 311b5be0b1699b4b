import type { LeaseFile } from './lease.ts';
import type { Head } from './serialize.ts';
import { readHeader } from './snapshot.ts';

/**
 * The last record that is known, from beside the log, to have been on the disk; null if nothing there says so.
 * Ask before the log is read: a living writer only moves on from there. A damaged log keeps no state, so the lease knows.
 */
export async function savedHead(folder: string, lease: LeaseFile): Promise<Head | null> {
  const known = lease.head();
  const kept = await readHeader(folder, false);
  if (!kept || (known && known.seq >= kept.head.seq)) return known;
  return kept.head;
}
