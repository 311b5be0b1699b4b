import { closeSync, fdatasyncSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Draft, draft, type LogRecord } from '../protocol/record.ts';
import type { Damage } from './log.ts';
import type { LogFile } from './log-file.ts';

/** So many ranges are reported one by one; what comes after them is reported as one. */
const MAX_REPORTS = 50;
const TORN = 'the last write was cut off';

/**
 * Takes a torn tail out of the log, after copying it to a file beside it. Says what it did.
 * @param whole where the last whole record ends, in bytes; the torn bytes are from there to `end`, the file's end
 */
export function cutTornTail(folder: string, file: LogFile, whole: number, end: number): Damage {
  const bytes = file.read(whole, end);
  const name = keep(folder, `torn-${whole}`, bytes);
  file.truncate(whole);
  return { range: [whole, end], reason: `${TORN} after ${bytes.length} bytes; they are kept in ${name}` };
}

/** Writes a file that must not exist yet, durable when it returns, and returns its name. */
function keep(folder: string, start: string, bytes: Buffer): string {
  for (let n = 1; ; n++) {
    const name = `${start}-${n}.bin`;
    let fd: number;
    try {
      fd = openSync(join(folder, name), 'wx');
    } catch (error) {
      // Torn at the same place before: both are kept. Bounded, as each time has left a file.
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') continue;
      throw error;
    }
    try {
      writeFileSync(fd, bytes);
      fdatasyncSync(fd);
    } finally {
      closeSync(fd);
    }
    return name;
  }
}

/** Collects, record by record, what damage a log has reported about itself. */
export class Reported {
  readonly #ranges: [number, number][] = [];

  add(records: readonly LogRecord[]): void {
    for (const { event } of records) {
      // A torn tail has been cut off, so its place may have been written again since.
      if (event.type !== 'drover.log_damaged' || !('range' in event) || event.reason.startsWith(TORN)) continue;
      this.#ranges.push(event.range);
    }
  }

  /** The reports that are still to be written. */
  reportsFor(damage: readonly Damage[]): Draft[] {
    const news = damage.filter(
      ({ range: [start, end] }) => !this.#ranges.some(([from, to]) => from <= start && end <= to),
    );
    const rest = news.splice(MAX_REPORTS);
    const [first, last] = [rest[0], rest.at(-1)];
    if (first && last) {
      news.push({ range: [first.range[0], last.range[1]], reason: `${rest.length} more places can't be read` });
    }
    return news.map(({ range, reason }) => draft('drover.log_damaged', { range, reason }));
  }
}
