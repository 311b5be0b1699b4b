import type { Disposable } from '../protocol/disposable.ts';
import { DroverError } from '../protocol/errors.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { BlobRef, Draft, LogRecord, Seq } from '../protocol/record.ts';
import type { ForkPoint } from './fork.ts';
import type { Verification } from './verify.ts';

/** The door of `log/`: where sessions are kept. One store per workspace folder, rooted at its `.drover`. */
export interface SessionStore {
  /** Absolute path of the `.drover` folder. Made at the first write, with a `.gitignore` of `*`. */
  readonly root: string;
  /** Ids of all sessions on disk, from the directories, newest first. A folder that can't be read is listed all the same. */
  list(): Promise<SessionId[]>;
  /** Makes the session's folder and appends its first records; the caller holds the lease. */
  create(id: SessionId, first: readonly Draft[]): Promise<SessionWriter>;
  /**
   * Makes a session from the beginning of another, which is only read: its log's bytes up to a record, the blobs they
   * name, then `drafts`. It appears as a whole, and nobody holds it. Throws `SessionMissing`, `AppendFailed`.
   */
  fork(from: ForkPoint, id: SessionId, drafts: readonly Draft[]): Promise<void>;
  /** Reads a session. Never writes, never deletes. */
  read(id: SessionId): Promise<SessionReading>;
  /** Reads a session into `sink`, from a state that version `fold` has folded and kept, if there is one. Never writes. */
  scan(id: SessionId, fold: number, sink: LogSink): Promise<Scanned>;
  /** Takes the lease. Throws `LeaseHeld` while another living process has it. Same writer for every caller in this process. */
  acquire(id: SessionId, why: string): Promise<SessionWriter>;
  /** Takes the lease whoever holds it: the former holder is fenced off. */
  takeOver(id: SessionId, why: string): Promise<SessionWriter>;
  /** Who holds the lease, or null if nobody alive does. */
  holder(id: SessionId): Promise<LeaseHolder | null>;
  /** Calls back with every record from `from` on that is in the log or gets there, by whichever process, in order. */
  follow(id: SessionId, from: Seq, listener: (records: LogRecord[]) => void): Disposable;
  /** Calls back when a session appears or goes away, in this process or another. */
  watch(listener: () => void): Disposable;
  /** Checks all that the session has on the disk, byte by byte. Never writes. Throws `SessionMissing`. */
  verify(id: SessionId): Promise<Verification>;
  /**
   * Takes the session away, blobs and all, for good. Never called but for a person who has asked for it. This process's
   * own writer is released first. Throws `LeaseHeld` while another living process has it, `SessionMissing`, `DeleteFailed`.
   */
  delete(id: SessionId): Promise<void>;
  /** The whole of a blob. Throws `BlobDamaged` if its bytes do not match its name. */
  readBlob(id: SessionId, blob: BlobRef): Promise<Uint8Array>;
  dispose(): Promise<void>;
}

export interface LeaseHolder {
  pid: number;
  host: string;
  fence: number;
  /** True if it is this process. */
  ours: boolean;
}

export interface Damage {
  /** Bytes of the file, end exclusive. */
  range: [number, number];
  reason: string;
}

export interface SessionReading extends Scanned {
  /** The live records, in order. */
  records: LogRecord[];
}

/** What was found beside the live records, in the part of the log that was read. */
export interface Scanned {
  damage: Damage[];
  /** Bytes after the last whole record, passed over. */
  tornBytes: number;
  /** Records of a stale writer. */
  stale: number;
  /** Set if a record is of a greater format version: this session can only be read. */
  newer: boolean;
}

/** A state that was kept: pages of text, of which only the first has been read yet. */
export interface KeptState {
  first: Uint8Array;
  /** Reads the other pages, at once; null if they are not there any more as they were. Never throws. */
  rest(): Uint8Array[] | null;
  /** Reads all live records up to where the state reaches, at once. Throws the system's error. */
  replay(each: (records: LogRecord[]) => void): void;
}

