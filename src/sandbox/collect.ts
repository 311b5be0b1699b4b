import { parseTrailer, type RunnerCall, type StreamSizes, type Trailer } from './runner.ts';
import type { RunResult } from './sandbox.ts';

/** No trailer is longer than this. */
const TRAILER_BYTES = 512;
const NEWLINE = 0x0a;

/**
 * Takes in what the runner sends and tells when it is complete. The runner itself caps what it sends,
 * so memory stays within `head + tail` per stream.
 */
export class Collector {
  readonly call: RunnerCall;
  readonly #onOutput: ((chunk: Uint8Array) => void) | undefined;
  readonly #out: Buffer[] = [];
  readonly #err: Buffer[] = [];
  #errBytes = 0;
  #last: Trailer | 'running' | 'absent' | undefined;
  /** Bytes at the end of stdout that may be the trailer and are not shown yet. */
  #held: Buffer = Buffer.alloc(0);

  constructor(call: RunnerCall, onOutput?: (chunk: Uint8Array) => void) {
    this.call = call;
    this.#onOutput = onOutput;
  }

  /** More of what the runner sent. Returns true once everything it announced is here. */
  add(stream: 'out' | 'err', chunk: Buffer): boolean {
    if (stream === 'err') {
      this.#err.push(chunk);
      this.#errBytes += chunk.length;
      this.#onOutput?.(chunk);
    } else if (!this.#last) {
      this.#addOut(chunk);
    }
    return this.complete;
  }

  /** The whole of what the runner had to say has arrived. */
  get complete(): boolean {
    const last = this.#last;
    if (!last || typeof last === 'string') return last !== undefined;
    return this.#errBytes >= last.err.head + last.err.tail;
  }

  get last(): Trailer | 'running' | 'absent' | undefined {
    return this.#last;
  }

  /** Text received so far, for the case that no trailer ever comes. */
  get text(): string {
    return Buffer.concat([...this.#out, this.#held, ...this.#err]).toString('utf8');
  }

  /** The result the trailer describes. */
  result(trailer: Trailer): RunResult {
    const out = Buffer.concat(this.#out);
    const err = Buffer.concat(this.#err);
    return {
      ended: trailer.ended,
      exitCode: trailer.ended === 'exited' ? trailer.code : null,
      stdout: joined(out, trailer.out),
      stderr: joined(err, trailer.err),
      cutBytes: cut(trailer.out) + cut(trailer.err),
      durationMs: trailer.durationMs,
    };
  }

  /** The result of a command that was killed together with the runner: what was heard, and no end. */
  killed(): RunResult {
    const [stdout, stderr] = [[...this.#out, this.#held], this.#err].map(
      (parts) => new Uint8Array(Buffer.concat(parts)),
    );
    return {
      ended: 'exited',
      exitCode: 128 + 9,
      stdout: stdout ?? new Uint8Array(),
      stderr: stderr ?? new Uint8Array(),
      cutBytes: 0,
      durationMs: 0,
    };
  }

  #addOut(chunk: Buffer): void {
    let data = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk;
    this.#held = Buffer.alloc(0);
    const start = this.#trailerStart(data);
    if (start !== -1) {
      const line = data.toString('latin1', start);
      if (line.endsWith('\n')) this.#last = parseTrailer(line, this.call.nonce);
      if (!this.#last) this.#held = data.subarray(start);
      data = data.subarray(0, start);
    }
    if (data.length === 0) return;
    this.#out.push(data);
    this.#onOutput?.(data);
  }

  /** Where the nonce, or the beginning of one, stands at the end of the data; -1 if it doesn't. */
  #trailerStart(data: Buffer): number {
    const nonce = Buffer.from(this.call.nonce, 'latin1');
    const found = data.lastIndexOf(nonce);
    if (found !== -1 && data.length - found <= TRAILER_BYTES) {
      const end = data.indexOf(NEWLINE, found);
      if (end === -1 || end === data.length - 1) return found;
    }
    for (let size = Math.min(nonce.length - 1, data.length); size > 0; size--) {
      if (data.subarray(data.length - size).equals(nonce.subarray(0, size))) return data.length - size;
    }
    return -1;
  }
}

const cut = (sizes: StreamSizes): number => Math.max(0, sizes.whole - sizes.head - sizes.tail);

/** Head and tail are one buffer already; what was cut lies between them. More than was announced is not ours. */
const joined = (data: Buffer, sizes: StreamSizes): Uint8Array =>
  new Uint8Array(data.subarray(0, sizes.head + sizes.tail));
