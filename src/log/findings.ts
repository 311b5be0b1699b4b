import type { Seq } from '../protocol/record.ts';

/** One thing that is not as it was written. */
export interface Finding {
  /** 1 for the first line of the log; null where it is no line of it: a blob, or what is not there any more. */
  line: number | null;
  /** Where the line begins, in bytes from the start of the log. */
  offset: number | null;
  /** The record it is about, as far as that can be told. */
  seq: Seq | null;
  /** One clause for people. */
  reason: string;
}

/** So many are listed one by one; the rest is only counted, so that a log full of zeros makes no endless report. */
const MAX_LISTED = 200;

/** The first findings, and how many there are. */
export class Findings {
  readonly listed: Finding[] = [];
  count = 0;

  add(finding: Finding): void {
    this.count += 1;
    if (this.listed.length < MAX_LISTED) this.listed.push(finding);
  }
}
