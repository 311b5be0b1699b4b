import { closeSync, openSync, readSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextRound } from 'node:timers/promises';
import type { LogRecord } from '../protocol/record.ts';
import type { LogSink, Scanned, SessionReading } from './log.ts';
import { LOG_FILE } from './paths.ts';
import { Scanner } from './scan.ts';
import { openSnapshot, type Position, positionOf, restOf } from './snapshot.ts';

/** Small enough that the event loop gets its turn every few milliseconds. */
const CHUNK_BYTES = 512 * 1024;
/** Read at once: on a busy machine each reading waits for its turn. */
const READ_BYTES = 4 * CHUNK_BYTES;
/** The least that is read at a time. */
const SMALL_BYTES = 4096;

/**
 * Feeds a file to a scanner, from where the scanner stands up to byte `limit` or the end of the file, then settles it.
 * `afterChunk` is awaited between two pieces. Opens for reading only.
 */
export async function scanFile(
  path: string,
  scanner: Scanner,
  options: { limit?: number; afterChunk?: () => Promise<void> } = {},
): Promise<void> {
  const file = await open(path, 'r');
  try {
    for await (const piece of pieces(file, scanner.offset, options.limit ?? Number.POSITIVE_INFINITY)) {
      for (let start = 0; start < piece.length; start += CHUNK_BYTES) {
        if (start > 0) await nextRound();
        scanner.push(piece.subarray(start, start + CHUNK_BYTES));
        await options.afterChunk?.();
      }
    }
    scanner.settle();
  } finally {
    await file.close();
  }
}

/** The bytes from `start` to `end` or the end of the file. While one piece is worked on, the next is being read. */
async function* pieces(file: FileHandle, start: number, end: number): AsyncGenerator<Buffer> {
  // A short log gets small buffers: megabytes for each waking would keep the garbage collector busy.
  const rest = (await file.stat()).size - start;
  const length = Math.min(READ_BYTES, Math.max(SMALL_BYTES, rest));
  const chunks = [Buffer.allocUnsafe(length), Buffer.allocUnsafe(length)] as const;
  let at = start;
  const read = async (chunk: Buffer) => {
    const { bytesRead } = await file.read(chunk, 0, Math.min(chunk.length, Math.max(0, end - at)), at);
    return chunk.subarray(0, bytesRead);
  };
  let coming = read(chunks[0]);
  for (let n = 1; ; n++) {
    const piece = await coming;
    if (piece.length === 0) return;
    at += piece.length;
    coming = read(chunks[n % 2 === 0 ? 0 : 1]);
    // Whoever leaves in the middle does not wait for it.
    coming.catch(() => undefined);
    yield piece;
  }
}

/** Reads the live records up to byte `end`, at once and in this very moment. Throws the system's error. */
function replay(path: string, end: number, each: (records: LogRecord[]) => void): void {
  const scanner = new Scanner();
  const fd = openSync(path, 'r');
  try {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    while (scanner.offset < end) {
      const length = readSync(fd, chunk, 0, Math.min(chunk.length, end - scanner.offset), scanner.offset);
      if (length === 0) break;
      scanner.push(chunk.subarray(0, length));
      each(scanner.take());
    }
  } finally {
    closeSync(fd);
  }
}

/**
 * Reads a session from the state that is kept beside its log, if one of version `fold` fits, or else from the start.
 * `end` is where it came to.
 */
export async function scanLog(folder: string, fold: number, sink: LogSink): Promise<Scanned & { end: Position }> {
  const path = join(folder, LOG_FILE);
  const kept = await openSnapshot(folder, fold);
  const usable =
    kept &&
    sink.kept({
      first: kept.first,
      rest: () => restOf(folder, kept.header),
      replay: (each) => replay(path, kept.header.bytes, each),
    });
  const scanner = new Scanner(usable ? positionOf(kept.header) : undefined);
  await scanFile(path, scanner, { afterChunk: async () => sink.take(scanner.take()) });
  sink.take(scanner.take());
  const { head, fence, wholeEnd: offset } = scanner;
  return { ...resultOf(scanner), end: { head, fence, offset } };
}

/** Reads a whole log. Never writes, and never throws for what the file holds; throws if it can't be opened. */
export async function readLog(path: string): Promise<SessionReading> {
  const scanner = new Scanner();
  await scanFile(path, scanner);
  return { records: scanner.take(), ...resultOf(scanner) };
}

const resultOf = (scanner: Scanner): Scanned => ({
  damage: scanner.damage,
  tornBytes: scanner.offset - scanner.wholeEnd,
  stale: scanner.stale,
  newer: scanner.newer,
});
