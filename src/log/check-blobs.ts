import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { messageOf } from '../protocol/errors.ts';
import type { Named } from './check-lines.ts';
import type { Findings } from './findings.ts';
import { BLOB_FOLDER, codeOf } from './paths.ts';

export interface BlobCount {
  /** Blobs that are what their names say. */
  whole: number;
  /** Of all that were read. */
  bytes: number;
  /** Whole ones that no record names: their writer died before it wrote the record. */
  unnamed: number;
}

/** Reads every blob of a session and hashes it; those that records name must be there, and none may be another. */
export async function checkBlobs(
  folder: string,
  named: ReadonlyMap<string, Named>,
  wrong: Findings,
): Promise<BlobCount> {
  const count = { whole: 0, bytes: 0, unnamed: 0 };
  const there = await namesIn(join(folder, BLOB_FOLDER));
  for (const name of there) {
    const by = named.get(name);
    const place = { line: by?.line ?? null, offset: by?.offset ?? null, seq: by?.seq ?? null };
    let found: { sha256: string; bytes: number };
    try {
      found = await digest(join(folder, BLOB_FOLDER, name));
    } catch (error) {
      wrong.add({ ...place, reason: `the blob ${name} can't be read: ${messageOf(error)}` });
      continue;
    }
    count.bytes += found.bytes;
    if (found.sha256 !== name || (by && by.ref.bytes !== found.bytes)) {
      wrong.add({
        ...place,
        reason: `the blob ${name} was changed: its ${found.bytes} bytes are not those its name stands for`,
      });
      continue;
    }
    count.whole += 1;
    if (!by) count.unnamed += 1;
  }
  const missing = [...named.values()].filter(({ ref }) => !there.has(ref.sha256));
  for (const { line, offset, seq, ref } of missing)
    wrong.add({ line, offset, seq, reason: `the blob ${ref.sha256} that it names is not there (${ref.bytes} bytes)` });
  return count;
}

/** Names of what may be blobs. Drafts that a dead writer left (`….tmp`) were never one. */
async function namesIn(place: string): Promise<Set<string>> {
  try {
    const names = await readdir(place);
    return new Set(names.filter((name) => !name.endsWith('.tmp')));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return new Set();
    throw error;
  }
}

/** A blob may have 512 MiB, so it is not read at once. */
async function digest(path: string): Promise<{ sha256: string; bytes: number }> {
  const hash = createHash('sha256');
  let bytes = 0;
  await pipeline(createReadStream(path), async (pieces: AsyncIterable<Buffer>) => {
    for await (const piece of pieces) {
      bytes += piece.length;
      hash.update(piece);
    }
  });
  return { sha256: hash.digest('hex'), bytes };
}
