import { join } from 'node:path';
import { type Disposable, Emitter } from '../protocol/disposable.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { BlobRef, Draft, LogRecord, Seq } from '../protocol/record.ts';
import { writeBlobs } from './blobs.ts';
import { throughDoor } from './door.ts';
import { appendFailure } from './failure.ts';
import type { Lease } from './lease.ts';
import {
  AppendFailed,
  LeaseLost,
  type LogDoor,
  type LogSink,
  type Scanned,
  type SessionReading,
  type SessionWriter,
} from './log.ts';
import type { LogFile } from './log-file.ts';
import { LOG_FILE } from './paths.ts';
import { readLog, scanLog } from './read.ts';
import { Scanner } from './scan.ts';
import { type Head, type Ready, ready, serialize } from './serialize.ts';
import { writeSnapshot } from './snapshot.ts';
import { type Blob, blobOf, spill } from './spill.ts';

/** Records that were appended, and the bytes of the file they are. */
export interface Appended {
  records: LogRecord[];
  start: number;
  end: number;
}

/** A batch on its way: waiting for its turn, then in the file and waiting for the disk. */
interface Batch {
  drafts: Ready[];
  at: string;
  sync: boolean;
  /** Its blobs are on the disk. */
  stored: boolean;
  done: PromiseWithResolvers<LogRecord[]>;
}

interface Written extends Appended {
  batch: Batch;
  /** What the file ended in before it. */
  before: { head: Head; needsNewline: boolean };
}

export interface WriterParts {
  id: SessionId;
  folder: string;
  file: LogFile;
  lease: Lease;
  door?: LogDoor | undefined;
  now: () => Date;
  /** The last live record, and where the file ends. */
  head: Head;
  end: number;
  /** The file lacks its last newline. */
  needsNewline: boolean;
  /** The last record that a kept state reaches to; -1 if none is kept. */
  keptSeq: Seq;
  /** The log has a place that can't be read: then a kept state would hide it. */
  damaged: boolean;
}

/** A foreign write in the middle of ours is met at most once per take-over; more means that something is very wrong. */
const MAX_ATTEMPTS = 5;

/**
 * The one writer of a session in this process. Batches are written in the order of the calls; those that are appended
 * at the same time share one write and one sync.
 */
export class Writer implements SessionWriter {
  readonly id: SessionId;
  readonly fence: number;
  readonly #folder: string;
  readonly #file: LogFile;
  readonly #lease: Lease;
  readonly #door: LogDoor | undefined;
  readonly #now: () => Date;
  readonly #appended = new Emitter<Appended>();
  readonly #lostOnce = new Emitter<void>();
  #head: Head;
  #end: number;
  #needsNewline: boolean;
  #keptSeq: Seq;
  readonly #damaged: boolean;
  /** Everything before this byte is on the disk. */
  #durable: number;
  /** Everything before this byte has been told to listeners. */
  #told: number;
  /** In the order of the calls. */
  #queue: Batch[] = [];
  #scheduled = false;
  /** In the order of the file. */
  #pending: Written[] = [];
  #syncing = false;
  #state: 'open' | 'lost' | 'released' = 'open';
  readonly #ended = Promise.withResolvers<void>();

  constructor(parts: WriterParts) {
    this.id = parts.id;
    this.fence = parts.lease.fence;
    this.#folder = parts.folder;
    this.#file = parts.file;
    this.#lease = parts.lease;
    this.#door = parts.door;
    this.#now = parts.now;
    this.#head = parts.head;
    this.#end = parts.end;
    this.#durable = parts.end;
    this.#told = parts.end;
    this.#needsNewline = parts.needsNewline;
    this.#keptSeq = parts.keptSeq;
    this.#damaged = parts.damaged;
    this.#lease.whenLost(() => this.#lose());
  }

