import { eventProblem } from '../protocol/event.ts';
import { FORMAT_VERSION, type LogRecord } from '../protocol/record.ts';
import { type Found, findRecords, isIntact, parseLine, RECORD_START, RETURN, versionOf } from './line.ts';
import type { Damage } from './log.ts';
import { type Head, MAX_RECORD_BYTES, NO_HEAD } from './serialize.ts';

/** A line longer than this is not read into memory: no writer makes one, so it is damage. */
export const MAX_LINE_BYTES = 4 * MAX_RECORD_BYTES;
const NEWLINE = 0x0a;
const CLOSING_BRACE = 0x7d;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Reads a log from its bytes, in pieces of any size, and tells live records, damage and stale records apart.
 * It splits on byte 0x0A alone and decodes each line on its own, so that nothing in one line can hide another.
 */
export class Scanner {
  /** The last live record. */
  head: Head;
  /** The highest fence seen. */
  fence: number;
  readonly damage: Damage[] = [];
  stale = 0;
  newer = false;
  #records: LogRecord[] = [];
  /** Where the bytes in `#carry` begin. */
  #lineStart: number;
  /** The last byte before `#lineStart` is a newline, or there is none. */
  #freshLine = true;
  /** The bytes of a line whose end has not come yet. */
  #carry: Buffer[] = [];
  #carried = 0;
  #overlong = false;
  /** The damage directly before the next live record: it explains a gap or a broken chain there. */
  #hole: Damage | null = null;

  /** Starts at the start of a log, or behind a known record of it. `offset` is in bytes. */
  constructor(from: { head: Head; fence: number; offset: number } = { head: NO_HEAD, fence: 0, offset: 0 }) {
    this.head = from.head;
    this.fence = from.fence;
    this.#lineStart = from.offset;
  }

  /** Bytes taken so far, counted from the start of the file. */
  get offset(): number {
    return this.#lineStart + this.#carried;
  }

  /** Where the last whole record or line ends; what follows up to `offset` is torn. */
  get wholeEnd(): number {
    return this.#lineStart;
  }

  /** A record appended at `wholeEnd` needs a newline first. */
  get needsNewline(): boolean {
    return !this.#freshLine;
  }

  /** The live records found since the last call. */
  take(): LogRecord[] {
    const records = this.#records;
    this.#records = [];
    return records;
  }

  /** Takes the next bytes of the file. `chunk` may be reused by the caller afterwards. */
  push(chunk: Buffer): void {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, start);
      if (end === -1) break;
      if (this.#carried === 0) this.#line(chunk, start, end);
      else this.#joinedLine(chunk.subarray(start, end));
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  /**
   * At the end of the file: takes a whole record that lacks only its newline. What then remains is a torn tail,
   * `offset - wholeEnd` bytes of it; more bytes may still be pushed.
   */
  settle(): void {
    if (this.#carried === 0 || this.#overlong) return;
    const line = Buffer.concat(this.#carry);
    const used = this.#recover(line, this.#lineStart, false);
    if (used === 0) return;
    this.#lineStart += used;
    this.#freshLine = false;
    this.#carry = used < line.length ? [line.subarray(used)] : [];
    this.#carried = line.length - used;
  }

  /** Forgets the torn tail, which its writer may have taken out of the file: it is to be read again from `wholeEnd`. */
  rewind(): void {
    this.#carry = [];
    this.#carried = 0;
    this.#overlong = false;
  }

  /** Takes over records that the caller knows to follow, without reading them. */
  skip(records: readonly LogRecord[], offset: number): void {
    const last = records.at(-1);
    if (last) this.head = { seq: last.seq, hash: last.hash };
    for (const record of records) this.fence = Math.max(this.fence, record.fence);
    this.#lineStart = offset;
    this.#freshLine = true;
    this.#hole = null;
  }

  #keep(bytes: Buffer): void {
    this.#carried += bytes.length;
    if (this.#overlong) return;
    this.#overlong = this.#carried > MAX_LINE_BYTES;
    if (this.#overlong) this.#carry = [];
    else this.#carry.push(Buffer.from(bytes));
  }

  #joinedLine(rest: Buffer): void {
    this.#keep(rest);
    const length = this.#carried;
    if (this.#overlong) this.#skipLine(length);
    else {
      const line = Buffer.concat(this.#carry);
      this.#line(line, 0, line.length);
    }
    this.#carry = [];
    this.#carried = 0;
    this.#overlong = false;
  }

  #skipLine(length: number): void {
    this.#bad(this.#lineStart, this.#lineStart + length, `a line of ${length} bytes, longer than any record`);
    this.#nextLine(length);
  }

  #nextLine(length: number): void {
    this.#lineStart += length + 1;
    this.#freshLine = true;
  }

  #line(buffer: Buffer, start: number, end: number): void {
    if (end > start) {
      const at = this.#lineStart;
      const record = parseLine(buffer, start, end);
      if (record && isIntact(record, buffer, start, end)) this.#accept(record, at, at + end - start);
      else this.#oddLine(buffer.subarray(start, end), at, record);
    }
    this.#nextLine(end - start);
  }

  /** A line that is not simply one intact record. */
  #oddLine(line: Buffer, at: number, record: LogRecord | null): void {
    const end = at + line.length;
    if (line.subarray(0, BOM.length).equals(BOM)) {
      const rest = line.subarray(BOM.length);
      this.#recoverOrBad(rest, at + BOM.length, false);
    } else if (versionOf(line) > FORMAT_VERSION) {
      // What a newer version wrote is no damage, even where we can't make anything of it.
      this.newer = true;
      if (record) this.#accept(record, at, end);
    } else if (record && this.#isPlausible(record)) this.#acceptChanged(record, at, end);
    else this.#recoverOrBad(line, at, record !== null);
  }

  #recoverOrBad(line: Buffer, at: number, isRecord: boolean): void {
    const used = this.#recover(line, at, true);
    const rest = line.length - used;
    const isLineEnd = rest === 1 && line[used] === RETURN;
    if (rest > 0 && !isLineEnd) this.#bad(at + used, at + line.length, reasonFor(line.subarray(used), isRecord));
  }

  /** Takes every intact record in `bytes`, which begin at `at`, and returns how far the last one reaches. */
  #recover(bytes: Buffer, at: number, terminated: boolean): number {
    let used = 0;
    for (const found of findRecords(bytes)) {
      const { record, start, end } = found;
      if (!this.#continues(record) && !standsFree(bytes, found, terminated)) continue;
      if (start > used) this.#bad(at + used, at + start, reasonFor(bytes.subarray(used, start), false));
      this.#accept(record, at + start, at + end);
      used = end;
    }
    return used;
  }

  #continues(record: LogRecord): boolean {
    return record.seq === this.head.seq + 1 && record.prev === this.head.hash;
  }

