/** How a value was written where it was found. */
export type SecretForm = 'plain' | 'json' | 'url' | 'base64' | 'hex';

export interface Pattern {
  /** Without white space: it is looked for as if the text had none, so a value broken over lines is found. */
  text: string;
  form: SecretForm;
}

/**
 * The shortest value that can be told from ordinary text. A shorter one would be blacked out in half of what is written,
 * so the vault does not take it.
 */
export const MIN_SECRET = 8;
/** A line of a value that is looked for by itself: a key's lines are, its closing dashes are not. */
const MIN_LINE = 16;
/** Long values are looked for piece by piece, so that a part of one is found too. */
const PIECE = 48;

/** Everything a value may look like in an output, a message or a file that somebody means no harm with, or little. */
export function formsOf(value: string): Pattern[] {
  const parts = [value, ...lines(value)];
  const seen = new Set<string>();
  const patterns: Pattern[] = [];
  for (const part of parts) {
    for (const { text, form } of written(part)) {
      for (const piece of pieces(text.replace(/[\t-\r ]/g, ''))) {
        if (piece.length < MIN_SECRET || seen.has(piece)) continue;
        seen.add(piece);
        patterns.push({ text: piece, form });
      }
    }
  }
  return patterns;
}

function lines(value: string): string[] {
  const all = value.split(/\r?\n/).map((line) => line.trim());
  return all.length > 1 ? all.filter((line) => line.length >= MIN_LINE && !/^-----.*-----$/.test(line)) : [];
}

function* written(value: string): Generator<Pattern> {
  const bytes = Buffer.from(value);
  yield { text: value, form: 'plain' };
  // Where bytes are looked through, a character is a byte.
  yield { text: bytes.toString('latin1'), form: 'plain' };
  const json = JSON.stringify(value).slice(1, -1);
  yield { text: json, form: 'json' };
  yield { text: json.replaceAll('/', '\\/'), form: 'json' };
  // A JSON text inside another one.
  yield { text: JSON.stringify(json).slice(1, -1), form: 'json' };
  for (const url of urlForms(value, bytes)) yield { text: url, form: 'url' };
  for (const base64 of base64Forms(bytes)) yield { text: base64, form: 'base64' };
  const hex = bytes.toString('hex');
  yield { text: hex, form: 'hex' };
  yield { text: hex.toUpperCase(), form: 'hex' };
}

function* urlForms(value: string, bytes: Buffer): Generator<string> {
  const usual = encodeURIComponent(value);
  const strict = usual.replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
  const every = bytes.toString('hex').replace(/../g, (byte) => `%${byte.toUpperCase()}`);
  for (const form of [usual, strict, strict.replaceAll('%20', '+'), every]) {
    yield form;
    yield form.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
  }
}

/**
 * Base64 of the value wherever it stands in what was encoded: the digits it shares with what is before and after it are
 * left out, so three alignments cover all places. Both alphabets.
 */
function* base64Forms(bytes: Buffer): Generator<string> {
  for (const before of [0, 1, 2]) {
    const digits = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const first = Math.ceil((before * 8) / 6);
    const last = Math.floor(((before + bytes.length) * 8) / 6);
    const sure = digits.slice(first, last);
    yield sure;
    yield sure.replaceAll('+', '-').replaceAll('/', '_');
  }
}

/** A text of any length as pieces that together are all of it; the last two may overlap. */
function pieces(text: string): string[] {
  if (text.length <= PIECE * 2) return [text];
  const all: string[] = [];
  for (let at = 0; at + PIECE <= text.length; at += PIECE) all.push(text.slice(at, at + PIECE));
  if (text.length % PIECE > 0) all.push(text.slice(-PIECE));
  return all;
}
