import { eventProblem } from '../../protocol/event.ts';
import { FORMAT_VERSION, type LogRecord } from '../../protocol/record.ts';
import { isIntact, parseLine } from '../line.ts';
import { type Head, NO_HEAD } from '../serialize.ts';
import type { RedactedRecord } from './format.ts';

/** Checks the lines of a redacted export: each line's own hash, and the chain of the hashes they were written with. */
export class RedactedChecks {
  readonly problems: string[] = [];
  /** As the log had them, but for what was taken out. */
  readonly records: LogRecord[] = [];
  readonly blobs = new Set<string>();
  /** Records that are not as they were. */
  redacted = 0;
  newer = false;
  #head: Head = NO_HEAD;
  #line = 1;

  /** @param bytes a line without its newline */
  check(bytes: Buffer): void {
    this.#line += 1;
    const record: RedactedRecord | null = parseLine(bytes, 0, bytes.length);
    if (!record) {
      this.#wrong('bytes that are no record');
      return;
    }
    if (!isIntact(record, bytes, 0, bytes.length)) this.#wrong('it was changed after it was exported');
    const { redacted, ...rest } = record;
    const hash = typeof redacted?.hash === 'string' ? redacted.hash : record.hash;
    if (redacted) this.redacted += 1;
    if (record.seq !== this.#head.seq + 1)
      this.#wrong(`record ${record.seq} stands where record ${this.#head.seq + 1} should`);
    else if (record.prev !== this.#head.hash)
      this.#wrong(`record ${record.seq} does not follow from the one before it`);
    const problem = eventProblem(record.event);
    if (problem) this.#wrong(`its event does not fit its type (${problem})`);
    if (record.v > FORMAT_VERSION) this.newer = true;
    for (const { sha256 } of record.local?.blobs ?? []) this.blobs.add(sha256);
    this.#head = { seq: record.seq, hash };
    this.records.push({ ...rest, hash });
  }

  #wrong(reason: string): void {
    this.problems.push(`line ${this.#line}: ${reason}`);
  }
}
