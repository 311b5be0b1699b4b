import type { RunResult } from './sandbox.ts';

/** One stream of a command as far as it was heard: a beginning, and if there was more, an end. */
class Heard {
  readonly head: Buffer[] = [];
  readonly tail: Buffer[] = [];
  headBytes = 0;
  tailBytes = 0;
  /** Of the whole stream, once it is known. */
  whole: number | undefined;

  get bytes(): Uint8Array {
    return new Uint8Array(Buffer.concat([...this.head, ...this.tail]));
  }
  get cut(): number {
    return Math.max(0, (this.whole ?? 0) - this.headBytes - this.tailBytes);
  }
}

/** The output of one command as it comes. Memory stays within twice `head` per stream: the runner sends no more. */
export class ChannelOutput {
  /** Bytes of each stream that come while it runs; at its end at most as many more. */
  readonly head: number;
  readonly #streams = { out: new Heard(), err: new Heard() };
  readonly #onOutput: ((chunk: Uint8Array) => void) | undefined;
  /** Bytes that were passed on before, by one whose connection broke. */
  readonly #toldBefore: { out: number; err: number };
  #inTail = false;

  constructor(head: number, onOutput?: (chunk: Uint8Array) => void, before?: ChannelOutput) {
    this.head = head;
    this.#onOutput = onOutput;
    this.#toldBefore = { out: before?.heard('out') ?? 0, err: before?.heard('err') ?? 0 };
  }

  heard(stream: 'out' | 'err'): number {
    return this.#streams[stream].headBytes;
  }

  add(stream: 'out' | 'err', chunk: Buffer): void {
    const heard = this.#streams[stream];
    if (this.#inTail) {
      heard.tail.push(chunk);
      heard.tailBytes += chunk.length;
      this.#onOutput?.(chunk);
      return;
    }
    const known = Math.max(0, this.#toldBefore[stream] - heard.headBytes);
    heard.head.push(chunk);
    heard.headBytes += chunk.length;
    if (known < chunk.length) this.#onOutput?.(chunk.subarray(known));
  }

  /** There is, or may be, more than was sent. */
  get more(): boolean {
    return this.heard('out') >= this.head || this.heard('err') >= this.head;
  }

  /** From here on the streams' ends come. */
  tails(out: number, err: number): void {
    this.#inTail = true;
    this.#streams.out.whole = out;
    this.#streams.err.whole = err;
  }

  result(ended: RunResult['ended'], code: number | null, durationMs: number): RunResult {
    const { out, err } = this.#streams;
    return {
      ended,
      exitCode: ended === 'exited' ? code : null,
      stdout: out.bytes,
      stderr: err.bytes,
      cutBytes: out.cut + err.cut,
      durationMs,
    };
  }
}
