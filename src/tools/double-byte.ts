/*
 * The East Asian encodings in which a character takes one, two or more bytes: where the next one begins, and which
 * bytes write a character. The platform only decodes them; the way back is its own table, read once from front to back.
 */

type Label = 'shift_jis' | 'gbk' | 'big5' | 'euc-kr' | 'euc-jp';

/** Bytes of the character that begins at `at`. */
function step(label: Label, bytes: Uint8Array, at: number): number {
  const lead = bytes[at] ?? 0;
  if (lead < 0x80) return 1;
  switch (label) {
    case 'shift_jis':
      return lead === 0x80 || (lead >= 0xa0 && lead <= 0xdf) || lead > 0xfc ? 1 : 2;
    case 'gbk': {
      if (lead === 0x80 || lead === 0xff) return 1;
      const second = bytes[at + 1] ?? 0;
      return second >= 0x30 && second <= 0x39 ? 4 : 2;
    }
    case 'euc-jp':
      return lead === 0x8f ? 3 : lead === 0x8e || lead > 0xa0 ? 2 : 1;
    default:
      return lead > 0x80 && lead < 0xff ? 2 : 1;
  }
}

/** Bytes that the first `units` UTF-16 code units take. */
export function byteLength(
  label: Label,
  bytes: Uint8Array,
  units: number,
  decode: (bytes: Uint8Array) => string | null,
): number {
  let at = 0;
  for (let seen = 0; seen < units && at < bytes.length; ) {
    const size = step(label, bytes, at);
    // Only four bytes, or Big5's few letters with two accents, can be more than one unit.
    const single = size === 1 || (size === 2 && label !== 'big5');
    seen += single ? 1 : (decode(bytes.subarray(at, at + size))?.length ?? 1);
    at += size;
  }
  return at;
}

/** First bytes, in the order in which they are asked: of two ways to write a character the usual one comes first. */
const LEADS: Readonly<Record<Label, readonly number[]>> = {
  // 0xED and 0xEE repeat characters that IBM's own rows have.
  shift_jis: [...range(0x81, 0x9f), ...range(0xe0, 0xec), ...range(0xef, 0xfc), 0xed, 0xee],
  gbk: range(0x81, 0xfe),
  // Below 0xA1 are Hong Kong's additions, which few readers know.
  big5: [...range(0xa1, 0xfe), ...range(0x81, 0xa0)],
  'euc-kr': range(0x81, 0xfe),
  'euc-jp': [0x8e, ...range(0xa1, 0xfe)],
};

const tables = new Map<Label, ReadonlyMap<string, number>>();

/** Character → its bytes as one big-endian number; made at the first call. */
export function doubleByte(label: Label): () => ReadonlyMap<string, number> {
  return () => {
    const table = tables.get(label) ?? tableOf(label);
    tables.set(label, table);
    return table;
  };
}

function tableOf(label: Label): ReadonlyMap<string, number> {
  const trails = range(0x40, 0xfe).filter((byte) => byte !== 0x7f);
  const codes = range(0, 0xff);
  for (const lead of LEADS[label]) for (const trail of trails) codes.push(lead * 256 + trail);
  // A line each, so that a pair that means nothing can't swallow what follows.
  const bytes = codes.flatMap((code) => (code > 0xff ? [code >> 8, code & 0xff, 0x0a] : [code, 0x0a]));
  const lines = new TextDecoder(label).decode(Uint8Array.from(bytes)).split('\n');
  const table = new Map<string, number>([['\n', 0x0a]]);
  let line = 0;
  for (const code of codes) {
    // The line of a line break is cut in two by itself.
    const character = code === 0x0a ? '' : (lines[line] ?? '');
    line += code === 0x0a ? 2 : 1;
    if ([...character].length === 1 && character !== '\ufffd' && !table.has(character)) table.set(character, code);
  }
  return table;
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}