/** Takes a session in as it is read, piece by piece, so that nobody holds all of its records at once. */
export interface LogSink {
  /** Comes first, if a folded state is kept that fits. False: it is of no use, send all records. */
  kept(state: KeptState): boolean;
  /** The live records, in order; those behind the kept state, if it was taken. */
  take(records: LogRecord[]): void;
}

/** What everything passes on its way into a log: it takes out what must never be in one, such as a secret. */
export interface LogDoor {
  /** Resolves when it knows all that it must look for; nobody writes before. */
  ready(): Promise<void>;
  /** The draft as it may be stored, the same one if there is nothing to take out, and what is stored with it to tell of it. */
  draft(draft: Draft): { draft: Draft; alarms: Draft[] };
  /** As `draft`, for a blob. */
  bytes(bytes: Uint8Array): { bytes: Uint8Array; alarms: Draft[] };
}

/** The one writer of a session: whoever holds its lease. */
export interface SessionWriter {
  readonly id: SessionId;
  readonly fence: number;
  /**
   * Appends the drafts as one write and returns them as records. Resolves when they are durable (fdatasync),
   * or, with `sync: false`, when they are written. Text over 32 KiB goes to a blob.
   * Throws `LeaseLost` if another process took the session, `AppendFailed` on disk full or an I/O error:
   * then nothing of the batch is in the log.
   */
  append(drafts: readonly Draft[], options?: { sync?: boolean }): Promise<LogRecord[]>;
  /**
   * Throws `LeaseLost` if another process has the session by now. Asked directly before an act outside the log that
   * only the holder may do: a process may have been stopped for longer than its lease since its last append.
   */
  assertHeld(): void;
  /** Stores bytes beside the log, durable when it resolves; name it in a draft's `local.blobs` afterwards. */
  putBlob(bytes: Uint8Array, mediaType: string): Promise<BlobRef>;
  /** All records so far, read from disk (for `alwaysRefold` and wake). */
  read(): Promise<SessionReading>;
  /** As `read`, into `sink`, from a state that is kept. */
  scan(fold: number, sink: LogSink): Promise<Scanned>;
  /** Live records behind the state that is kept; all of them if none is. */
  readonly sinceKept: number;
  /**
   * Keeps a folded state beside the log, to begin from when it is opened again. `at` is the record it reaches to; if
   * the log has moved on, or can't be read without a gap, or the disk refuses, nothing is kept and the answer is false.
   */
  keep(at: { seq: Seq; hash: string }, fold: number, pages: Iterable<string>): Promise<boolean>;
  /** Called with every batch this writer appends, in log order, after it is written and before `append` resolves. */
  onAppend(listener: (records: LogRecord[]) => void): Disposable;
  /** Called once if the lease is lost. */
  onLost(listener: () => void): Disposable;
  /** Gives the lease back. */
  release(): Promise<void>;
}

export class LeaseHeld extends DroverError {
  readonly holder: LeaseHolder;
  constructor(holder: LeaseHolder) {
    super(
      'log',
      `This session is being run by process ${holder.pid} on ${holder.host}; take it over to continue here.`,
    );
    this.holder = holder;
  }
}

export class LeaseLost extends DroverError {
  constructor() {
    super('log', 'Another window took this session over; this one now only follows it.');
  }
}

export class AppendFailed extends DroverError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('log', message, options);
  }
}

export class DeleteFailed extends DroverError {
  constructor(cause: string, options?: { cause?: unknown }) {
    super('log', `The session could not be deleted (${cause}); what is left of it is still listed.`, options);
  }
}

export class SessionMissing extends DroverError {
  constructor(id: string) {
    super('log', `There is no session ${id} in this folder; it may have been deleted or moved.`);
  }
}

export class BlobDamaged extends DroverError {
  constructor(blob: BlobRef) {
    super('log', `The stored output ${blob.path} no longer has the bytes it was saved with, so it is not shown.`);
  }
}
