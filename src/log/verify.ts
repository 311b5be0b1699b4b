import { join } from 'node:path';
import { type BlobCount, checkBlobs } from './check-blobs.ts';
import { LineChecks } from './check-lines.ts';
import type { Findings } from './findings.ts';
import { LeaseFile } from './lease.ts';
import { eachLine } from './lines.ts';
import { codeOf, LEASE_FILE, LOG_FILE } from './paths.ts';
import { savedHead } from './saved-head.ts';
import type { Head } from './serialize.ts';

/** What a session's files turned out to be. */
export interface Verification {
  /** The length of the log in bytes. */
  bytes: number;
  /** Live records, and the last of them. */
  records: number;
  head: Head;
  /** The last record that the lease or the kept state remembers to have been on the disk; null if none does. */
  kept: Head | null;
  /** What is not as it was written; the first one listed is the first of the log. Empty: all is well. */
  wrong: Findings;
  /** Records of writers that had lost the session; readers pass over them. */
  stale: Findings;
  /** Records of types that this version does not know. */
  unknown: number;
  newer: boolean;
  blobs: BlobCount;
}

/**
 * Checks all that a session has on the disk: every line's hash, chain, number, fence and event, every blob's bytes,
 * and that the end is still there. Reads only.
 * @param folder the session's
 * @throws the system's error if the folder can't be read
 */
export async function verifySession(folder: string): Promise<Verification> {
  // Before the log is read: a living writer only moves on from here.
  const lease = new LeaseFile(join(folder, LEASE_FILE));
  const kept = await savedHead(folder, lease);
  const checks = new LineChecks(kept);
  const bytes = await checkLog(join(folder, LOG_FILE), checks, lease.current() !== null);
  checkEnd(checks, kept);
  const blobs = await checkBlobs(folder, checks.blobs, checks.wrong);
  const { records, head, wrong, stale, unknown, newer } = checks;
  return { bytes, records, head, kept, wrong, stale, unknown, newer, blobs };
}

/** Returns the length of the log in bytes. */
async function checkLog(path: string, checks: LineChecks, growing: boolean): Promise<number> {
  try {
    return await eachLine(path, checks, growing);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    checks.wrong.add({ line: null, offset: null, seq: null, reason: 'the log file is missing' });
    return 0;
  }
}

/** What the chain can't show by itself: that whole lines are missing at the end, or that all of it was written anew. */
function checkEnd({ wrong, head, keptMet }: LineChecks, kept: Head | null): void {
  if (!kept || keptMet) return;
  const cut = kept.seq - head.seq;
  const reason =
    cut > 0
      ? `the end was cut off: the log ends at record ${head.seq}, and record ${kept.seq} had been saved (${cut} missing)`
      : `record ${kept.seq} is not the one that had been saved: its hash was ${kept.hash}`;
  wrong.add({ line: null, offset: null, seq: kept.seq, reason });
}
