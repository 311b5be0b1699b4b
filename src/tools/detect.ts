import { analyse } from 'chardet';
import { type Encoding, encodingNamed, UTF8, UTF16BE, UTF16LE, WESTERN } from './encodings.ts';
import { isBinary } from './media.ts';

/** What a file's bytes are as text. */
export interface TextFile {
  encoding: Encoding;
  /** Without the byte order mark. */
  text: string;
  /** The byte order mark; empty if there is none. */
  bom: Uint8Array;
  /** `unknown`: shown as Windows-1252, since every byte must be shown as something. */
  how: 'certain' | 'hint' | 'guess' | 'unknown';
}

export const UTF8_BOM = Uint8Array.of(0xef, 0xbb, 0xbf);
const BOMS: readonly [Uint8Array, Encoding][] = [
  [UTF8_BOM, UTF8],
  [Uint8Array.of(0xff, 0xfe), UTF16LE],
  [Uint8Array.of(0xfe, 0xff), UTF16BE],
];

/** Bytes of which a guess is made: letters' frequencies don't change after that. */
const SAMPLE = 64 * 1024;
/** Of 100. Below these the detector is wrong too often on the short comments of a source file. */
const MULTI_BYTE_SURE = 90;
const SINGLE_BYTE_SURE = 50;
/** How much less likely, of 100, the next best must be: Latin-1 and Latin-2 often come out alike. */
const LEAD = 30;
/** So few bytes that are not ASCII say nothing. */
const EVIDENCE = 8;

/**
 * Reads bytes as text. `hint` is what the person's editor takes such a file for, a name as in `files.encoding`.
 * Null if they are no text: see `isBinary`.
 */
export function readText(bytes: Uint8Array, hint?: string): TextFile | null {
  const marked = BOMS.find(([bom]) => startsWith(bytes, bom));
  if (marked) {
    const [bom, encoding] = marked;
    const text = encoding.decode(bytes.subarray(bom.length));
    if (text !== null && !text.includes('\0')) return { encoding, text, bom, how: 'certain' };
  }
  const bom = new Uint8Array();
  const wide = wideText(bytes);
  if (wide) return { ...wide, bom, how: 'certain' };
  if (isBinary(bytes)) return null;
  const hinted = hint === undefined ? undefined : encodingNamed(hint);
  const utf8 = UTF8.decode(bytes);
  if (utf8 !== null) {
    // Nothing but ASCII reads the same in both; what is added to it should be what the person's other files are in.
    const ascii = hinted !== undefined && utf8.length === bytes.length && hinted.decode(bytes) === utf8;
    return ascii && hinted !== UTF8
      ? { encoding: hinted, text: utf8, bom, how: 'hint' }
      : { encoding: UTF8, text: utf8, bom, how: 'certain' };
  }
  const told = hinted?.decode(bytes);
  if (hinted && typeof told === 'string' && hinted !== UTF8) return { encoding: hinted, text: told, bom, how: 'hint' };
  const guessed = guess(bytes);
  if (guessed) return { ...guessed, bom, how: 'guess' };
  return { encoding: WESTERN, text: WESTERN.decode(bytes) ?? '', bom, how: 'unknown' };
}

/** UTF-16 without a byte order mark: most characters are from one block, so the same half of each pair is 0. */
function wideText(bytes: Uint8Array): { encoding: Encoding; text: string } | undefined {
  if (bytes.length < 4 || bytes.length % 2 !== 0) return undefined;
  const start = bytes.subarray(0, 8192);
  let even = 0;
  let odd = 0;
  for (let i = 0; i + 1 < start.length; i += 2) {
    if (start[i] === 0) even++;
    if (start[i + 1] === 0) odd++;
  }
  const pairs = start.length / 2;
  // A third of zeros on one side and none on the other: a table of small numbers has some on both.
  const encoding = even === 0 && odd * 3 > pairs ? UTF16LE : odd === 0 && even * 3 > pairs ? UTF16BE : undefined;
  const text = encoding?.decode(bytes);
  if (!encoding || typeof text !== 'string') return undefined;
  // Numbers in pairs of bytes look the same, but are no text.
  return isBinary(Buffer.from(text.slice(0, 4096))) ? undefined : { encoding, text };
}

function guess(bytes: Uint8Array): { encoding: Encoding; text: string } | undefined {
  const part = sample(bytes);
  if (part.filter((byte) => byte > 0x7f).length < EVIDENCE) return undefined;
  const found = analyse(part).filter((match) => match.name !== 'UTF-8' && match.name !== 'ASCII');
  const [best] = found;
  if (!best) return undefined;
  const encoding = encodingNamed(best.name);
  const text = encoding?.decode(bytes);
  if (!encoding || typeof text !== 'string') return undefined;
  if (isMultiByte(best.name)) return best.confidence >= MULTI_BYTE_SURE ? { encoding, text } : undefined;
  // Another name under which the text is the same is no rival.
  const rival = found.slice(1).find((match) => encodingNamed(match.name)?.decode(bytes) !== text);
  const sure = best.confidence >= SINGLE_BYTE_SURE && best.confidence - (rival?.confidence ?? 0) >= LEAD;
  return sure ? { encoding, text } : undefined;
}

const isMultiByte = (name: string): boolean => /^(Shift_JIS|Big5|EUC-JP|EUC-KR|GB18030)$/.test(name);

/** The lines that are not ASCII: a long program with one foreign comment must not look like English. */
function sample(bytes: Uint8Array): Uint8Array {
  if (bytes.length <= 1024) return bytes;
  const parts: Uint8Array[] = [];
  let size = 0;
  for (let at = 0; at < bytes.length && size < SAMPLE; ) {
    const newline = bytes.indexOf(0x0a, at);
    const end = newline === -1 ? bytes.length : newline + 1;
    const line = bytes.subarray(at, end);
    if (line.some((byte) => byte > 0x7f)) {
      parts.push(line);
      size += line.length;
    }
    at = end;
  }
  return Buffer.concat(parts).subarray(0, SAMPLE);
}

const startsWith = (bytes: Uint8Array, start: Uint8Array): boolean =>
  bytes.length >= start.length && start.every((byte, i) => bytes[i] === byte);
