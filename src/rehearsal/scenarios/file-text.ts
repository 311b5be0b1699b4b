import type { PastCall } from '../conversation.ts';

/** A numbered line, as some read tools give them: number, then a tab, an arrow or a bar, then the line. */
const NUMBERED = /^ *\d+[\t→|]/;

/** The text of a file that was read, without line numbers; undefined if the read failed. */
export function fileText(read: PastCall): string | undefined {
  if (read.ending !== 'ok') return undefined;
  const lines = read.text.split('\n');
  const numbered = lines.filter(Boolean).every((line) => NUMBERED.test(line));
  return numbered ? lines.map((line) => line.replace(NUMBERED, '')).join('\n') : read.text;
}