  #accept(record: LogRecord, start: number, end: number): void {
    if (record.v > FORMAT_VERSION) this.newer = true;
    const expected = this.head.seq + 1;
    if (record.fence < this.fence) {
      this.stale += 1;
      return;
    }
    if (record.seq < expected) {
      // A new holder's first record that met one of the former holder's: the holder writes it again behind it.
      if (record.fence > this.fence) this.stale += 1;
      else this.#bad(start, end, `record ${record.seq} stands here a second time`);
      this.fence = record.fence;
      return;
    }
    if (record.seq > expected) this.#missing(record.seq - expected, start);
    else if (record.prev !== this.head.hash && !this.#hole) {
      this.damage.push({ range: [start, end], reason: `record ${record.seq} does not follow from the one before it` });
    }
    this.#hole = null;
    this.fence = record.fence;
    this.head = { seq: record.seq, hash: record.hash };
    this.#records.push(record);
  }

  #missing(count: number, at: number): void {
    const what = count === 1 ? '1 record is missing' : `${count} records are missing`;
    if (this.#hole) this.#hole.reason += `; ${what}`;
    else this.damage.push({ range: [at, at], reason: what });
  }

  /** Its bytes are not those that were written, but it still says something where it is expected. */
  #isPlausible(record: LogRecord): boolean {
    return record.seq === this.head.seq + 1 && record.fence >= this.fence && eventProblem(record.event) === undefined;
  }

  #acceptChanged(record: LogRecord, start: number, end: number): void {
    this.#hole = null;
    this.#bad(start, end, `record ${record.seq} was changed after it was written; it is shown as it is now`);
    this.head = { seq: record.seq, hash: record.hash };
    this.#records.push(record);
  }

  /** Bytes nobody can read. Neighbours become one range; the newline between two bad lines belongs to it. */
  #bad(start: number, end: number, reason: string): void {
    const before = this.#hole;
    if (before && before.reason === reason && start - before.range[1] <= 1) {
      before.range[1] = end;
      return;
    }
    this.#hole = { range: [start, end], reason };
    this.damage.push(this.#hole);
  }
}

/**
 * False if a record may be a part of another one that was cut off or damaged: a tool's input can hold what looks like
 * a record, hash and all, and must not become one. What is inside has JSON on both sides; what is not begins or ends
 * where a line does, or beside another record, or beside zeros.
 */
function standsFree(bytes: Buffer, { start, end }: Found, terminated: boolean): boolean {
  const before = bytes[start - 1];
  if (start === 0 || before === 0 || before === CLOSING_BRACE) return true;
  const after = bytes[end];
  if (after === undefined) return terminated;
  return after === 0 || after === RETURN || bytes.subarray(end, end + RECORD_START.length).equals(RECORD_START);
}

/** What a person reads about bytes that hold no record. */
function reasonFor(bytes: Buffer, isRecord: boolean): string {
  if (bytes.includes(0)) return 'a run of zero bytes, as a power cut leaves them';
  if (isRecord) return 'a record that was changed after it was written and no longer fits';
  return 'bytes that are no record';
}
