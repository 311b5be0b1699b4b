import { join } from 'node:path';
import { type Disposable, Emitter } from '../protocol/disposable.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { BlobRef, Draft, LogRecord } from '../protocol/record.ts';
import { writeBlobs } from './blobs.ts';
import { appendFailure } from './failure.ts';
import type { Lease } from './lease.ts';
import { AppendFailed, LeaseLost, type SessionReading, type SessionWriter } from './log.ts';
import type { LogFile } from './log-file.ts';
import { LOG_FILE } from './paths.ts';
import { readLog } from './read.ts';
import { Scanner } from './scan.ts';
import { type Head, type Ready, ready, serialize } from './serialize.ts';
import { type Blob, blobOf, spill } from './spill.ts';

/** Records that were appended, and the bytes of the file they are. */
export interface Appended {
  records: LogRecord[];
  start: number;
  end: number;
}

/** A batch in the file that its caller has not been told of yet. */
interface Pending extends Appended {
  sync: boolean;
  headBefore: Head;
  done: PromiseWithResolvers<LogRecord[]>;
}

export interface WriterParts {
  id: SessionId;
  folder: string;
  file: LogFile;
  lease: Lease;
  now: () => Date;
  /** The last live record, and where the file ends. */
  head: Head;
  end: number;
  /** The file lacks its last newline. */
  needsNewline: boolean;
}

/** A foreign write in the middle of ours is met at most once per take-over; more means that something is very wrong. */
const MAX_ATTEMPTS = 5;

/**
 * The one writer of a session in this process. Batches are written in the order of the calls, each with one write;
 * those that wait for the disk share one sync.
 */
export class Writer implements SessionWriter {
  readonly id: SessionId;
  readonly fence: number;
  readonly #folder: string;
  readonly #file: LogFile;
  readonly #lease: Lease;
  readonly #now: () => Date;
  readonly #appended = new Emitter<Appended>();
  readonly #lostOnce = new Emitter<void>();
  #head: Head;
  #end: number;
  #needsNewline: boolean;
  /** Everything before this byte is on the disk. */
  #durable: number;
  /** Everything before this byte has been told to listeners. */
  #told: number;
  #pending: Pending[] = [];
  #syncing = false;
  #turn: Promise<unknown> = Promise.resolve();
  #state: 'open' | 'lost' | 'released' = 'open';
  readonly #ended = Promise.withResolvers<void>();
  readonly #quiet: (() => void)[] = [];

  constructor(parts: WriterParts) {
    this.id = parts.id;
    this.fence = parts.lease.fence;
    this.#folder = parts.folder;
    this.#file = parts.file;
    this.#lease = parts.lease;
    this.#now = parts.now;
    this.#head = parts.head;
    this.#end = parts.end;
    this.#durable = parts.end;
    this.#told = parts.end;
    this.#needsNewline = parts.needsNewline;
    this.#lease.whenLost(() => this.#lose());
  }

