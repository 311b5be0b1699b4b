/** An edit that can't be made, in words for the model. */
export class EditProblem extends Error {}

export interface Edit {
  oldString: string;
  newString: string;
  replaceAll: boolean;
}

export interface Spliced {
  bytes: Uint8Array;
  /** Lines, counted from 1, where the replaced stretches began. */
  lines: number[];
}

/**
 * Replaces text in a file's raw bytes and touches no other byte. The text is matched on a view in which every line
 * ends in LF, so `\r\n` files match what the model sees; new lines take the ending of the lines they replace, else the
 * file's own. Bytes that are not UTF-8 are viewed as Latin-1, one character per byte, and so kept as they are.
 * Throws `EditProblem`.
 */
export function splice(raw: Uint8Array, edit: Edit): Spliced {
  const { text, encode } = view(raw, edit);
  const lf = new LfView(text);
  const oldText = edit.oldString.replaceAll('\r\n', '\n');
  const newText = edit.newString.replaceAll('\r\n', '\n');
  if (oldText === newText)
    throw new EditProblem('old_string and new_string are the same, so there is nothing to change.');
  const starts = occurrences(lf.text, oldText);
  if (starts.length === 0) throw new EditProblem(notFound(lf.text, oldText));
  const lines = starts.map((start) => lf.lineOf(start));
  if (starts.length > 1 && !edit.replaceAll)
    throw new EditProblem(
      `old_string occurs ${starts.length} times, at lines ${shortList(lines)}. Add surrounding lines to make it unique, or set replace_all.`,
    );
  const pieces: string[] = [];
  let at = 0;
  for (const start of starts) {
    const from = lf.rawIndex(start);
    const to = lf.rawIndex(start + oldText.length);
    pieces.push(text.slice(at, from), withEndings(newText, text.slice(from, to), lf.ending));
    at = to;
  }
  pieces.push(text.slice(at));
  return { bytes: encode(pieces.join('')), lines };
}

/** The file as text, and the way back to bytes. */
function view(raw: Uint8Array, edit: Edit): { text: string; encode: (text: string) => Uint8Array } {
  try {
    // The BOM stays in the text (as its first character), so that it comes out again.
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(raw);
    return { text, encode: (changed) => new TextEncoder().encode(changed) };
  } catch {
    assertCarriedOver(edit);
    return {
      text: Buffer.from(raw).toString('latin1'),
      encode: (changed) => new Uint8Array(Buffer.from(changed, 'latin1')),
    };
  }
}

/** In a file of an unknown encoding only characters that already stand there may be written again. */
function assertCarriedOver(edit: Edit): void {
  const known = new Set(edit.oldString);
  const fresh = [...edit.newString].find((character) => character > '\x7f' && !known.has(character));
  const beyond = [...edit.newString].find((character) => character > '\xff');
  const bad = beyond ?? fresh;
  if (bad !== undefined)
    throw new EditProblem(
      `This file is not UTF-8, and "${bad}" in new_string could not be written in its unknown encoding without guessing. Use only ASCII in what is new, or convert the file with bash first.`,
    );
}

/** A text with every `\r\n` seen as `\n`, and the way back to positions in the text itself. */
class LfView {
  readonly text: string;
  /** What most lines end in. */
  readonly ending: '\n' | '\r\n';
  /** Positions in `text` of line breaks that have a `\r` before them in the raw text, rising. */
  readonly #dropped: number[] = [];

  constructor(raw: string) {
    for (let at = raw.indexOf('\r\n'); at !== -1; at = raw.indexOf('\r\n', at + 2))
      this.#dropped.push(at - this.#dropped.length);
    this.text = raw.replaceAll('\r\n', '\n');
    const breaks = occurrences(this.text, '\n').length;
    this.ending = this.#dropped.length * 2 > breaks ? '\r\n' : '\n';
  }

  /** A position between two characters; before a `\r\n` it is before both. */
  rawIndex(index: number): number {
    let low = 0;
    let high = this.#dropped.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#dropped[middle] ?? 0) < index) low = middle + 1;
      else high = middle;
    }
    return index + low;
  }

  lineOf(index: number): number {
    let line = 1;
    for (let at = this.text.indexOf('\n'); at !== -1 && at < index; at = this.text.indexOf('\n', at + 1)) line++;
    return line;
  }
}

function withEndings(newText: string, replaced: string, fileEnding: '\n' | '\r\n'): string {
  const first = replaced.indexOf('\n');
  const own = first === -1 ? fileEnding : replaced[first - 1] === '\r' ? '\r\n' : '\n';
  return own === '\n' ? newText : newText.replaceAll('\n', '\r\n');
}

/** Starts of all occurrences that don't overlap. */
function occurrences(text: string, part: string): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) found.push(at);
  return found;
}

const shortList = (lines: number[]): string =>
  lines.length <= 10 ? lines.join(', ') : `${lines.slice(0, 10).join(', ')} and ${lines.length - 10} more`;

const squeezed = (line: string): string => line.replaceAll(/\s+/g, ' ').trim();

/** Why there is no match, with the lines that come closest. */
function notFound(text: string, oldText: string): string {
  const wanted =
    oldText
      .split('\n')
      .map(squeezed)
      .find((line) => line !== '') ?? '';
  const lines = text.split('\n');
  const same = lines.findIndex((line) => squeezed(line) === wanted && wanted !== '');
  if (same !== -1) {
    const shown = numbered(lines, same, oldText.split('\n').length);
    return `old_string was not found. Its first line stands at line ${same + 1}, but spaces or the lines after it differ. The file has:\n${shown}`;
  }
  const near = nearest(lines, wanted);
  if (near === -1) return 'old_string was not found, nor any line like it. Read the file again.';
  return `old_string was not found. The closest the file has is:\n${numbered(lines, near, 1)}`;
}

function numbered(lines: string[], from: number, count: number): string {
  const shown = lines.slice(from, from + Math.min(count, 12));
  return shown.map((line, i) => `${from + i + 1}: ${line.slice(0, 300)}`).join('\n');
}

/** The line that shares the most words with the wanted one; -1 if none shares half. */
function nearest(lines: string[], wanted: string): number {
  const words = new Set(wanted.match(/[\p{L}\p{N}_]+/gu) ?? []);
  let best = -1;
  let bestScore = words.size / 2;
  for (const [i, line] of lines.entries()) {
    const own = new Set(line.slice(0, 2000).match(/[\p{L}\p{N}_]+/gu) ?? []);
    let score = 0;
    for (const word of words) if (own.has(word)) score++;
    if (score > bestScore || (score === bestScore && score > 0 && best === -1)) {
      best = i;
      bestScore = score;
    }
  }
  return best;
}
