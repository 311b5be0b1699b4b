import { hash } from 'node:crypto';
import type { LogRecord } from '../protocol/record.ts';
import { HASH_CHARS, HASH_MARK, HASH_TAIL_BYTES, hashOf } from './serialize.ts';

export const RECORD_START = Buffer.from('{"v":');
export const RETURN = 0x0d;
const RECORD_END = Buffer.from(HASH_MARK);

/** The record that bytes `start` to `end` are, or null. Whether it is intact is another question. */
export function parseLine(buffer: Buffer, start: number, end: number): LogRecord | null {
  const value = parseJson(buffer.toString('utf8', start, end));
  return isRecord(value) ? value : null;
}

/** The format version a line claims to have; 0 if it claims none. */
export function versionOf(line: Buffer): number {
  const value = parseJson(line.toString());
  return typeof value === 'object' && value !== null && 'v' in value && typeof value.v === 'number' ? value.v : 0;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * True if the bytes are exactly those that were written: their hash says so. A trailing carriage return is forgiven.
 * The mark before the hash needs no look: no other bytes could hold a hash of what stands before them.
 */
export function isIntact(record: LogRecord, buffer: Buffer, start: number, end: number): boolean {
  const close = buffer[end - 1] === RETURN ? end - 1 : end;
  const body = close - HASH_TAIL_BYTES;
  if (body <= start || record.hash.length !== HASH_CHARS) return false;
  return hash('sha256', buffer.subarray(start, body), 'base64url').startsWith(record.hash);
}

export interface Found {
  record: LogRecord;
  start: number;
  end: number;
}

/**
 * The intact records in bytes that hold something else too: a line that was cut off and then written on,
 * or zeros where a newline was. The hash decides, so that nothing inside a record's text is taken for one.
 */
export function findRecords(bytes: Buffer): Found[] {
  const found: Found[] = [];
  // Each try hashes from a start to an end; this bounds all of them together.
  let budget = 4 * bytes.length + 1024 * 1024;
  let from = 0;
  while (budget > 0) {
    const start = bytes.indexOf(RECORD_START, from);
    if (start === -1) break;
    let next = start + 1;
    for (let mark = bytes.indexOf(RECORD_END, start); mark !== -1 && budget > 0; ) {
      const end = mark + HASH_TAIL_BYTES;
      if (end > bytes.length) break;
      budget -= end - start;
      const record = intactAt(bytes, start, end);
      if (record) {
        found.push({ record, start, end });
        next = end;
        break;
      }
      mark = bytes.indexOf(RECORD_END, mark + 1);
    }
    from = next;
  }
  return found;
}

function intactAt(bytes: Buffer, start: number, end: number): LogRecord | null {
  const written = bytes.toString('latin1', end - HASH_CHARS - 2, end - 2);
  if (hashOf(bytes.subarray(start, end - HASH_TAIL_BYTES)) !== written) return null;
  const record = parseLine(bytes, start, end);
  return record && isIntact(record, bytes, start, end) ? record : null;
}

function isRecord(value: unknown): value is LogRecord {
  if (typeof value !== 'object' || value === null) return false;
  const { v, seq, at, fence, prev, event, hash } = value as Partial<LogRecord>;
  return (
    typeof v === 'number' &&
    Number.isSafeInteger(seq) &&
    Number.isSafeInteger(fence) &&
    typeof at === 'string' &&
    typeof prev === 'string' &&
    typeof hash === 'string' &&
    typeof event === 'object' &&
    event !== null &&
    typeof event.id === 'string' &&
    typeof event.type === 'string'
  );
}
