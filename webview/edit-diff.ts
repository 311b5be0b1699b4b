import { structuredPatch } from 'diff';

export interface DiffLine {
  kind: 'same' | 'added' | 'removed' | 'gap';
  text: string;
}

const CONTEXT_LINES = 3;

/** Past this many characters the line diff is not worth its time on the page; VS Code's own diff editor shows it. */
const TOO_LONG = 200_000;

/** The lines of an edit as a unified diff. `gap` stands for unchanged lines that are left out. */
export function diffLines(before: string, after: string): DiffLine[] {
  if (before.length + after.length > TOO_LONG) {
    return [{ kind: 'gap', text: 'Too long to compare here. Show diff opens it in the diff editor.' }];
  }
  const patch = structuredPatch('', '', before, after, '', '', { context: CONTEXT_LINES });
  const lines: DiffLine[] = [];
  for (const [index, hunk] of patch.hunks.entries()) {
    if (index > 0) lines.push({ kind: 'gap', text: '' });
    for (const line of hunk.lines) {
      // "\ No newline at end of file": the edit replaces a piece of text, not a file.
      if (line.startsWith('\\')) continue;
      const kind = line.startsWith('+') ? 'added' : line.startsWith('-') ? 'removed' : 'same';
      lines.push({ kind, text: line.slice(1) });
    }
  }
  return lines;
}

/** How many lines come and go. */
export function diffCounts(lines: readonly DiffLine[]): { added: number; removed: number } {
  let added = 0;
  let removed = 0;
  for (const line of lines) {
    if (line.kind === 'added') added++;
    else if (line.kind === 'removed') removed++;
  }
  return { added, removed };
}
