import type { EventOf } from '../../protocol/event.ts';
import { type Draft, draft } from '../../protocol/record.ts';

/** One connection or request, as the ledger has it. */
export type Entry = Omit<EventOf<'drover.egress'>, 'id' | 'type' | 'processed_at' | 'count'>;

/** ms. Entries that come together are written together: a log write is a disk write. */
const EVERY_MS = 250;
/** Entries of one write. A script that knocks on a thousand doors must not fill the log: what is the same is counted. */
const MOST = 200;
/** Entries that wait for a log that takes none. */
const KEPT = 2_000;

/** Puts entries into the session's log, in batches; equal ones of a batch are one event with their number. */
export class Ledger {
  readonly #record: (drafts: Draft[]) => Promise<void>;
  #waiting: { entry: Entry; count: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(record: (drafts: Draft[]) => Promise<void>) {
    this.#record = record;
  }

  add(entry: Entry): void {
    const same = this.#waiting.find((one) => sameKind(one.entry, entry));
    if (same) {
      same.count++;
      same.entry.bytes_in += entry.bytes_in;
      same.entry.bytes_out += entry.bytes_out;
      same.entry.duration_ms = Math.max(same.entry.duration_ms, entry.duration_ms);
    } else this.#waiting.push({ entry: { ...entry }, count: 1 });
    if (this.#waiting.length >= MOST) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), EVERY_MS);
  }

  /** Resolves when all there is has been written. A log that takes nothing now is tried again with the next entries. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    const batch = this.#waiting;
    if (batch.length === 0) return;
    this.#waiting = [];
    try {
      await this.#record(batch.map(({ entry, count }) => draft('drover.egress', { ...entry, count })));
    } catch {
      // Nobody keeps the log now. What is older than all that is kept for then is lost.
      this.#waiting = [...batch, ...this.#waiting].slice(-KEPT);
    }
  }
}

const sameKind = (a: Entry, b: Entry): boolean =>
  a.execution_id === b.execution_id &&
  a.host === b.host &&
  a.port === b.port &&
  a.method === b.method &&
  a.path === b.path &&
  a.status === b.status &&
  a.verdict === b.verdict &&
  a.reason === b.reason &&
  a.credential_ids.join() === b.credential_ids.join();
