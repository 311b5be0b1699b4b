import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../../scripts/machine.mjs';

interface Meta {
  outputs: Record<string, { bytes: number; entryPoint?: string; imports: { path: string; kind: string }[] }>;
}

/**
 * Bytes of the files that activate() makes VS Code read in a folder that has sessions: its entry, the editor's part,
 * which it loads right away there, and what these import without being asked later.
 */
export async function bytesLoadedByActivate(): Promise<number> {
  const { outputs }: Meta = JSON.parse(await readFile(join(root, '.cache/bundle.json'), 'utf8'));
  const seen = new Set<string>();
  const visit = (path: string): void => {
    const output = outputs[path];
    if (!output || seen.has(path)) return;
    seen.add(path);
    for (const { path: next, kind } of output.imports) if (kind !== 'dynamic-import') visit(next);
  };
  for (const entry of ['src/extension.ts', 'src/editor/app.ts']) {
    const path = Object.keys(outputs).find((one) => outputs[one]?.entryPoint === entry);
    if (!path) throw new Error(`.cache/bundle.json has no output for ${entry}.`);
    visit(path);
  }
  return [...seen].reduce((sum, path) => sum + (outputs[path]?.bytes ?? 0), 0);
}
