/** A block with so many entries is closed: what makes, loads or thaws one stays short. */
const FULL = 100_000;

/** Where a record stands in its log, and when it was written. */
export interface Place {
  seq: number;
  /** The line's first byte in the file. */
  start: number;
  /** Bytes of the line, without its newline. */
  length: number;
  /** ms since 1970. */
  at: number;
}

/** An index over some records of one session, never changed: word → the records it is in. */
export class Block {
  readonly seqs: Uint32Array;
  readonly starts: Float64Array;
  readonly lengths: Uint32Array;
  readonly times: Float64Array;
  /** All words, each between two newlines. */
  readonly words: string;
  /** Where in `words` each word begins. */
  readonly wordStarts: Uint32Array;
  /** Where in `entries` each word's records begin, and where the last one's end. */
  readonly entryStarts: Uint32Array;
  /** Numbers of records in this block, rising within a word. */
  readonly entries: Uint16Array;
  /** When its newest record was written, ms since 1970. */
  readonly newest: number;

  constructor(parts: Omit<Block, 'newest' | 'size' | 'find' | 'place' | 'isFull'>) {
    this.seqs = parts.seqs;
    this.starts = parts.starts;
    this.lengths = parts.lengths;
    this.times = parts.times;
    this.words = parts.words;
    this.wordStarts = parts.wordStarts;
    this.entryStarts = parts.entryStarts;
    this.entries = parts.entries;
    this.newest = this.times.reduce((a, b) => Math.max(a, b), 0);
  }

  /** Records in it. */
  get size(): number {
    return this.seqs.length;
  }

  get isFull(): boolean {
    return this.entries.length >= FULL || this.size >= 0xffff;
  }

  place(n: number): Place {
    return {
      seq: this.seqs[n] ?? 0,
      start: this.starts[n] ?? 0,
      length: this.lengths[n] ?? 0,
      at: this.times[n] ?? 0,
    };
  }

  /** Numbers of the records that have each piece in one of their words, rising. Without pieces, all. */
  find(pieces: readonly string[]): number[] {
    // How many of the pieces so far each record has.
    const has = new Uint8Array(this.size);
    for (const [n, piece] of pieces.entries()) {
      if (!this.#mark(has, piece, n)) return [];
    }
    const found: number[] = [];
    for (let n = 0; n < has.length; n++) if (has[n] === pieces.length) found.push(n);
    return found;
  }

  /** Raises the records with a piece from `before` to `before + 1`; false if there is none. */
  #mark(has: Uint8Array, piece: string, before: number): boolean {
    let any = false;
    // A letter or two are in every second word, so they are taken for the beginning of one.
    const part = piece.length < 3 && /^[\w]+$/.test(piece) ? `\n${piece}` : piece;
    for (let at = this.words.indexOf(part); at !== -1; ) {
      const word = this.#wordAt(at + part.length - 1);
      const end = this.entryStarts[word + 1] ?? 0;
      for (let entry = this.entryStarts[word] ?? 0; entry < end; entry++) {
        const n = this.entries[entry] ?? 0;
        if (has[n] === before) {
          has[n] = before + 1;
          any = true;
        }
      }
      const next = this.wordStarts[word + 1];
      if (next === undefined) break;
      at = this.words.indexOf(part, next - 1);
    }
    return any;
  }

  /** The number of the word that has the character at `at`. */
  #wordAt(at: number): number {
    let low = 0;
    let high = this.wordStarts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.wordStarts[middle] ?? 0) <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** Takes records in and makes a block of them. */
export class BlockBuilder {
  readonly #places: Place[] = [];
  readonly #entries = new Map<string, number[]>();
  #count = 0;

  /** Goes on from a block that is not full. */
  static from(block: Block): BlockBuilder {
    const builder = new BlockBuilder();
    for (let n = 0; n < block.size; n++) builder.#places.push(block.place(n));
    const words = block.wordStarts.length === 0 ? [] : block.words.slice(1, -1).split('\n');
    for (const [n, word] of words.entries()) {
      builder.#entries.set(word, [...block.entries.subarray(block.entryStarts[n], block.entryStarts[n + 1])]);
    }
    builder.#count = block.entries.length;
    return builder;
  }

  get isFull(): boolean {
    return this.#count >= FULL || this.#places.length >= 0xffff;
  }

  get isEmpty(): boolean {
    return this.#places.length === 0;
  }

  /** A record whose words come next. */
  add(place: Place): void {
    this.#places.push(place);
  }

  /** Adds a word of the last record. True if the record did not have it before. */
  word(word: string): boolean {
    const n = this.#places.length - 1;
    const entries = this.#entries.get(word);
    if (entries?.at(-1) === n) return false;
    if (entries) entries.push(n);
    else this.#entries.set(word, [n]);
    this.#count += 1;
    return true;
  }

  build(): Block {
    const wordStarts = new Uint32Array(this.#entries.size);
    const entryStarts = new Uint32Array(this.#entries.size + 1);
    const entries = new Uint16Array(this.#count);
    let [n, wordAt, entryAt] = [0, 1, 0];
    for (const [word, list] of this.#entries) {
      wordStarts[n] = wordAt;
      entryStarts[n] = entryAt;
      entries.set(list, entryAt);
      wordAt += word.length + 1;
      entryAt += list.length;
      n += 1;
    }
    entryStarts[n] = entryAt;
    return new Block({
      seqs: Uint32Array.from(this.#places, ({ seq }) => seq),
      starts: Float64Array.from(this.#places, ({ start }) => start),
      lengths: Uint32Array.from(this.#places, ({ length }) => length),
      times: Float64Array.from(this.#places, ({ at }) => at),
      words: `\n${[...this.#entries.keys()].join('\n')}\n`,
      wordStarts,
      entryStarts,
      entries,
    });
  }
}
