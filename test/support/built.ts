import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../../scripts/machine.mjs';

interface Meta {
  outputs: Record<string, { bytes: number; imports: { path: string; kind: string }[] }>;
}

/** Bytes of the files that importing the extension reads: its entry, and what that imports without being asked later. */
export async function bytesLoadedByActivate(): Promise<number> {
  const { outputs }: Meta = JSON.parse(await readFile(join(root, '.cache/bundle.json'), 'utf8'));
  const seen = new Set<string>();
  const visit = (path: string): void => {
    const output = outputs[path];
    if (!output || seen.has(path)) return;
    seen.add(path);
    for (const { path: next, kind } of output.imports) if (kind !== 'dynamic-import') visit(next);
  };
  visit('dist/extension.js');
  if (seen.size === 0) throw new Error('.cache/bundle.json does not name dist/extension.js.');
  return [...seen].reduce((sum, path) => sum + (outputs[path]?.bytes ?? 0), 0);
}
