/** A place in a text where a pattern stands. */
export interface Hit {
  /** Index of the first character, and of the one behind the last. */
  start: number;
  end: number;
  /** Index in the patterns that were given. */
  pattern: number;
}

/** Space, tab, line feed, carriage return: passed over, so that what is broken over lines is found. */
const skipped = (code: number): boolean => code === 32 || (code <= 13 && code >= 9);

/**
 * Finds any of many patterns in one pass over a text (Aho and Corasick's automaton), as if the text had no white space.
 * Time does not grow with the number of patterns; memory is about 24 bytes for each of their characters.
 */
export class Matcher {
  /** Of each state: the character that leads to it, how many do, its first child, its next sibling. State 0 is the start. */
  readonly #code: Int32Array;
  readonly #depth: Int32Array;
  readonly #child: Int32Array;
  readonly #sibling: Int32Array;
  /** The state of the longest end of this one that is a beginning of a pattern too. */
  readonly #fail: Int32Array;
  /** The pattern that is whole here, or the longest that ends here; -1. */
  readonly #whole: Int32Array;
  readonly #start = new Int32Array(65_536);
  readonly #lengths: readonly number[];
  #states = 1;

  /** @param patterns without white space, none of them empty */
  constructor(patterns: readonly string[]) {
    const most = patterns.reduce((sum, pattern) => sum + pattern.length, 1);
    this.#code = new Int32Array(most);
    this.#depth = new Int32Array(most);
    this.#child = new Int32Array(most);
    this.#sibling = new Int32Array(most);
    this.#fail = new Int32Array(most);
    this.#whole = new Int32Array(most).fill(-1);
    this.#lengths = patterns.map((pattern) => pattern.length);
    patterns.forEach((pattern, index) => {
      this.#add(pattern, index);
    });
    this.#link();
  }

  /** How many characters before the end of what was read may be the beginning of a pattern. White space not counted. */
  depth(state: number): number {
    return this.#depth[state] ?? 0;
  }

  /**
   * Reads on from `state` (0 at first) and returns the state after the text. `found` gets, for each place where patterns
   * end, the longest of them: its index, its length without white space, and the place behind its last character.
   */
  read(text: string, state: number, found: (pattern: number, length: number, end: number) => void): number {
    const start = this.#start;
    let at = state;
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index);
      if (at === 0) {
        at = start[code] ?? 0;
        continue;
      }
      if (skipped(code)) continue;
      at = this.#next(at, code);
      const pattern = this.#whole[at] ?? -1;
      if (pattern >= 0) found(pattern, this.#lengths[pattern] ?? 0, index + 1);
    }
    return at;
  }

  /** All places, as they end; they may overlap. */
  hits(text: string): Hit[] {
    const hits: Hit[] = [];
    this.read(text, 0, (pattern, length, end) => {
      hits.push({ start: back(text, end, length), end, pattern });
    });
    return hits;
  }

  #next(from: number, code: number): number {
    for (let state = from; state !== 0; state = this.#fail[state] ?? 0) {
      const child = this.#childOf(state, code);
      if (child !== 0) return child;
    }
    return this.#start[code] ?? 0;
  }

  #childOf(state: number, code: number): number {
    let child = this.#child[state] ?? 0;
    while (child !== 0 && this.#code[child] !== code) child = this.#sibling[child] ?? 0;
    return child;
  }

  #add(pattern: string, index: number): void {
    let state = 0;
    for (let at = 0; at < pattern.length; at += 1) {
      const code = pattern.charCodeAt(at);
      const known = state === 0 ? (this.#start[code] ?? 0) : this.#childOf(state, code);
      state = known === 0 ? this.#grow(state, code, at + 1) : known;
    }
    this.#whole[state] = index;
  }

  #grow(parent: number, code: number, depth: number): number {
    const state = this.#states;
    this.#states += 1;
    this.#code[state] = code;
    this.#depth[state] = depth;
    if (parent === 0) this.#start[code] = state;
    // The start's children are siblings as well, so that all states can be walked through.
    this.#sibling[state] = this.#child[parent] ?? 0;
    this.#child[parent] = state;
    return state;
  }

  /** Level by level: where a state leads when no child fits is known from shorter ones. */
  #link(): void {
    const queue: number[] = [];
    for (let child = this.#child[0] ?? 0; child !== 0; child = this.#sibling[child] ?? 0) queue.push(child);
    for (let at = 0; at < queue.length; at += 1) {
      const state = queue[at] ?? 0;
      for (let child = this.#child[state] ?? 0; child !== 0; child = this.#sibling[child] ?? 0) {
        const fail = this.#next(this.#fail[state] ?? 0, this.#code[child] ?? 0);
        this.#fail[child] = fail;
        if (this.#whole[child] === -1) this.#whole[child] = this.#whole[fail] ?? -1;
        queue.push(child);
      }
    }
  }
}

/** The place of the character that is `count` before `end`, white space not counted; 0 if there are not so many. */
export function back(text: string, end: number, count: number): number {
  let left = count;
  let at = end;
  while (at > 0 && left > 0) {
    at -= 1;
    if (!skipped(text.charCodeAt(at))) left -= 1;
  }
  return at;
}
