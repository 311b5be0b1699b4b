import { mkdir, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Disposable, Disposables, disposable } from '../protocol/disposable.ts';
import { SessionId } from '../protocol/ids.ts';
import type { BlobRef, Draft, LogRecord, Seq } from '../protocol/record.ts';
import { readBlob } from './blobs.ts';
import { deleteSession } from './delete.ts';
import { throughDoor } from './door.ts';
import { appendFailure } from './failure.ts';
import { Follower } from './follow.ts';
import { type ForkPoint, forkSession } from './fork.ts';
import { type Holder, LeaseFile, type LeaseOptions } from './lease.ts';
import {
  AppendFailed,
  LeaseHeld,
  type LeaseHolder,
  type LogDoor,
  type LogSink,
  type Scanned,
  SessionMissing,
  type SessionReading,
  type SessionStore,
  type SessionWriter,
} from './log.ts';
import { createWriter, type Opening, openWriter, sessionExists } from './open.ts';
import { codeOf, isFolderName, LEASE_FILE, LOG_FILE, makeRoot, sessionFolder, sessionsFolder } from './paths.ts';
import { readLog, scanLog } from './read.ts';
import type { Position } from './snapshot.ts';
import { type Verification, verifySession } from './verify.ts';
import { Debounce, watchFolder } from './watch.ts';
import type { Writer } from './writer.ts';

export interface StoreOptions extends LeaseOptions {
  /** Absolute path of the `.drover` folder. */
  root: string;
  /** Who this process is to others; only tests say something else than the truth. */
  holder?: Holder | undefined;
  /** Absent: everything is stored as it is given. */
  door?: LogDoor | undefined;
}

/** Opens the sessions of one workspace folder. Nothing is read or written yet. */
export function openStore(options: StoreOptions): SessionStore {
  return new Store(options);
}

/**
 * The writers of this process, by holder and folder. They belong to the process and not to a store: two stores on one
 * folder must not write one session by turns.
 */
const writers = new Map<string, SharedWriter>();

const keyOf = ({ folder, lease }: Opening): string => `${lease.holder.host}\n${lease.holder.pid}\n${folder}`;

interface SharedWriter {
  writer: Promise<Writer>;
  users: Set<Store>;
}

/** Enough of a log to hold the start of its first record. */
const FIRST_BYTES = 256;
const LIST_QUIET_MS = 50;

class Store implements SessionStore {
  readonly root: string;
  readonly #options: StoreOptions;
  readonly #followers = new Map<SessionId, Set<Follower>>();
  readonly #watchers = new Set<Debounce>();
  readonly #owned = new Set<Disposable>();
  #disposed = false;
  /** When a session was created does not change. */
  readonly #created = new Map<SessionId, string>();
  /** How far sessions have been read: who then follows begins there. */
  readonly #read = new Map<SessionId, Position>();
  /** Writers this store passes on to its followers. */
  readonly #connected = new Map<SessionId, Writer>();

  constructor(options: StoreOptions) {
    this.root = options.root;
    this.#options = options;
  }

