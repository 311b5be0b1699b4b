import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogSink, Scanned, SessionReading } from './log.ts';
import { LOG_FILE } from './paths.ts';
import { Scanner } from './scan.ts';
import { type Position, positionOf, readSnapshot } from './snapshot.ts';

/** Small enough that the event loop gets its turn every few milliseconds. */
const CHUNK_BYTES = 512 * 1024;

/**
 * Feeds a file to a scanner, from where the scanner stands up to byte `limit` or the end of the file, then settles it.
 * `afterChunk` is awaited between two pieces. Opens for reading only.
 */
export async function scanFile(
  path: string,
  scanner: Scanner,
  options: { limit?: number; afterChunk?: () => Promise<void> } = {},
): Promise<void> {
  const limit = options.limit ?? Number.POSITIVE_INFINITY;
  const file = await open(path, 'r');
  try {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    while (scanner.offset < limit) {
      const length = Math.min(chunk.length, limit - scanner.offset);
      const { bytesRead } = await file.read(chunk, 0, length, scanner.offset);
      if (bytesRead === 0) break;
      scanner.push(chunk.subarray(0, bytesRead));
      await options.afterChunk?.();
    }
    scanner.settle();
  } finally {
    await file.close();
  }
}

/**
 * Reads a session from the state that is kept beside its log, if one of version `fold` fits, or else from the start.
 * `end` is where it came to.
 */
export async function scanLog(folder: string, fold: number, sink: LogSink): Promise<Scanned & { end: Position }> {
  const kept = await readSnapshot(folder, fold);
  const from = kept && sink.kept(kept.pages) ? positionOf(kept) : undefined;
  const scanner = new Scanner(from);
  const path = join(folder, LOG_FILE);
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
