/** A longer run of letters is kept as overlapping pieces of this length, in characters. */
const LONGEST = 64;
/** How far apart such pieces begin; so any part of this length is whole in one of them. */
const STEP = LONGEST / 2;
const WORD = /[\p{L}\p{M}\p{N}_]+/gu;
const NOT_ASCII = /[^\0-\x7f]/;

/** What a terminal's colours are made of. */
const ESCAPE = '\u001b';
const COLOURS = new RegExp(`${ESCAPE}\\[[0-9;?]*[ -/]*[@-~]`, 'g');

/** One spelling for one text: an é of one character and an e with an accent are the same, and so is a red one. */
export function normal(text: string): string {
  const plain = text.includes(ESCAPE) ? text.replace(COLOURS, '') : text;
  return NOT_ASCII.test(plain) ? plain.normalize('NFC') : plain;
}

/** Calls back with the words of a text in lower case, as they are indexed; the same one as often as it occurs. */
export function eachWord(text: string, act: (word: string) => void): void {
  for (const [word] of normal(text).toLowerCase().matchAll(WORD)) {
    if (word.length <= LONGEST) act(word);
    else for (let at = 0; at < word.length; at += STEP) act(word.slice(at, at + LONGEST));
  }
}

export interface Query {
  /** Parts of words: a text that has the terms has each of them in one of its words. */
  pieces: string[];
  /** What a text must have, each anywhere, whatever the case; what stood in quotes is one. */
  terms: RegExp[];
  /** All terms as they were typed, one after the other: where they stand so is what a person means. */
  phrase: RegExp;
}

/** What a person typed, or null if there is nothing to look for. */
export function parseQuery(typed: string): Query | null {
  const parts = [...normal(typed).matchAll(/"([^"]+)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  const texts = parts.filter((part) => part.trim() !== '');
  if (texts.length === 0) return null;
  const pieces = new Set<string>();
  for (const text of texts) {
    for (const [word] of text.toLowerCase().matchAll(WORD)) {
      for (let at = 0; at < word.length; at += STEP) pieces.add(word.slice(at, at + STEP));
    }
  }
  return {
    pieces: [...pieces].sort((a, b) => b.length - a.length),
    terms: texts.map(pattern),
    phrase: pattern(texts.join(' ')),
  };
}

/** As typed, in any case, with any blanks where there is a blank. */
const pattern = (text: string): RegExp => new RegExp(text.trim().split(/\s+/).map(escaped).join('\\s+'), 'iu');

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
