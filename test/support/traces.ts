import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Frame } from 'playwright-core';

/** All that Drover has written in the folder. */
export async function written(folder: string): Promise<string> {
  const root = join(folder, '.drover');
  const files = (await readdir(root, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  return (await Promise.all(files.map((file) => readFile(join(file.parentPath, file.name), 'latin1')))).join('\n');
}

declare global {
  interface Window {
    heard?: string;
  }
}

/** What a page was told, and what it shows. */
export const heardBy = (frame: Frame): Promise<string> =>
  frame.evaluate(() => `${window.heard ?? ''}${document.documentElement.outerHTML}`).catch(() => '');
