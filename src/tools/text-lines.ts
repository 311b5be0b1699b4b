import type { TextFile } from './detect.ts';
import { isAscii } from './encodings.ts';
import { toLf } from './lf-view.ts';
import { sizeWords } from './media.ts';

/** Bytes of a file, or characters of a text, that the model gets at once. */
export const READ_CAP = 256 * 1024;

/** Lines counted from 1, both included; `last` 0 or less: to the end. */
export interface Range {
  first: number;
  last: number;
  /** The model named them. */
  asked: boolean;
}

/** A piece of a file that is about to be shown. */
interface Piece {
  text: string;
  /** Line of the file on which it begins. */
  first: number;
  /** Lines of the whole file. */
  lines: number;
  /** Bytes of the whole file. */
  size: number;
  /** There is more of what was asked for than `text` has. */
  cut: boolean;
}

/** The lines of a whole text that were asked for, and notes after them where there is something to say. */
export function shownLines(path: string, whole: string, size: number, range: Range, notes: readonly string[]): string {
  if (size === 0) return `${path} is empty.`;
  const text = toLf(whole);
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1 && at + 1 < text.length; at = text.indexOf('\n', at + 1))
    starts.push(at + 1);
  const from = starts[range.first - 1];
  if (from === undefined) return noSuchLine(path, range.first, starts.length);
  const to = range.last > 0 ? (starts[range.last] ?? text.length) : text.length;
  const piece = { first: range.first, lines: starts.length, size };
  const cut = to - from > READ_CAP;
  const shown = pieceText({ ...piece, text: text.slice(from, cut ? from + READ_CAP : to), cut }, range.asked);
  return withNotes(shown.text, [...notes, ...shown.notes]);
}

/** The same of a piece that was cut out elsewhere. */
export function shownPiece(path: string, piece: Piece, range: Range, notes: readonly string[]): string {
  if (piece.text === '') return noSuchLine(path, range.first, piece.lines);
  const shown = pieceText({ ...piece, text: toLf(piece.text) }, range.asked);
  return withNotes(shown.text, [...notes, ...shown.notes]);
}

const noSuchLine = (path: string, line: number, lines: number): string =>
  `${path} has no line ${line}: it has ${lines === 1 ? 'one line' : `${lines} lines`}.`;

function pieceText(piece: Piece, asked: boolean): { text: string; notes: string[] } {
  if (!piece.cut) return { text: piece.text, notes: asked ? [`The file has ${lineWords(piece.lines)}.`] : [] };
  // Cut at a line's end, so that the next view_range can start with a whole line.
  const end = piece.text.lastIndexOf('\n') + 1;
  const text = end > 0 ? piece.text.slice(0, end) : piece.text.replace(/[\ud800-\udbff]$/, '');
  const part = `This is ${sizeWords(Buffer.byteLength(text))} of ${sizeWords(piece.size)}`;
  if (end === 0) return { text, notes: [`${part}, all in one line. Use bash to cut out what you need.`] };
  const next = piece.first + text.split('\n').length - 1;
  return { text, notes: [`${part}, ${lineWords(piece.lines)}. Go on with view_range [${next}, 0].`] };
}

const lineWords = (lines: number): string => (lines === 1 ? 'one line' : `${lines} lines`);

/** Notes stand each on a line of its own after the text. */
function withNotes(text: string, notes: readonly string[]): string {
  const said = notes.map((note) => `[${note}]`).join('\n');
  return said === '' || text.endsWith('\n') ? text + said : `${text}\n${said}`;
}

/** What the model should know of how the bytes were read: nothing for UTF-8. */
export function encodingNotes(file: TextFile): string[] {
  const { name } = file.encoding;
  switch (file.how) {
    case 'unknown':
      return [
        `This file is not valid UTF-8, and its encoding is not known; it is shown as ${name}, one character per byte.`,
      ];
    case 'guess':
      return [`This file is not UTF-8; it seems to be ${name}, and edits are written in that.`];
    case 'hint':
      return name === 'UTF-8' || isAscii(file.text) ? [] : [`This file is in ${name}, and edits are written in that.`];
    default:
      return name === 'UTF-8' ? [] : [`This file is in ${name}, and edits are written in that.`];
  }
}