  append(drafts: readonly Draft[], options: { sync?: boolean } = {}): Promise<LogRecord[]> {
    return this.#inTurn(() => this.#append(drafts, options.sync ?? true)).then(
      (pending) => pending?.done.promise ?? [],
    );
  }

  async putBlob(bytes: Uint8Array, mediaType: string): Promise<BlobRef> {
    this.#assertOpen();
    const blob = blobOf(bytes, mediaType);
    await this.#store([blob]);
    return blob.ref;
  }

  async read(): Promise<SessionReading> {
    await this.#settled();
    return readLog(join(this.#folder, LOG_FILE));
  }

  onAppend(listener: (records: LogRecord[]) => void): Disposable {
    return this.#appended.on(({ records }) => listener(records));
  }

  onLost(listener: () => void): Disposable {
    return this.#lostOnce.on(listener);
  }

  /** As `onAppend`, with the place in the file. */
  onAppended(listener: (appended: Appended) => void): Disposable {
    return this.#appended.on(listener);
  }

  /** Bytes of the log that may be shown: what lies behind them may not be on the disk yet. Infinity once we only follow. */
  get shownEnd(): number {
    return this.#state === 'open' ? this.#told : Number.POSITIVE_INFINITY;
  }

  /** True until it is released, or the lease is lost. */
  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** Resolves when the log is closed and, if it was released, another may take the lease. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Asks whether the lease is still ours, so that a loss is told soon. */
  checkLease(): void {
    try {
      this.#lease.check();
    } catch {
      // It can't be told now; the next append asks again, and says what is wrong.
    }
  }

  async release(): Promise<void> {
    await this.#inTurn(() => {
      if (this.#state !== 'open') return;
      this.#state = 'released';
      void this.#close();
    });
    await this.ended;
  }

  /** One at a time, in the order of the calls. */
  #inTurn<T>(act: () => T | Promise<T>): Promise<T> {
    const mine = this.#turn.then(act);
    this.#turn = mine.catch(() => undefined);
    return mine;
  }

  #append(drafts: readonly Draft[], sync: boolean): Pending | null | Promise<Pending> {
    if (drafts.length === 0) return null;
    this.#assertOpen();
    const at = this.#now().toISOString();
    const blobs: Blob[] = [];
    const readied = drafts.map((draft) => this.#ready(draft, at, blobs));
    if (blobs.length === 0) return this.#put(readied, at, sync);
    return this.#store(blobs).then(() => this.#put(readied, at, sync));
  }

  #ready(draft: Draft, at: string, blobs: Blob[]): Ready {
    try {
      const spilled = spill(ready(draft, at));
      blobs.push(...spilled.blobs);
      return spilled.draft;
    } catch (error) {
      throw appendFailure(error);
    }
  }

  async #store(blobs: readonly Blob[]): Promise<void> {
    try {
      await writeBlobs(this.#folder, blobs);
    } catch (error) {
      throw appendFailure(error);
    }
  }

  /** Writes the batch and puts it among those waiting. A foreign record that came between is taken in, and we try again. */
  #put(drafts: readonly Ready[], at: string, sync: boolean, attempt = 1): Pending | Promise<Pending> {
    this.#assertHeld();
    if (this.#file.size() !== this.#end) return this.#absorb().then(() => this.#again(drafts, at, sync, attempt));
    const headBefore = this.#head;
    const start = this.#end;
    const { records, bytes, head } = serialize(drafts, headBefore, this.fence, at);
    this.#write(bytes);
    const pending = { records, start, end: this.#end, sync, headBefore, done: Promise.withResolvers<LogRecord[]>() };
    if (this.#file.size() === this.#end) {
      this.#head = head;
      this.#wait(pending);
      return pending;
    }
    this.#end = start;
    return this.#absorb().then((live) => {
      if (!live.some((record) => record.hash === head.hash)) return this.#again(drafts, at, sync, attempt);
      this.#wait({ ...pending, end: this.#end });
      return pending;
    });
  }

  #again(drafts: readonly Ready[], at: string, sync: boolean, attempt: number): Pending | Promise<Pending> {
    if (attempt < MAX_ATTEMPTS) return this.#put(drafts, at, sync, attempt + 1);
    throw new AppendFailed('The session could not be saved: another program keeps writing to its log.');
  }

  #write(bytes: Buffer): void {
    const whole = this.#needsNewline ? Buffer.concat([Buffer.from('\n'), bytes]) : bytes;
    try {
      this.#file.append(whole, this.#end);
    } catch (error) {
      throw appendFailure(error);
    }
    this.#needsNewline = false;
    this.#end += whole.length;
  }

  /** Takes in what somebody else has written behind our end, and returns the live records in it. */
  async #absorb(): Promise<LogRecord[]> {
    const size = this.#file.size();
    if (size < this.#end) {
      throw new AppendFailed('The session could not be saved: its log was cut off by another program.');
    }
    const scanner = new Scanner({ head: this.#head, fence: this.fence, offset: this.#end });
    scanner.push(this.#file.read(this.#end, size));
    scanner.settle();
    this.#head = scanner.head;
    this.#end = size;
    this.#needsNewline = scanner.needsNewline || scanner.wholeEnd < size;
    if (scanner.fence > this.fence) this.#lose();
    return scanner.take();
  }

  #wait(pending: Pending): void {
    // A caller that goes away must not turn a failure into an unhandled rejection.
    pending.done.promise.catch(() => undefined);
    this.#pending.push(pending);
    this.#tell();
  }

  /** Tells all that is as safe as its caller wants it, in log order, and starts a sync for the rest. */
  #tell(): void {
    for (let first = this.#pending[0]; first; first = this.#pending[0]) {
      if (first.sync && first.end > this.#durable) break;
      this.#pending.shift();
      this.#told = first.end;
      this.#appended.fire(first);
      first.done.resolve(first.records);
    }
    if (this.#pending.length > 0) this.#sync();
    else for (const quiet of this.#quiet.splice(0)) quiet();
  }

  /** Starts one sync for all that is written when the current microtasks are through: those who append together share it. */
  #sync(): void {
    if (this.#syncing) return;
    this.#syncing = true;
    process.nextTick(() => {
      const upTo = this.#end;
      this.#file.sync((error) => {
        this.#syncing = false;
        if (error) this.#takeBack(error);
        else this.#durable = upTo;
        this.#tell();
      });
    });
  }

  /** The disk refused: all that was not acknowledged is taken out again, so that the log is what callers believe it is. */
  #takeBack(error: Error): void {
    const failed = this.#pending.splice(0);
    const first = failed[0];
    let failure = appendFailure(error);
    // A new holder may have read what we could not sync: then it is theirs to keep.
    if (first && this.#state !== 'lost') {
      try {
        this.#file.takeBack(this.#durable, first.start, this.#end);
        this.#end = first.start;
        this.#head = first.headBefore;
      } catch (second) {
        // What is in the file now is not known: only a new reading tells.
        failure = appendFailure(second);
        this.#lose();
      }
    }
    for (const pending of failed) pending.done.reject(failure);
  }

  #assertOpen(): void {
    if (this.#state === 'lost') throw new LeaseLost();
    if (this.#state === 'released') {
      throw new AppendFailed('The session could not be saved: this window has closed it; open it again to go on.');
    }
  }

  #assertHeld(): void {
    this.#assertOpen();
    try {
      this.#lease.check();
    } catch (error) {
      throw appendFailure(error);
    }
    this.#assertOpen();
  }

  #lose(): void {
    if (this.#state !== 'open') return;
    this.#state = 'lost';
    void this.#close();
    this.#lostOnce.fire();
  }

  /** Resolves when nothing waits for the disk any more. */
  async #settled(): Promise<void> {
    await this.#turn;
    if (this.#pending.length > 0) await new Promise<void>((resolve) => this.#quiet.push(resolve));
  }

  /** What was appended without a sync gets one now; then the lease is let go. */
  async #close(): Promise<void> {
    await this.#settled();
    if (this.#durable < this.#end) await new Promise<void>((resolve) => this.#file.sync(() => resolve()));
    try {
      this.#file.close();
      await this.#lease.release();
    } catch {
      // The folder can't be written any more: the lease runs out by itself.
    }
    this.#ended.resolve();
  }
}
