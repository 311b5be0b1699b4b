import { byteLength, doubleByte } from './double-byte.ts';

/**
 * One way to write text as bytes. What encodes is the decoder turned round, so the two can't disagree: a character
 * that does not come back as it was written is not written.
 */
export interface Encoding {
  /** For people, such as `UTF-16 LE`. */
  readonly name: string;
  /** Null if these bytes are no text in it. A byte order mark is a character like others. */
  decode(bytes: Uint8Array): string | null;
  /** The bytes, or the first character that it does not have. `text` is well-formed. */
  encode(text: string): Uint8Array | { missing: string };
  /** Bytes of the first `units` UTF-16 code units of `text`, which is what `bytes` decode to. Null if that can't be told. */
  offset(bytes: Uint8Array, text: string, units: number): number | null;
}

/** UTF-8 takes more than one byte for everything else. */
export const isAscii = (text: string): boolean => Buffer.byteLength(text) === text.length;

export const UTF8: Encoding = {
  name: 'UTF-8',
  decode: decoder('utf-8'),
  encode: (text) => new TextEncoder().encode(text),
  offset: (_bytes, text, units) => Buffer.byteLength(text.slice(0, units)),
};

export const UTF16LE: Encoding = {
  name: 'UTF-16 LE',
  decode: decoder('utf-16le'),
  encode: (text) => new Uint8Array(Buffer.from(text, 'utf16le')),
  offset: (_bytes, _text, units) => units * 2,
};

export const UTF16BE: Encoding = {
  name: 'UTF-16 BE',
  decode: decoder('utf-16be'),
  encode: (text) => new Uint8Array(Buffer.from(text, 'utf16le').swap16()),
  offset: (_bytes, _text, units) => units * 2,
};

/** Every byte is the character of the same number: nothing is lost, whatever the bytes really mean. */
export const LATIN1: Encoding = {
  name: 'Latin-1',
  decode: (bytes) => Buffer.from(bytes).toString('latin1'),
  encode(text) {
    const missing = [...text].find((character) => character > '\xff');
    return missing === undefined ? new Uint8Array(Buffer.from(text, 'latin1')) : { missing };
  },
  offset: (_bytes, _text, units) => units,
};

/** Names as `TextDecoder` takes them. In all of these a byte below 128 that begins a character is ASCII. */
const SINGLE = `windows-1250 windows-1251 windows-1252 windows-1253 windows-1254 windows-1255 windows-1256 windows-1257
  windows-1258 windows-874 iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8 iso-8859-10
  iso-8859-13 iso-8859-14 iso-8859-15 iso-8859-16 koi8-r koi8-u ibm866 macintosh`.split(/\s+/);
/** `gbk` reads the whole of GB 18030; what needs four bytes there is not written, as older readers don't know it. */
const DOUBLE = ['shift_jis', 'gbk', 'big5', 'euc-kr', 'euc-jp'] as const;

const SHOWN: Readonly<Record<string, string>> = { shift_jis: 'Shift_JIS', big5: 'Big5', macintosh: 'Mac Roman' };
/** Other names under which editors and detectors know some of them, without punctuation. */
const ALIASES: Readonly<Record<string, string>> = {
  iso88591: 'latin1',
  iso88599: 'windows1254',
  iso885911: 'windows874',
  macroman: 'macintosh',
  cp866: 'ibm866',
  gb18030: 'gbk',
  gb2312: 'gbk',
  cp950: 'big5',
  big5hkscs: 'big5',
};

const plain = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
const shownName = (label: string): string =>
  SHOWN[label] ??
  label.replace(/^windows/, 'Windows').replace(/^(iso|koi8|gbk|euc|ibm).*/, (name) => name.toUpperCase());

const makers = new Map<string, () => Encoding>([
  ['utf8', () => UTF8],
  ['utf16le', () => UTF16LE],
  ['utf16be', () => UTF16BE],
  ['latin1', () => LATIN1],
  ...SINGLE.map((label) => [plain(label), () => singleByte(label)] as const),
  ...DOUBLE.map((label) => [plain(label), () => multiByte(label)] as const),
]);
const made = new Map<string, Encoding>();

/** An encoding by the name that VS Code's `files.encoding`, a detector or a standard gives it; undefined if it is not one of ours. */
export function encodingNamed(name: string): Encoding | undefined {
  const known = plain(name);
  const key = ALIASES[known] ?? known;
  const encoding = made.get(key) ?? makers.get(key)?.();
  if (encoding) made.set(key, encoding);
  return encoding;
}

function decoder(label: string): Encoding['decode'] {
  const strict = new TextDecoder(label, { fatal: true, ignoreBOM: true });
  return (bytes) => {
    try {
      return strict.decode(bytes);
    } catch {
      return null;
    }
  };
}

function singleByte(label: string): Encoding {
  const table = new TextDecoder(label).decode(Uint8Array.from({ length: 256 }, (_, byte) => byte));
  const codes = new Map([...table].map((character, byte) => [character, byte]));
  codes.delete('\ufffd');
  return {
    name: shownName(label),
    decode: decoder(label),
    encode: (text) => encodeBy(text, (character) => codes.get(character)),
    offset: (_bytes, _text, units) => units,
  };
}

function multiByte(label: (typeof DOUBLE)[number]): Encoding {
  const strict = decoder(label);
  const codes = doubleByte(label);
  // A first byte that the platform does not know comes out as a control character: that is no text in this encoding.
  const decode: Encoding['decode'] = (bytes) => {
    const text = strict(bytes);
    return text === null || /[\x80-\x9f]/.test(text) ? null : text;
  };
  return {
    name: shownName(label),
    decode,
    encode: (text) => encodeBy(text, (character) => codes().get(character)),
    offset(bytes, text, units) {
      const length = byteLength(label, bytes, units, decode);
      // What stands before must be what was read as that, or a byte in the middle of a character would be taken apart.
      return decode(bytes.subarray(0, length)) === text.slice(0, units) ? length : null;
    },
  };
}

/** `codeOf` gives the bytes of a character as one big-endian number. */
function encodeBy(text: string, codeOf: (character: string) => number | undefined): Uint8Array | { missing: string } {
  const bytes: number[] = [];
  for (const character of text) {
    const code = codeOf(character);
    if (code === undefined) return { missing: character };
    if (code > 0xffff) bytes.push(code >> 16);
    if (code > 0xff) bytes.push((code >> 8) & 0xff);
    bytes.push(code & 0xff);
  }
  return Uint8Array.from(bytes);
}

/** For bytes of which nothing is known: every one of them is one character here, and most such files were meant so. */
export const WESTERN: Encoding = singleByte('windows-1252');
