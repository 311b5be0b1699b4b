import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type FileHandle, open, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextRound } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { z } from 'zod';
import { LOG_FILE, SNAPSHOT_FILE } from './paths.ts';
import { HASH_MARK, HASH_TAIL_BYTES, type Head, hashOf } from './serialize.ts';

/*
 * A state that was folded once, kept beside the log so that opening a long session does not read all of it. What is in
 * the state is its maker's affair; here it is pages of text. The first line says which record it reaches to and where
 * that record ends in the log; it ends in its own hash, as a record does. Nobody needs the file: where anything about
 * it does not fit, it is passed over, and the next one replaces it.
 */

const VERSION = 1;
const HEADER_BYTES = 1024;
const NEWLINE = 0x0a;

const Header = z.object({
  v: z.literal(VERSION),
  /** The version of the fold that made the state. */
  fold: z.number(),
  /** The record it reaches to. */
  head: z.object({ seq: z.number().int(), hash: z.string() }),
  /** The highest fence up to there. */
  fence: z.number().int(),
  /** Where the record ends in the log, its newline included. */
  bytes: z.number().int(),
  /** Length of the first page, its newline included. */
  first: z.number().int(),
  /** CRC-32 of the first page and of the others: against accidents; tampering with the log is found by Verify. */
  crc: z.tuple([z.number(), z.number()]),
});
export type Header = z.infer<typeof Header>;

/** Where a scanner may begin instead of at the start of the log. */
export interface Position {
  head: Head;
  fence: number;
  offset: number;
}

export const positionOf = ({ head, fence, bytes }: Header): Position => ({ head, fence, offset: bytes });

/**
 * Writes a state down. `pages` are asked for one at a time, with other work let in between; `current` is asked after
 * each, and once more at the end: if it says no, the state has moved on, and nothing is written. True if it was.
 */
export async function writeSnapshot(
  folder: string,
  header: Omit<Header, 'v' | 'first' | 'crc'>,
  pages: Iterable<string>,
  current: () => boolean,
): Promise<boolean> {
  const lines: Buffer[] = [];
  for (const page of pages) {
    lines.push(Buffer.from(`${page}\n`));
    await nextRound();
    if (!current()) return false;
  }
  const [first = Buffer.alloc(0), ...rest] = lines;
  const crc: Header['crc'] = [crc32(first), rest.reduce((sum, line) => crc32(line, sum), 0)];
  const whole: Header = { v: VERSION, ...header, first: first.length, crc };
  const body = JSON.stringify(whole).slice(0, -1);
  const path = join(folder, SNAPSHOT_FILE);
  const draft = `${path}.${randomUUID()}.tmp`;
  try {
    await writeFile(draft, [`${body}${HASH_MARK}${hashOf(body)}"}\n`, ...lines]);
    if (!current()) return false;
    await rename(draft, path);
    return true;
  } finally {
    await rm(draft, { force: true });
  }
}

/** The header of the state kept in a session's folder, and its first page, if it is of this version and fits the log. */
export async function openSnapshot(folder: string, fold: number): Promise<{ header: Header; first: Buffer } | null> {
  try {
    const file = await open(join(folder, SNAPSHOT_FILE), 'r');
    try {
      const start = await readAt(file, 0, HEADER_BYTES);
      const header = headerIn(start);
      if (header?.fold !== fold || !(await fits(folder, header))) return null;
      const first = await readAt(file, start.indexOf(NEWLINE) + 1, header.first);
      return crc32(first) === header.crc[0] ? { header, first: first.subarray(0, -1) } : null;
    } finally {
      await file.close();
    }
  } catch {
    return null;
  }
}

/** The other pages of that very state, read at once; null if they are not there any more as they were. */
export function restOf(folder: string, header: Header): Buffer[] | null {
  try {
    const bytes = readFileSync(join(folder, SNAPSHOT_FILE));
    const now = headerIn(bytes);
    const rest = bytes.subarray(bytes.indexOf(NEWLINE) + 1 + header.first);
    const same = now?.head.hash === header.head.hash && now.fold === header.fold && now.first === header.first;
    return same && crc32(rest) === header.crc[1] ? linesIn(rest) : null;
  } catch {
    return null;
  }
}

/** The first line alone, whichever version of the fold made the rest. `fitting`: only if it fits the log. Never throws. */
export async function readHeader(folder: string, fitting: boolean): Promise<Header | null> {
  try {
    const file = await open(join(folder, SNAPSHOT_FILE), 'r');
    try {
      const header = headerIn(await readAt(file, 0, HEADER_BYTES));
      return header && (!fitting || (await fits(folder, header))) ? header : null;
    } finally {
      await file.close();
    }
  } catch {
    return null;
  }
}

async function readAt(file: FileHandle, start: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, start);
  return buffer.subarray(0, bytesRead);
}

function headerIn(bytes: Buffer): Header | null {
  const line = bytes.subarray(0, bytes.indexOf(NEWLINE));
  const body = line.subarray(0, -HASH_TAIL_BYTES);
  if (line.toString('latin1', body.length) !== `${HASH_MARK}${hashOf(body)}"}`) return null;
  return Header.safeParse(JSON.parse(line.toString())).data ?? null;
}

/** True if the log has this record, and has it there. */
async function fits(folder: string, { head, bytes }: Header): Promise<boolean> {
  const file = await open(join(folder, LOG_FILE), 'r');
  try {
    const end = await readAt(file, bytes - HASH_TAIL_BYTES - 1, HASH_TAIL_BYTES + 1);
    return end.toString('latin1') === `${HASH_MARK}${head.hash}"}\n`;
  } finally {
    await file.close();
  }
}

function linesIn(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  let start = 0;
  for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
    lines.push(bytes.subarray(start, end));
    start = end + 1;
  }
  return lines;
}
