import type { TextFile } from './detect.ts';
import { LfView, linesOf, occurrences, toLf } from './lf-view.ts';
import { nearMiss } from './near-miss.ts';

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
 * Replaces text in a file's raw bytes and touches no other byte. `file` is what `raw` reads as. The text is matched on
 * a view in which every line ends in LF, so `\r\n` files match what the model sees. Only what differs between old and
 * new text is written; new lines in it take the ending of the lines they replace, else the file's own.
 * Throws `EditProblem`.
 */
export function splice(raw: Uint8Array, file: TextFile, edit: Edit): Spliced {
  const lf = new LfView(file.text);
  const oldText = toLf(edit.oldString);
  const newText = toLf(edit.newString);
  if (oldText === newText)
    throw new EditProblem('old_string and new_string are the same, so there is nothing to change.');
  if (!oldText.isWellFormed() || !newText.isWellFormed())
    throw new EditProblem(
      'old_string or new_string has half of a character (a lone surrogate), which no file can hold.',
    );
  const starts = occurrences(lf.text, oldText);
  if (starts.length === 0) throw new EditProblem(nearMiss(lf.text, oldText));
  const lines = linesOf(lf.text, starts);
  if (starts.length > 1 && !edit.replaceAll)
    throw new EditProblem(
      `old_string occurs ${starts.length} times, at lines ${shortList(lines)}. Add surrounding lines to make it unique, or set replace_all.`,
    );
  const change = changed(oldText, newText);
  if (file.how === 'unknown') assertCarriedOver(change.fresh, oldText);
  const pieces: Uint8Array[] = [];
  let at = 0;
  for (const [from, to] of byteRanges(raw, file, lf, starts, change)) {
    const whole = file.text.slice(lf.rawIndex(from.match), lf.rawIndex(from.match + oldText.length));
    pieces.push(raw.subarray(at, from.byte), encoded(file, withEndings(change.fresh, whole, lf.ending)));
    at = to;
  }
  pieces.push(raw.subarray(at));
  return { bytes: new Uint8Array(Buffer.concat(pieces)), lines };
}

/** What really changes: `skip` code units at the beginning and `keep` at the end of the old text stay as they are. */
interface Change {
  skip: number;
  /** Code units of the old text that are replaced. */
  replaced: number;
  fresh: string;
}

function changed(oldText: string, newText: string): Change {
  const most = Math.min(oldText.length, newText.length);
  let skip = 0;
  while (skip < most && oldText[skip] === newText[skip]) skip++;
  if (splitsPair(oldText, skip) || splitsPair(newText, skip)) skip--;
  let keep = 0;
  while (keep < most - skip && oldText.at(-1 - keep) === newText.at(-1 - keep)) keep++;
  if (splitsPair(oldText, oldText.length - keep) || splitsPair(newText, newText.length - keep)) keep--;
  return { skip, replaced: oldText.length - keep - skip, fresh: newText.slice(skip, newText.length - keep) };
}

/** The position lies between the halves of one character. */
const splitsPair = (text: string, at: number): boolean =>
  (text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800;

/** For each match the bytes to replace, in the order of the file. Throws where the bytes of a character can't be told. */
function* byteRanges(
  raw: Uint8Array,
  file: TextFile,
  lf: LfView,
  starts: readonly number[],
  change: Change,
): Generator<[from: { match: number; byte: number }, to: number]> {
  // Counted on from the last match, so that a file with thousands of them is walked once.
  let units = 0;
  let bytes = file.bom.length;
  const advance = (index: number): number => {
    const rawIndex = lf.rawIndex(index);
    const step = file.encoding.offset(raw.subarray(bytes), file.text.slice(units), rawIndex - units);
    if (step === null)
      throw new EditProblem(
        `the file's ${file.encoding.name} has characters here that can't be told apart byte by byte. Convert the file with bash first.`,
      );
    units = rawIndex;
    bytes += step;
    return bytes;
  };
  for (const match of starts) {
    const byte = advance(match + change.skip);
    yield [{ match, byte }, advance(match + change.skip + change.replaced)];
  }
}

function encoded(file: TextFile, text: string): Uint8Array {
  const bytes = file.encoding.encode(text);
  if ('missing' in bytes)
    throw new EditProblem(
      `the file is in ${file.encoding.name}, which has no "${bytes.missing}". Leave it out of new_string, or convert the file with bash first.`,
    );
  return bytes;
}

/** In a file of an unknown encoding only ASCII and characters that stand there already may be written. */
function assertCarriedOver(fresh: string, oldText: string): void {
  const known = new Set(oldText);
  const bad = [...fresh].find((character) => character > '\x7f' && !known.has(character));
  if (bad !== undefined)
    throw new EditProblem(
      `the file is not UTF-8, and "${bad}" in new_string could not be written in its unknown encoding without guessing. Use only ASCII in what is new, or convert the file with bash first.`,
    );
}

function withEndings(fresh: string, replaced: string, fileEnding: '\n' | '\r\n'): string {
  const first = replaced.indexOf('\n');
  const own = first === -1 ? fileEnding : replaced[first - 1] === '\r' ? '\r\n' : '\n';
  return own === '\n' ? fresh : fresh.replaceAll('\n', '\r\n');
}

const shortList = (lines: readonly number[]): string =>
  lines.length <= 10 ? lines.join(', ') : `${lines.slice(0, 10).join(', ')} and ${lines.length - 10} more`;
