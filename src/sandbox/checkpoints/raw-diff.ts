import type { BytePath } from './byte-path.ts';

/** What became of one file between two checkpoints. */
export interface FileChange {
  path: BytePath;
  change: 'added' | 'modified' | 'deleted';
  /** The blob it was and is; null where there was or is no file. */
  before: string | null;
  after: string | null;
}

const NOTHING = /^0+$/;

/** Reads what `git diff-tree --raw -r -z` prints for one pair of trees. */
export function parseRawDiff(printed: string): FileChange[] {
  const fields = printed.split('\0');
  const changes: FileChange[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) changes.push(changeOf(fields[at] ?? '', fields[at + 1] ?? ''));
  return changes;
}

/** `:100644 100644 <before> <after> M` */
function changeOf(line: string, path: BytePath): FileChange {
  const [, , before = '', after = ''] = line.split(' ');
  const was = NOTHING.test(before) ? null : before;
  const is = NOTHING.test(after) ? null : after;
  return { path, change: was === null ? 'added' : is === null ? 'deleted' : 'modified', before: was, after: is };
}

/**
 * Reads what `git diff-tree --stdin --raw -r -z --root` prints for a row of commits: each commit's id, then its
 * changes against the one before it. A commit that changed nothing is not printed.
 */
export function parseRawDiffs(printed: string): Map<string, FileChange[]> {
  const byCommit = new Map<string, FileChange[]>();
  const fields = printed.split('\0');
  let current: FileChange[] = [];
  for (let at = 0; at < fields.length; at += 1) {
    const field = fields[at] ?? '';
    if (field.startsWith(':')) {
      at += 1;
      current.push(changeOf(field, fields[at] ?? ''));
    } else if (field !== '') {
      current = [];
      byCommit.set(field.trim(), current);
    }
  }
  return byCommit;
}
