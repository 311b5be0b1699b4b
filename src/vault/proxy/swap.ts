import { Transform, type TransformCallback } from 'node:stream';
import { formsOf } from '../secret-forms.ts';

/** Every `from` in a stream of bytes becomes its `to`. */
export interface Swap {
  from: Buffer;
  to: Buffer;
}

/**
 * Swaps in bytes that come in pieces. Of a piece only an end that may be the beginning of something to be swapped is
 * held back, so that a stream of small events is not delayed.
 */
export class Swapper {
  readonly #swaps: readonly Swap[];
  readonly #onSwap: ((swap: Swap) => void) | undefined;
  #held: Buffer = Buffer.alloc(0);

  constructor(swaps: readonly Swap[], onSwap?: (swap: Swap) => void) {
    // Of two that begin at the same place the longer one counts.
    this.#swaps = swaps.filter(({ from }) => from.length > 0).sort((a, b) => b.from.length - a.from.length);
    this.#onSwap = onSwap;
  }

  push(chunk: Buffer): Buffer {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk;
    const parts: Buffer[] = [];
    const at = this.#swapAll(bytes, parts);
    const rest = bytes.subarray(at);
    const keep = this.#beginning(rest);
    // A copy: the piece it comes from may be large, and this may be held for long.
    this.#held = Buffer.from(rest.subarray(rest.length - keep));
    const done = rest.subarray(0, rest.length - keep);
    return parts.length === 0 ? done : Buffer.concat([...parts, done]);
  }

  end(): Buffer {
    const rest = this.#held;
    this.#held = Buffer.alloc(0);
    return rest;
  }

  /** Returns where the last swapped part ends. */
  #swapAll(bytes: Buffer, parts: Buffer[]): number {
    const next = this.#swaps.map(({ from }) => bytes.indexOf(from));
    let at = 0;
    for (;;) {
      let first = -1;
      for (const [n, place] of next.entries()) {
        if (place >= 0 && (first < 0 || place < (next[first] ?? 0))) first = n;
      }
      const swap = this.#swaps[first];
      const place = next[first];
      if (!swap || place === undefined) return at;
      parts.push(bytes.subarray(at, place), swap.to);
      this.#onSwap?.(swap);
      at = place + swap.from.length;
      for (const [n, other] of this.#swaps.entries()) {
        if ((next[n] ?? -1) >= 0 && (next[n] ?? 0) < at) next[n] = bytes.indexOf(other.from, at);
      }
    }
  }

  /** How many bytes at the end may begin something to be swapped. */
  #beginning(bytes: Buffer): number {
    let longest = 0;
    for (const { from } of this.#swaps) {
      const most = Math.min(from.length - 1, bytes.length);
      for (let length = most; length > longest; length--) {
        const end = bytes.subarray(bytes.length - length);
        if (end[0] === from[0] && end.equals(from.subarray(0, length))) longest = length;
      }
    }
    return longest;
  }
}

/** A stream of bytes with all swaps made. */
export class SwapStream extends Transform {
  readonly #swapper: Swapper;

  constructor(swaps: readonly Swap[], onSwap?: (swap: Swap) => void) {
    super();
    this.#swapper = new Swapper(swaps, onSwap);
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    done(null, this.#swapper.push(chunk));
  }

  override _flush(done: TransformCallback): void {
    done(null, this.#swapper.end());
  }
}

export function swapAll(bytes: Buffer, swaps: readonly Swap[], onSwap?: (swap: Swap) => void): Buffer {
  const swapper = new Swapper(swaps, onSwap);
  return Buffer.concat([swapper.push(bytes), swapper.end()]);
}

/** The forms in which a server may send a value back, each to be swapped for the placeholder. */
export function putBackSwaps(value: string, placeholder: string): Swap[] {
  const to = Buffer.from(placeholder);
  const forms = new Set([value, ...formsOf(value).map(({ text }) => text)]);
  return [...forms].map((from) => ({ from: Buffer.from(from), to }));
}
