import { createHash } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BlobRef } from '../protocol/record.ts';
import { BlobDamaged } from './log.ts';
import { BLOB_FOLDER, codeOf, syncFolder } from './paths.ts';
import type { Blob } from './spill.ts';

let written = 0;

/** Stores blobs in a session's folder, each under its own hash, durable when it resolves. Throws the system's error. */
export async function writeBlobs(folder: string, blobs: readonly Blob[]): Promise<void> {
  if (blobs.length === 0) return;
  const place = join(folder, BLOB_FOLDER);
  if (await mkdir(place, { recursive: true })) await syncFolder(folder);
  for (const blob of blobs) await writeBlob(place, blob);
  await syncFolder(place);
}

async function writeBlob(place: string, { ref, bytes }: Blob): Promise<void> {
  const path = join(place, ref.sha256);
  if (await holds(path, ref)) return;
  written += 1;
  const draft = `${path}.${process.pid}.${written}.tmp`;
  try {
    const file = await open(draft, 'wx');
    try {
      await file.writeFile(bytes);
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** True if the same bytes are there already. A damaged blob is written again: its name says what it must be. */
async function holds(path: string, ref: BlobRef): Promise<boolean> {
  const size = await stat(path).then(
    (found) => found.size,
    () => -1,
  );
  return size === ref.bytes && sha256(await readFile(path)) === ref.sha256;
}

/** The whole of a blob. Throws `BlobDamaged` if it is not there, or is not what its name says. */
export async function readBlob(folder: string, ref: BlobRef): Promise<Uint8Array> {
  // The path in a record is for people; only the hash is trusted.
  if (!/^[0-9a-f]{64}$/.test(ref.sha256)) throw new BlobDamaged(ref);
  let bytes: Uint8Array;
  try {
    bytes = await readFile(join(folder, BLOB_FOLDER, ref.sha256));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') throw new BlobDamaged(ref);
    throw error;
  }
  if (sha256(bytes) !== ref.sha256) throw new BlobDamaged(ref);
  return bytes;
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
