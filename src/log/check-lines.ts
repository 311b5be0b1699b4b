import { eventProblem } from '../protocol/event.ts';
import { type BlobRef, FORMAT_VERSION, type LogRecord, type Seq } from '../protocol/record.ts';
import { Findings } from './findings.ts';
import { findRecords, parseLine, versionOf } from './line.ts';
import { HASH_MARK, HASH_TAIL_BYTES, type Head, hashOf, NO_HEAD } from './serialize.ts';

/** Where a line of the log is. */
interface Place {
  line: number;
  /** Bytes from the start of the log. */
  offset: number;
}

/** The first record that names a blob. */
export interface Named extends Place {
  seq: Seq;
  ref: BlobRef;
}

/** Only a new holder of the lease raises the fence, and it says so first; a copied log goes on with where it came from. */
const RAISES_FENCE = new Set(['drover.woke', 'drover.forked_from']);

/**
 * Holds every line of a log to what a writer would have written: nothing is forgiven here, and nothing recovered,
 * other than by the scanner, which is for reading. Lines are given in order, without their newline.
 */
export class LineChecks {
  /** What is wrong, in the order of the log. */
  readonly wrong = new Findings();
  /** Records of a writer that had lost the session: no damage, but a person may want to know. */
  readonly stale = new Findings();
  /** By hash. */
  readonly blobs = new Map<string, Named>();
  /** Live records. */
  records = 0;
  /** Records of event types this version does not know. */
  unknown = 0;
  /** Some line is of a greater format version. */
  newer = false;
  head: Head = NO_HEAD;
  /** The record that was the last one when `kept` was taken is where it was. */
  keptMet = false;
  readonly #kept: Head | null;
  #fence = 0;
  #line = 0;
  /** Lines directly before this one could not be read, so that a gap in the records is explained. */
  #hole = false;

  constructor(kept: Head | null) {
    this.#kept = kept;
  }

  /** @param ended false for the last line of a file that does not end in a newline */
  check(bytes: Buffer, offset: number, ended: boolean): void {
    this.#line += 1;
    const place = { line: this.#line, offset };
    const record = parseLine(bytes, 0, bytes.length);
    if (!record || !isExact(record, bytes)) this.#bad(bytes, place, record, ended);
    else {
      this.#record(record, place);
      if (!ended) this.#wrong(place, record.seq, 'the last line lacks its newline: a write was cut off there');
    }
  }

  /** A line too long to be looked into. */
  skip(length: number, offset: number): void {
    this.#line += 1;
    this.#wrong({ line: this.#line, offset }, null, `${length} bytes without a newline, longer than any record`);
    this.#hole = true;
  }

  #record(record: LogRecord, place: Place): void {
    const { seq, fence } = record;
    if (fence < this.#fence || (fence > this.#fence && seq <= this.head.seq)) {
      // The second: a new holder's first record that met one of the former holder's; it is written again behind it.
      this.stale.add({ ...place, seq, reason: `${record.event.type}, written with fence ${fence}` });
      this.#fence = Math.max(fence, this.#fence);
      return;
    }
    this.#follows(record, place);
    this.#contents(record, place);
    this.#fence = fence;
    this.head = { seq, hash: record.hash };
    this.#hole = false;
    this.records += 1;
    this.#meet(record);
  }

  #meet({ seq, hash }: LogRecord): void {
    if (seq === this.#kept?.seq && hash === this.#kept.hash) this.keptMet = true;
  }

  /** Its place in the chain. */
  #follows(record: LogRecord, place: Place): void {
    const { seq, fence } = record;
    const expected = this.head.seq + 1;
    if (seq < expected) this.#wrong(place, seq, `record ${seq} stands here a second time`);
    else if (seq > expected && this.#hole) this.#wrong(place, seq, `${missing(seq - expected)} before this line`);
    else if (seq > expected) this.#wrong(place, seq, `${missing(seq - expected)} before this line, without a trace`);
    else if (record.prev !== this.head.hash && !this.#hole)
      this.#wrong(place, seq, 'it does not follow from the record before it: its "prev" is another record\'s hash');
    if (fence > this.#fence && this.head.seq >= 0 && !this.#hole && !RAISES_FENCE.has(record.event.type))
      this.#wrong(place, seq, `its fence rises from ${this.#fence} to ${fence}, and no holder says that it woke`);
  }

  #contents(record: LogRecord, place: Place): void {
    const { seq, event, local } = record;
    const problem = eventProblem(event);
    if (record.v > FORMAT_VERSION) this.newer = true;
    if (problem) this.#wrong(place, seq, `its event does not fit its type (${problem})`);
    if (Number.isNaN(Date.parse(record.at))) this.#wrong(place, seq, 'its time of writing is no time');
    if (seq === 0 && event.type !== 'drover.session_created')
      this.#wrong(place, seq, 'a log begins with drover.session_created, and this one does not');
    for (const ref of local?.blobs ?? []) {
      if (!isBlobRef(ref)) this.#wrong(place, seq, 'it names a blob in a way that no blob can have');
      else if (!this.blobs.has(ref.sha256)) this.blobs.set(ref.sha256, { ...place, seq, ref });
    }
  }

  #bad(bytes: Buffer, place: Place, record: LogRecord | null, ended: boolean): void {
    if (record && versionOf(bytes) > FORMAT_VERSION) this.newer = true;
    const whole = findRecords(bytes);
    this.#wrong(place, record?.seq ?? whole[0]?.record.seq ?? null, reasonFor(bytes, record, whole.length, ended));
    const last = record ?? whole.at(-1)?.record;
    if (last && last.seq > this.head.seq) {
      // What the line says of its own place is good enough to go on from; what is wrong with it has been said.
      this.head = { seq: last.seq, hash: last.hash };
      this.#fence = Math.max(this.#fence, last.fence);
      this.#meet(last);
    }
    this.#hole = true;
  }

  #wrong(place: Place, seq: Seq | null, reason: string): void {
    this.wrong.add({ ...place, seq, reason });
  }
}

/** True if the bytes are a record to the last one: its hash is of all that stands before it, and nothing follows. */
function isExact(record: LogRecord, bytes: Buffer): boolean {
  const body = bytes.length - HASH_TAIL_BYTES;
  if (body <= 0) return false;
  const hash = hashOf(bytes.subarray(0, body));
  return record.hash === hash && bytes.toString('latin1', body) === `${HASH_MARK}${hash}"}`;
}

const missing = (count: number): string => (count === 1 ? '1 record is missing' : `${count} records are missing`);

function reasonFor(bytes: Buffer, record: LogRecord | null, whole: number, ended: boolean): string {
  if (bytes.length === 0) return 'an empty line';
  if (whole > 0)
    return `no clean line: bytes that are no record beside ${whole === 1 ? 'a whole one' : `${whole} whole ones`}`;
  if (record) return 'it was changed after it was written: its hash is not that of its bytes';
  if (!ended) return `the last ${bytes.length} bytes are a record that was never finished`;
  return bytes.includes(0) ? 'a run of zero bytes, as a power cut leaves them' : 'bytes that are no record';
}

const isBlobRef = (ref: Partial<BlobRef> | null): ref is BlobRef =>
  typeof ref?.sha256 === 'string' &&
  /^[0-9a-f]{64}$/.test(ref.sha256) &&
  ref.path === `blobs/${ref.sha256}` &&
  Number.isSafeInteger(ref.bytes);
