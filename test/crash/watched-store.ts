import type { LeaseHolder, SessionReading, SessionStore, SessionWriter } from '../../src/log/log.ts';
import { openStore } from '../../src/log/store.ts';
import type { Verification } from '../../src/log/verify.ts';
import type { Disposable } from '../../src/protocol/disposable.ts';
import type { SessionId } from '../../src/protocol/ids.ts';
import type { BlobRef, Draft, LogRecord, Seq } from '../../src/protocol/record.ts';

/** Told what the log does, at the moment it does it. Nothing goes on before these return. */
export interface Watch {
  /** A batch is about to be handed to the log. */
  before(): void;
  /** A batch is as safe as was asked; nobody else has been told yet. */
  after(records: readonly LogRecord[]): void;
  /** The log asks for the time while it makes a session or takes its lease. */
  opening(): void;
}

/** The real store, with an eye on it. It changes nothing of what the store does. */
export class WatchedStore implements SessionStore {
  readonly root: string;
  readonly #inner: SessionStore;
  readonly #watch: Watch;
  readonly #writers = new Map<SessionWriter, SessionWriter>();
  #opening = 0;
  #announced = false;

  constructor(root: string, leaseMs: number | undefined, watch: Watch) {
    this.root = root;
    this.#watch = watch;
    this.#inner = openStore({
      root,
      leaseMs,
      now: () => {
        if (this.#opening > 0) watch.opening();
        return new Date();
      },
    });
  }

  list(): Promise<SessionId[]> {
    return this.#inner.list();
  }

  create(id: SessionId, first: readonly Draft[]): Promise<SessionWriter> {
    return this.#open(() => this.#inner.create(id, first));
  }

  read(id: SessionId): Promise<SessionReading> {
    return this.#inner.read(id);
  }

  acquire(id: SessionId, why: string): Promise<SessionWriter> {
    return this.#open(() => this.#inner.acquire(id, why));
  }

  takeOver(id: SessionId, why: string): Promise<SessionWriter> {
    return this.#open(() => this.#inner.takeOver(id, why));
  }

  holder(id: SessionId): Promise<LeaseHolder | null> {
    return this.#inner.holder(id);
  }

  follow(id: SessionId, from: Seq, listener: (records: LogRecord[]) => void): Disposable {
    return this.#inner.follow(id, from, listener);
  }

  watch(listener: () => void): Disposable {
    return this.#inner.watch(listener);
  }

  verify(id: SessionId): Promise<Verification> {
    return this.#inner.verify(id);
  }

  delete(id: SessionId): Promise<void> {
    return this.#inner.delete(id);
  }

  readBlob(id: SessionId, blob: BlobRef): Promise<Uint8Array> {
    return this.#inner.readBlob(id, blob);
  }

  dispose(): Promise<void> {
    return this.#inner.dispose();
  }

  /** The first opening in this process appends too: the session's first records, or that somebody woke. */
  async #open(open: () => Promise<SessionWriter>): Promise<SessionWriter> {
    if (!this.#announced) this.#watch.before();
    this.#announced = true;
    this.#opening += 1;
    try {
      const inner = await open();
      const known = this.#writers.get(inner);
      if (known) return known;
      const writer = new WatchedWriter(inner, this.#watch);
      this.#writers.set(inner, writer);
      this.#watch.after([]);
      return writer;
    } finally {
      this.#opening -= 1;
    }
  }
}

class WatchedWriter implements SessionWriter {
  readonly id: SessionId;
  readonly fence: number;
  readonly #inner: SessionWriter;
  readonly #watch: Watch;

  constructor(inner: SessionWriter, watch: Watch) {
    this.id = inner.id;
    this.fence = inner.fence;
    this.#inner = inner;
    this.#watch = watch;
    // The first listener: it hears of a batch before the harness does.
    inner.onAppend((records) => watch.after(records));
  }

  append(drafts: readonly Draft[], options?: { sync?: boolean }): Promise<LogRecord[]> {
    if (drafts.length > 0) this.#watch.before();
    return this.#inner.append(drafts, options);
  }

  assertHeld(): void {
    this.#inner.assertHeld();
  }

  putBlob(bytes: Uint8Array, mediaType: string): Promise<BlobRef> {
    return this.#inner.putBlob(bytes, mediaType);
  }

  read(): Promise<SessionReading> {
    return this.#inner.read();
  }

  onAppend(listener: (records: LogRecord[]) => void): Disposable {
    return this.#inner.onAppend(listener);
  }

  onLost(listener: () => void): Disposable {
    return this.#inner.onLost(listener);
  }

  release(): Promise<void> {
    return this.#inner.release();
  }
}
