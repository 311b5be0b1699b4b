import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { BlobRef } from '../../protocol/record.ts';
import { BLOB_FOLDER } from '../paths.ts';

/** How much of a blob can be found, in bytes, from its start. */
export const BLOB_BYTES = 4 * 1024 * 1024;
/** A zero byte in the first so many says that it is no text. */
const LOOK_BYTES = 8192;

/** The text of a blob's start; null if it is no text or can't be read: then it is just not found. */
export async function readTextBlob(folder: string, { sha256, bytes }: BlobRef): Promise<string | null> {
  if (!/^[0-9a-f]{64}$/.test(sha256)) return null;
  try {
    const file = await open(join(folder, BLOB_FOLDER, sha256), 'r');
    try {
      const buffer = Buffer.alloc(Math.min(bytes, BLOB_BYTES));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
      const read = buffer.subarray(0, bytesRead);
      return read.subarray(0, LOOK_BYTES).includes(0) ? null : read.toString();
    } finally {
      await file.close();
    }
  } catch {
    return null;
  }
}
