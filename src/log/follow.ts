import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextRound } from 'node:timers/promises';
import { type Disposable, Disposables, Emitter } from '../protocol/disposable.ts';
import type { LogRecord, Seq } from '../protocol/record.ts';
import { LOG_FILE } from './paths.ts';
import { scanFile } from './read.ts';
import { Scanner } from './scan.ts';
import type { Position } from './snapshot.ts';
import { Debounce, watchFolder } from './watch.ts';
import type { Appended, Writer } from './writer.ts';

/** A listener gets no more records at once, and other work its turn in between. */
const CHUNK_RECORDS = 500;
/** Changes of the file that come faster are taken together. */
const QUIET_MS = 20;

export interface FollowerParts {
  folder: string;
  from: Seq;
  /** A place in the log before that record, from an earlier reading; the start of the log if there is none. */
  start?: Position | undefined;
  listener: (records: LogRecord[]) => void;
  /** This process's writer of the session, while it has one. */
  writer: () => Writer | undefined;
}

/**
 * Delivers the live records of a log as they come, in order and each once. It reads the file forward only:
 * what this process appends it gets from the writer, what another one appends from the disk.
 */
export class Follower implements Disposable {
  readonly #path: string;
  readonly #writer: () => Writer | undefined;
  readonly #out = new Emitter<LogRecord[]>();
  readonly #owned = new Disposables();
  /** The first record still wanted. */
  #next: Seq;
  #scanner: Scanner;
  #reading: Promise<void> | null = null;
  #again = false;
  #disposed = false;

  constructor(parts: FollowerParts) {
    this.#path = join(parts.folder, LOG_FILE);
    this.#next = parts.from;
    this.#scanner = new Scanner(parts.start);
    this.#writer = parts.writer;
    this.#owned.add(this.#out.on(parts.listener));
    const look = this.#owned.add(new Debounce(QUIET_MS, () => this.look()));
    this.#owned.add(
      watchFolder(parts.folder, (name) => {
        if (name === null || name === LOG_FILE) look.run();
      }),
    );
    this.look();
  }

  /** Takes what this process's writer has appended, without reading it back. */
  take({ records, start, end }: Appended): void {
    const scanner = this.#scanner;
    const fits = !this.#reading && scanner.offset === start && scanner.wholeEnd === start;
    if (!fits) {
      this.look();
      return;
    }
    scanner.skip(records, end);
    this.#deliver(records);
  }

  /** Reads what is new in the file. */
  look(): void {
    if (this.#disposed) return;
    this.#again = true;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
      if (this.#again) this.look();
    });
  }

  dispose(): void {
    this.#disposed = true;
    this.#owned.dispose();
  }

  async #read(): Promise<void> {
    while (this.#again && !this.#disposed) {
      this.#again = false;
      try {
        await this.#readOn(this.#writer()?.shownEnd ?? Number.POSITIVE_INFINITY);
      } catch {
        // Not there yet, or not readable now: the next change of the folder tries again.
      }
    }
  }

  async #readOn(limit: number): Promise<void> {
    this.#scanner.rewind();
    if (this.#scanner.offset >= limit) return;
    const { size } = await stat(this.#path);
    // What its writer could not make durable was taken out again, or the file is another one.
    if (size < this.#scanner.offset) this.#scanner = new Scanner();
    await scanFile(this.#path, this.#scanner, { limit, afterChunk: () => this.#deliverAll() });
    await this.#deliverAll();
  }

  async #deliverAll(): Promise<void> {
    const records = this.#scanner.take();
    for (let start = 0; start < records.length; start += CHUNK_RECORDS) {
      if (start > 0) await nextRound();
      this.#deliver(records.slice(start, start + CHUNK_RECORDS));
    }
  }

  #deliver(records: LogRecord[]): void {
    const wanted = records.filter((record) => record.seq >= this.#next);
    this.#next = Math.max(this.#next, (wanted.at(-1)?.seq ?? -1) + 1);
    if (wanted.length > 0) this.#out.fire(wanted);
  }
}
