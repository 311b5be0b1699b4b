import type { Sandbox } from '../sandbox/sandbox.ts';
import { ask } from './files.ts';
import { IgnoreRules } from './ignore-rules.ts';
import { LEVEL } from './search-scripts.ts';
import type { ToolContext } from './tools.ts';

/*
 * Lists files where there is no ripgrep: level by level, so that a folder that is ignored is never entered, however
 * much lies in it. One call of a small program for each level, or for each so many folders of it.
 */

export interface Walked {
  files: { path: string; mtime: number; link: boolean }[];
  /** The folder or file where it began, relative to the workspace, links resolved; '' is the workspace. */
  base: string;
  /** There was more than `most` files, or the time was up. */
  partial: boolean;
}

/** Characters of folder names given to one call: well below what a program may be started with. */
const NAMES = 60_000;
/** Bytes listed by one call. */
const LISTED = 16 * 1024 * 1024;
/** ms after which no further level is begun. */
const PATIENCE_MS = 30_000;
/** Never entered, unless the walk begins there. */
const PASSED_OVER = new Set(['.git', 'node_modules', '.drover']);

/**
 * Files below a folder of the workspace that no ignore file leaves out; all, if the folder itself is left out: then it
 * was meant. Where `where` is a file, it is the only one. Paths are relative to the workspace. Throws `Refused`, and what `sandbox.run` throws.
 */
export async function walk(sandbox: Sandbox, context: ToolContext, where: string, most: number): Promise<Walked> {
  const until = performance.now() + PATIENCE_MS;
  const rules = new IgnoreRules();
  const files: Walked['files'] = [];
  let base: string | undefined;
  let all = false;
  let level = ['.'];
  let partial = false;
  while (level.length > 0 && !partial) {
    const next: string[] = [];
    for (const names of batches(level)) {
      if (files.length > most || performance.now() > until) {
        partial = true;
        break;
      }
      const found = await list(sandbox, context, where, names, base === undefined);
      base ??= found.base;
      for (const { path, content } of found.ignoreFiles)
        rules.add(path.startsWith('/') ? path.slice(1) : joined(base, path), content);
      if (level[0] === '.') all = base !== '' && rules.ignoresWithin(base);
      for (const entry of found.entries) {
        const path = joined(base, entry.path);
        const name = path.slice(path.lastIndexOf('/') + 1);
        const named = entry.path === '';
        if (!named && (PASSED_OVER.has(name) || (!all && rules.ignores(path, entry.kind === 'folder')))) continue;
        if (entry.kind === 'folder') next.push(entry.path);
        else if (entry.kind !== 'other') files.push({ path, mtime: entry.mtime, link: entry.kind === 'link' });
      }
    }
    level = next;
  }
  return { files, base: base ?? '', partial };
}

const joined = (base: string, path: string): string => {
  const plain = path.replace(/^(\.\/)+/, '');
  return base === '' || plain === '' ? base + plain : `${base}/${plain}`;
};

/** Names in portions that fit into one call. */
export function* batches(names: readonly string[]): Generator<string[]> {
  let batch: string[] = [];
  let size = 0;
  for (const name of names) {
    if (size + name.length > NAMES && batch.length > 0) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(name);
    size += name.length + 1;
  }
  if (batch.length > 0) yield batch;
}

interface Entry {
  /** Relative to the base of the walk. */
  path: string;
  mtime: number;
  kind: 'file' | 'folder' | 'link' | 'other';
}

interface Level {
  base: string;
  entries: Entry[];
  ignoreFiles: { path: string; content: string }[];
}

async function list(
  sandbox: Sandbox,
  context: ToolContext,
  where: string,
  folders: readonly string[],
  first: boolean,
): Promise<Level> {
  const answer = await ask(sandbox, context, LEVEL, {
    path: where,
    args: [first ? 'up' : '-', ...folders.map((folder) => (folder === '.' ? '.' : `./${folder}`))],
    fields: 1,
    maxBytes: LISTED,
  });
  const [listed = '', ...rest] = new TextDecoder().decode(answer.stdout).split('\0');
  const ignoreFiles: Level['ignoreFiles'] = [];
  for (let i = 0; i + 1 < rest.length; i += 2) ignoreFiles.push({ path: rest[i] ?? '', content: rest[i + 1] ?? '' });
  const entries = listed.split('\n').map(parseEntry);
  return { base: answer.fields[0] ?? '', entries: entries.filter((entry) => entry !== undefined), ignoreFiles };
}

/** `<mode> <seconds> ./<path>`; undefined for a line that is none, such as the rest of a name with a line break. */
function parseEntry(line: string): Entry | undefined {
  const [, mode = '', seconds = '', path = ''] = /^([0-9a-f]+) (\d+) (.+)$/.exec(line) ?? [];
  if (path === '') return undefined;
  const type = Number.parseInt(mode, mode.startsWith('0') ? 8 : 16) & 0xf000;
  const kind = KINDS.get(type) ?? 'other';
  return { path: path.replace(/^(\.\/)+/, ''), mtime: Number(seconds), kind };
}

/** The kind of a file in its mode. */
const KINDS: ReadonlyMap<number, Entry['kind']> = new Map([
  [0x4000, 'folder'],
  [0x8000, 'file'],
  [0xa000, 'link'],
]);

/** Whether a folder of the workspace is left out by an ignore file above it. */
export async function isIgnored(sandbox: Sandbox, context: ToolContext, where: string, base: string): Promise<boolean> {
  const found = await list(sandbox, context, where, [], true);
  const rules = new IgnoreRules();
  for (const { path, content } of found.ignoreFiles) if (path.startsWith('/')) rules.add(path.slice(1), content);
  return rules.ignoresWithin(base);
}
