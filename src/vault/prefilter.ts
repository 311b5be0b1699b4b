import { MIN_SECRET } from './secret-forms.ts';

/** Characters that are looked at together. */
const GRAM = 4;
/** So far apart, one look falls on one of the first grams of whatever stands there in full. */
const STEP = MIN_SECRET - GRAM + 1;
/** One bit in 64 is set where two vaults are full, so that nearly every look ends here. */
const BITS = 18;

/**
 * Tells quickly of nearly every text that none of the patterns begins in it, and is never wrong when it says so. It looks
 * at one place in five, as if the text had no white space.
 */
export class Prefilter {
  readonly #bits = new Uint8Array(1 << BITS);
  /** The first characters of patterns, and where in them the gram is, by the gram's hash. */
  readonly #heads = new Map<number, { head: Uint16Array; at: number }[]>();
  #codes = new Uint16Array(4096);
  /** A pattern is too short to be looked for this way. */
  #always = false;

  constructor(patterns: readonly string[]) {
    const seen = new Set<string>();
    for (const pattern of patterns) {
      const head = Uint16Array.from([...visible(pattern)].slice(0, MIN_SECRET), (code) => code);
      if (head.length < MIN_SECRET) this.#always = true;
      else if (!seen.has(head.join())) {
        seen.add(head.join());
        this.#add(head);
      }
    }
  }

  /** @param before what stood right before `text`, at least its last `MIN_SECRET - 1` visible characters */
  mayHold(text: string, before = ''): boolean {
    if (this.#always) return true;
    const whole = before + text;
    if (this.#codes.length < whole.length) this.#codes = new Uint16Array(whole.length);
    const codes = this.#codes;
    let count = 0;
    for (let at = 0; at < whole.length; at += 1) {
      const code = whole.charCodeAt(at);
      if (code > 32) {
        codes[count] = code;
        count += 1;
      }
    }
    for (let at = 0; at + GRAM <= count; at += STEP) {
      const hash = hashAt(codes, at);
      if (this.#bits[hash >>> (32 - BITS)] === 1 && this.#stands(hash, codes, at, count)) return true;
    }
    return false;
  }

  #add(head: Uint16Array): void {
    for (let at = 0; at < STEP; at += 1) {
      const hash = hashAt(head, at);
      this.#bits[hash >>> (32 - BITS)] = 1;
      const known = this.#heads.get(hash);
      if (known) known.push({ head, at });
      else this.#heads.set(hash, [{ head, at }]);
    }
  }

  #stands(hash: number, codes: Uint16Array, place: number, count: number): boolean {
    return (this.#heads.get(hash) ?? []).some(({ head, at }) => {
      const start = place - at;
      if (start < 0 || start + head.length > count) return false;
      return head.every((code, index) => codes[start + index] === code);
    });
  }
}

function* visible(text: string): Generator<number> {
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) > 32) yield text.charCodeAt(at);
}

/** Of four characters, 32 bits, the upper ones well mixed. */
function hashAt(codes: Uint16Array, at: number): number {
  let hash = codes[at] ?? 0;
  hash = Math.imul(hash, 0x9e37_79b1) ^ (codes[at + 1] ?? 0);
  hash = Math.imul(hash, 0x9e37_79b1) ^ (codes[at + 2] ?? 0);
  hash = Math.imul(hash, 0x9e37_79b1) ^ (codes[at + 3] ?? 0);
  return Math.imul(hash, 0x9e37_79b1) >>> 0;
}