  async append(drafts: readonly Draft[], options: { sync?: boolean } = {}): Promise<LogRecord[]> {
    this.#assertOpen();
    if (drafts.length === 0) return [];
    const at = this.#now().toISOString();
    const blobs: Blob[] = [];
    const batch: Batch = {
      drafts: throughDoor(this.#door, drafts).map((draft) => this.#ready(draft, at, blobs)),
      at,
      sync: options.sync ?? true,
      stored: blobs.length === 0,
      done: Promise.withResolvers<LogRecord[]>(),
    };
    this.#queue.push(batch);
    if (batch.stored) this.#schedule();
    else void this.#storeFor(batch, blobs);
    return batch.done.promise;
  }

  async putBlob(bytes: Uint8Array, mediaType: string): Promise<BlobRef> {
    this.#assertOpen();
    const checked = this.#door?.bytes(bytes) ?? { bytes, alarms: [] };
    const blob = blobOf(checked.bytes, mediaType);
    await this.#store([blob]);
    await this.append(checked.alarms);
    return blob.ref;
  }

  async read(): Promise<SessionReading> {
    await this.#settled();
    return readLog(join(this.#folder, LOG_FILE));
  }

  async scan(fold: number, sink: LogSink): Promise<Scanned> {
    await this.#settled();
    const { end: _, ...scanned } = await scanLog(this.#folder, fold, sink);
    return scanned;
  }

  get sinceKept(): number {
    return this.#head.seq - this.#keptSeq;
  }

  async keep(at: Head, fold: number, pages: Iterable<string>): Promise<boolean> {
    await this.#settled();
    if (this.#state === 'open' && this.#durable < this.#end) await this.#syncRest();
    const bytes = this.#durable;
    const current = () => this.#mayKeep(at) && this.#durable === bytes;
    try {
      if (!current()) return false;
      const header = { fold, head: { seq: at.seq, hash: at.hash }, fence: this.fence, bytes };
      const kept = await writeSnapshot(this.#folder, header, pages, current);
      if (kept) this.#keptSeq = at.seq;
      return kept;
    } catch {
      // A full disk, most likely. Nobody needs it.
      return false;
    }
  }

  onAppend(listener: (records: LogRecord[]) => void): Disposable {
    return this.#appended.on(({ records }) => listener(records));
  }

  onLost(listener: () => void): Disposable {
    return this.#lostOnce.on(listener);
  }

  assertHeld(): void {
    // One that was given back on purpose is not lost: what was begun before is still ours to do.
    if (this.#state !== 'released') this.#assertHeld();
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
    if (this.#state === 'open') {
      this.#state = 'released';
      void this.#close();
    }
    await this.ended;
  }

  /** All that is in the file is on the disk, and `at` is the last of it. */
  #mayKeep(at: Head): boolean {
    if (this.#damaged || this.#needsNewline || this.#state !== 'open' || !this.#lease.check()) return false;
    return this.#head.hash === at.hash && this.#durable === this.#end && this.#pending.length === 0;
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

  async #storeFor(batch: Batch, blobs: readonly Blob[]): Promise<void> {
    try {
      await this.#store(blobs);
      batch.stored = true;
    } catch (error) {
      this.#queue.splice(this.#queue.indexOf(batch), 1);
      batch.done.reject(error);
    }
    this.#schedule();
  }

  /** Writes when the current microtasks are through, so that those who append together are written together. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    process.nextTick(() => {
      this.#scheduled = false;
      const waiting = this.#queue.findIndex((batch) => !batch.stored);
      this.#putAll(this.#queue.splice(0, waiting === -1 ? this.#queue.length : waiting));
      this.#tell();
    });
  }

  #putAll(batches: readonly Batch[]): void {
    if (batches.length === 0) return;
    try {
      this.#pending.push(...this.#put(batches));
    } catch (error) {
      // One that is too large, for a record or for the disk, must not take the others with it.
      if (batches.length > 1) for (const batch of batches) this.#putAll([batch]);
      else batches[0]?.done.reject(appendFailure(error));
    }
  }

  /** Writes batches as one. What somebody else wrote meanwhile is taken in, and we try again behind it. */
  #put(batches: readonly Batch[], attempt = 1): Written[] {
    if (attempt > MAX_ATTEMPTS) {
      throw new AppendFailed('The session could not be saved: another program keeps writing to its log.');
    }
    this.#assertHeld();
    if (this.#file.size() !== this.#end) {
      this.#absorb();
      return this.#put(batches, attempt + 1);
    }
    const start = this.#end;
    const { written, bytes, head } = this.#serialize(batches);
    this.#file.append(bytes, start);
    const alone = this.#file.size() === start + bytes.length;
    if (!alone && !this.#absorb().some((record) => record.hash === head.hash)) return this.#put(batches, attempt + 1);
    if (alone) {
      this.#needsNewline = false;
      this.#head = head;
      this.#end = start + bytes.length;
    }
    return written;
  }

  #serialize(batches: readonly Batch[]): { written: Written[]; bytes: Buffer; head: Head } {
    const pieces: Buffer[] = this.#needsNewline ? [Buffer.from('\n')] : [];
    let before = { head: this.#head, needsNewline: this.#needsNewline };
    let start = this.#end;
    let end = start + pieces.length;
    const written = batches.map((batch) => {
      const { records, bytes, head } = serialize(batch.drafts, before.head, this.fence, batch.at);
      pieces.push(bytes);
      end += bytes.length;
      const one: Written = { batch, records, start, end, before };
      start = end;
      before = { head, needsNewline: false };
      return one;
    });
    const [only] = pieces;
    const bytes = only && pieces.length === 1 ? only : Buffer.concat(pieces);
    return { written, bytes, head: before.head };
  }

  /** Takes in all that stands behind our end, and returns the live records in it. */
  #absorb(): LogRecord[] {
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

  /** Tells all that is as safe as its caller wants it, in log order, and starts a sync for the rest. */
  #tell(): void {
    for (let first = this.#pending[0]; first; first = this.#pending[0]) {
      if (first.batch.sync && first.end > this.#durable) break;
      this.#pending.shift();
      this.#told = first.end;
      this.#appended.fire(first);
      first.batch.done.resolve(first.records);
    }
    if (this.#pending.length > 0) this.#sync();
  }

  /** One sync at a time, for all that is written when it starts. */
  #sync(): void {
    if (this.#syncing) return;
    this.#syncing = true;
    const [upTo, head] = [this.#end, this.#head];
    this.#file.sync((error) => {
      this.#syncing = false;
      if (error) this.#takeBack(error);
      else this.#keepDurable(upTo, head);
      this.#tell();
    });
  }

  #keepDurable(end: number, head: Head): void {
    this.#durable = end;
    this.#lease.head = head;
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
        this.#head = first.before.head;
        this.#needsNewline = first.before.needsNewline;
      } catch (second) {
        // What is in the file now is not known: only a new reading tells.
        failure = appendFailure(second);
        this.#lose();
      }
    }
    for (const { batch } of failed) batch.done.reject(failure);
  }

  #assertOpen(): void {
    if (this.#state === 'lost') throw new LeaseLost();
    if (this.#state === 'released') {
      throw new AppendFailed('The session could not be saved: this window has closed it; open it again to go on.');
    }
  }

  #assertHeld(): void {
    if (!this.#lease.check()) this.#lose();
    if (this.#state === 'lost') throw new LeaseLost();
  }

  async #syncRest(): Promise<void> {
    const [upTo, head] = [this.#end, this.#head];
    await new Promise<void>((resolve) => {
      this.#file.sync((error) => {
        if (!error) this.#keepDurable(upTo, head);
        resolve();
      });
    });
  }

  #lose(): void {
    const wasOpen = this.#state === 'open';
    this.#state = 'lost';
    if (!wasOpen) return;
    void this.#close();
    this.#lostOnce.fire();
  }

  /** Resolves when all that has been appended so far has been told to its callers. */
  async #settled(): Promise<void> {
    const batches = [...this.#pending.map((written) => written.batch), ...this.#queue];
    await Promise.allSettled(batches.map((batch) => batch.done.promise));
  }

  /** What was appended without a sync gets one now; then the lease is let go. */
  async #close(): Promise<void> {
    await this.#settled();
    if (this.#durable < this.#end) await this.#syncRest();
    try {
      this.#file.close();
      await this.#lease.release();
    } catch {
      // The folder can't be written any more: the lease runs out by itself.
    }
    this.#ended.resolve();
  }
}
