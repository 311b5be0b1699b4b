import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { PLACEHOLDER } from './placeholder.ts';

/** A placeholder stands near the beginning of what it is put into; a larger file is looked at up to here. Bytes. */
const MAX_BYTES = 2 * 1024 * 1024;

export const hasPlaceholder = (text: string): boolean => text.search(PLACEHOLDER) !== -1;

/**
 * The first of the files below `folder` in which there is a placeholder; null if there is none. What is no plain file
 * is passed over, and no link is followed: the names come from inside a sandbox.
 */
export async function fileWithPlaceholder(folder: string, paths: readonly string[]): Promise<string | null> {
  for (const path of paths) {
    const text = await beginning(join(folder, path)).catch(() => '');
    if (hasPlaceholder(text)) return path;
  }
  return null;
}

async function beginning(path: string): Promise<string> {
  // Without O_NONBLOCK, opening a pipe would wait for its other end.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (!(await file.stat()).isFile()) return '';
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MAX_BYTES), 0, MAX_BYTES, 0);
    return buffer.toString('latin1', 0, bytesRead);
  } finally {
    await file.close();
  }
}