  async list(): Promise<SessionId[]> {
    const ids = await this.#ids();
    const created = new Map(await Promise.all(ids.map(async (id) => [id, await this.#createdAt(id)] as const)));
    return ids.sort((a, b) => (created.get(b) ?? '').localeCompare(created.get(a) ?? ''));
  }

  async create(id: SessionId, first: readonly Draft[]): Promise<SessionWriter> {
    const opening = this.#opening(id);
    await opening.door?.ready();
    try {
      await makeRoot(this.root);
      await mkdir(sessionsFolder(this.root), { recursive: true });
    } catch (error) {
      throw appendFailure(error);
    }
    if (writers.has(keyOf(opening))) throw sessionExists(id);
    const writer = await this.#register(opening, createWriter(opening, first));
    for (const look of this.#watchers) look.run();
    return writer;
  }

  async fork(from: ForkPoint, id: SessionId, drafts: readonly Draft[]): Promise<void> {
    const { folder, lease, door } = this.#opening(id);
    await door?.ready();
    if (await isFolder(folder)) throw sessionExists(id);
    await forkSession(this.root, from, id, throughDoor(door, drafts), lease.now());
    for (const look of this.#watchers) look.run();
  }

  async read(id: SessionId): Promise<SessionReading> {
    const folder = sessionFolder(this.root, id);
    try {
      return await readLog(join(folder, LOG_FILE));
    } catch (error) {
      return { records: [], ...(await this.#unread(folder, id, error)) };
    }
  }

  async scan(id: SessionId, fold: number, sink: LogSink): Promise<Scanned> {
    const folder = sessionFolder(this.root, id);
    try {
      const { end, ...scanned } = await scanLog(folder, fold, sink);
      this.#read.set(id, end);
      return scanned;
    } catch (error) {
      return this.#unread(folder, id, error);
    }
  }

  async acquire(id: SessionId, why: string): Promise<SessionWriter> {
    return this.#share(id, (opening) => openWriter(opening, why, false));
  }

  async takeOver(id: SessionId, why: string): Promise<SessionWriter> {
    try {
      return await this.acquire(id, why);
    } catch (error) {
      if (!(error instanceof LeaseHeld)) throw error;
      return this.#share(id, (opening) => openWriter(opening, why, true));
    }
  }

  async holder(id: SessionId): Promise<LeaseHolder | null> {
    try {
      return new LeaseFile(join(sessionFolder(this.root, id), LEASE_FILE), this.#options).current();
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || error instanceof SessionMissing) return null;
      throw error;
    }
  }

  follow(id: SessionId, from: Seq, listener: (records: LogRecord[]) => void): Disposable {
    const known = this.#read.get(id);
    const follower = new Follower({
      folder: sessionFolder(this.root, id),
      from,
      listener,
      start: known && known.head.seq < from ? known : undefined,
      writer: () => this.#connected.get(id),
    });
    const followers = this.#followers.get(id) ?? new Set();
    this.#followers.set(id, followers.add(follower));
    return this.#own(() => {
      follower.dispose();
      followers.delete(follower);
    });
  }

  watch(listener: () => void): Disposable {
    let known: string | undefined;
    const compare = async () => {
      const ids = (await this.#ids()).sort().join();
      const isNews = known !== undefined && known !== ids;
      known = ids;
      if (isNews) listener();
    };
    // A folder that can't be read now says nothing of what is in it.
    const look = new Debounce(LIST_QUIET_MS, () => void compare().catch(() => undefined));
    look.run();
    this.#watchers.add(look);
    const folder = watchFolder(sessionsFolder(this.root), () => look.run());
    return this.#own(() => {
      folder.dispose();
      look.dispose();
      this.#watchers.delete(look);
    });
  }

  async verify(id: SessionId): Promise<Verification> {
    const folder = sessionFolder(this.root, id);
    if (!(await isFolder(folder))) throw new SessionMissing(id);
    return verifySession(folder);
  }

  async delete(id: SessionId): Promise<void> {
    const opening = this.#opening(id);
    if (!(await isFolder(opening.folder))) throw new SessionMissing(id);
    const shared = writers.get(keyOf(opening));
    await shared?.writer.then((writer) => writer.release()).catch(() => undefined);
    await deleteSession(this.root, id, opening.lease);
    this.#created.delete(id);
    this.#read.delete(id);
    for (const look of this.#watchers) look.run();
  }

  readBlob(id: SessionId, blob: BlobRef): Promise<Uint8Array> {
    return readBlob(sessionFolder(this.root, id), blob);
  }

  async dispose(): Promise<void> {
    this.#disposed = true;
    for (const owned of [...this.#owned]) owned.dispose();
    const mine = [...writers.values()].filter((shared) => shared.users.delete(this) && shared.users.size === 0);
    await Promise.all(mine.map(({ writer }) => writer.then((open) => open.release()).catch(() => undefined)));
  }

  /** A session without a log is still one; without a folder it is none. */
  async #unread(folder: string, id: SessionId, error: unknown): Promise<Scanned> {
    if (codeOf(error) !== 'ENOENT') throw error;
    if (!(await isFolder(folder))) throw new SessionMissing(id);
    const damage = [{ range: [0, 0] as [number, number], reason: 'the log file is missing' }];
    return { damage, tornBytes: 0, stale: 0, newer: false };
  }

  /** The process's writer of a session, or else the one that `open` makes. */
  async #share(id: SessionId, open: (opening: Opening) => Promise<Writer>): Promise<Writer> {
    const opening = this.#opening(id);
    const key = keyOf(opening);
    await opening.door?.ready();
    for (let shared = writers.get(key); shared; shared = writers.get(key)) {
      shared.users.add(this);
      const writer = await shared.writer;
      if (writer.isOpen) return this.#connect(id, writer);
      await writer.ended;
    }
    return this.#register(opening, open(opening));
  }

  async #register(opening: Opening, writer: Promise<Writer>): Promise<Writer> {
    const key = keyOf(opening);
    writers.set(key, { writer, users: new Set([this]) });
    const forget = () => void writers.delete(key);
    writer.then(({ ended }) => ended).then(forget, forget);
    return this.#connect(opening.id, await writer);
  }

  /** Lets followers hear of what the writer appends, and the writer of what happens to its lease. */
  #connect(id: SessionId, writer: Writer): Writer {
    if (this.#connected.get(id) === writer) return writer;
    this.#connected.set(id, writer);
    const connection = new Disposables();
    connection.add(
      writer.onAppended((appended) => {
        for (const follower of this.#followers.get(id) ?? []) follower.take(appended);
      }),
    );
    connection.add(
      watchFolder(sessionFolder(this.root, id), (name) => {
        if (name === null || name.startsWith(LEASE_FILE)) writer.checkLease();
      }),
    );
    const owned = this.#own(() => connection.dispose());
    void writer.ended.then(() => {
      owned.dispose();
      if (this.#connected.get(id) === writer) this.#connected.delete(id);
      this.#lookAll(id);
    });
    this.#lookAll(id);
    return writer;
  }

  /** Let go with the store, or before; at once if the store is gone already. */
  #own(dispose: () => void): Disposable {
    const owned = disposable(() => {
      if (this.#owned.delete(owned)) dispose();
    });
    this.#owned.add(owned);
    if (this.#disposed) owned.dispose();
    return owned;
  }

  #lookAll(id: SessionId): void {
    for (const follower of this.#followers.get(id) ?? []) follower.look();
  }

  #opening(id: SessionId): Opening {
    if (this.#disposed) throw new AppendFailed('This window is closing, so no session is opened in it any more.');
    const folder = sessionFolder(this.root, id);
    return { id, folder, lease: new LeaseFile(join(folder, LEASE_FILE), this.#options), door: this.#options.door };
  }

  async #ids(): Promise<SessionId[]> {
    try {
      const entries = await readdir(sessionsFolder(this.root), { withFileTypes: true });
      const folders = entries.filter((entry) => entry.isDirectory() && isFolderName(entry.name));
      return folders.map((entry) => SessionId.parse(entry.name));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    }
  }

  /** When the session's first record was written, or else when its folder was made; RFC 3339. */
  async #createdAt(id: SessionId): Promise<string> {
    const known = this.#created.get(id);
    if (known) return known;
    const folder = sessionFolder(this.root, id);
    const at = (await firstAt(join(folder, LOG_FILE))) ?? (await bornAt(folder));
    this.#created.set(id, at);
    return at;
  }
}

async function firstAt(path: string): Promise<string | undefined> {
  try {
    const file = await open(path, 'r');
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(FIRST_BYTES), 0, FIRST_BYTES, 0);
      return /"at":"(\d{4}-[0-9T:.-]+Z)"/.exec(buffer.toString('latin1', 0, bytesRead))?.[1];
    } finally {
      await file.close();
    }
  } catch {
    // Gone, or not readable: it is listed all the same.
    return undefined;
  }
}

async function bornAt(folder: string): Promise<string> {
  const born = await stat(folder).then(
    (found) => found.birthtime,
    () => new Date(0),
  );
  return born.toISOString();
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
