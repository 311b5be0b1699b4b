import { type FileHandle, open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_LINE_BYTES } from './scan.ts';

const CHUNK_BYTES = 512 * 1024;
const NEWLINE = 0x0a;
/** A living writer's line can be met half-way: then it is whole in much less than this. */
const WRITING_MS = 30;
const MAX_WAITS = 5;

export interface LineReader {
  /** A line without its newline; `ended` is false for what stands behind the last one. `bytes` are good for this call only. */
  check(bytes: Buffer, offset: number, ended: boolean): void;
  /** A line too long to be kept in memory. */
  skip(length: number, offset: number): void;
}

/**
 * Reads a file line by line, split on byte 0x0A alone, and returns its length in bytes.
 * @param growing somebody may be writing it right now
 * @throws the system's error
 */
export async function eachLine(path: string, reader: LineReader, growing: boolean): Promise<number> {
  const lines = new Lines(reader);
  const file = await open(path, 'r');
  try {
    let before = -1;
    for (let waits = 0; waits <= MAX_WAITS && lines.offset !== before; waits++) {
      if (waits > 0) await sleep(WRITING_MS);
      before = lines.offset;
      await readOn(file, lines);
      if (lines.carried === 0 || !growing) break;
    }
  } finally {
    await file.close();
  }
  return lines.finish();
}

async function readOn(file: FileHandle, lines: Lines): Promise<void> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  for (;;) {
    const { bytesRead } = await file.read(chunk, 0, chunk.length, lines.offset);
    if (bytesRead === 0) return;
    lines.push(chunk.subarray(0, bytesRead));
  }
}

class Lines {
  /** Bytes taken so far. */
  offset = 0;
  /** Bytes of the line whose end has not come yet. */
  carried = 0;
  readonly #reader: LineReader;
  #carry: Buffer[] = [];

  constructor(reader: LineReader) {
    this.#reader = reader;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.#keep(chunk.subarray(start, end));
      this.#flush(true);
      this.offset += 1;
      start = end + 1;
    }
    this.#keep(chunk.subarray(start));
    // The caller uses the chunk again.
    this.#carry = this.#carry.map((piece) => (piece.buffer === chunk.buffer ? Buffer.from(piece) : piece));
  }

  finish(): number {
    if (this.carried > 0) this.#flush(false);
    return this.offset;
  }

  #keep(bytes: Buffer): void {
    this.carried += bytes.length;
    this.offset += bytes.length;
    if (this.carried > MAX_LINE_BYTES) this.#carry = [];
    else if (bytes.length > 0) this.#carry.push(bytes);
  }

  #flush(ended: boolean): void {
    const start = this.offset - this.carried;
    const [only] = this.#carry;
    if (this.carried > MAX_LINE_BYTES) this.#reader.skip(this.carried, start);
    else this.#reader.check(only && this.#carry.length === 1 ? only : Buffer.concat(this.#carry), start, ended);
    this.#carry = [];
    this.carried = 0;
  }
}
