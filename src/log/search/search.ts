import { readdir } from 'node:fs/promises';
import { SessionId } from '../../protocol/ids.ts';
import { codeOf, isFolderName, sessionFolder, sessionsFolder } from '../paths.ts';
import { Slices } from '../slices.ts';
import type { Place } from './block.ts';
import { Cache } from './cache.ts';
import { type Hit, HitReader } from './hits.ts';
import { SessionIndex } from './session-index.ts';
import { parseQuery } from './words.ts';

/** Records read back at the same time. */
const AT_ONCE = 25;
/** A search gives up after reading so many records that have the words, but not as they were asked for. */
const MOST_READ = 2000;

export interface SearchOptions {
  /** Hits wanted at most; the newest are given. */
  limit: number;
  /** Ends the search early, with what was found so far. */
  signal?: AbortSignal;
}

/**
 * Finds text in all sessions of one `.drover` folder: in what people and agents said, in what tools were given and
 * gave, and in errors, of all threads. What is looked for may begin and end inside of words.
 *
 * The index is read from the logs, and kept in a cache that may be deleted at any time.
 */
export class SearchIndex {
  readonly #root: string;
  readonly #cache: Cache;
  readonly #sessions = new Map<SessionId, SessionIndex>();
  #refreshing: Promise<boolean> | null = null;
  /** What the cache has of sessions that are gone was removed once. */
  #tidied = false;

  /** @param root absolute path of the `.drover` folder */
  constructor(root: string) {
    this.#root = root;
    this.#cache = new Cache(root);
  }

  /** Takes in what the logs have got, whoever wrote it, in short slices. True if there was anything new. */
  refresh(onProgress: (done: number, of: number) => void = () => undefined): Promise<boolean> {
    this.#refreshing ??= this.#refresh(onProgress).finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  /** The newest records that have all words, or quoted phrases, of what was typed; nothing for blanks. */
  async search(typed: string, { limit, signal }: SearchOptions): Promise<Hit[]> {
    const query = parseQuery(typed);
    if (!query) return [];
    const hits: Hit[] = [];
    const reader = new HitReader(query);
    try {
      let read = 0;
      for (const batch of batches(this.#candidates(query.pieces))) {
        const found = await Promise.all(batch.map(({ index, place }) => reader.read(index, place)));
        hits.push(...found.filter((hit) => hit !== null));
        read += batch.length;
        if (hits.length >= limit || read >= MOST_READ || signal?.aborted) break;
      }
    } finally {
      await reader.close();
    }
    return hits.slice(0, limit);
  }

  async #refresh(onProgress: (done: number, of: number) => void): Promise<boolean> {
    const ids = await this.#ids();
    const there = new Set(ids);
    let changed = false;
    for (const id of this.#sessions.keys()) if (!there.has(id)) changed = this.#sessions.delete(id) || changed;
    const behind = await this.#behind(ids);
    const slices = new Slices();
    for (const [n, index] of behind.entries()) {
      onProgress(n, behind.length);
      changed = (await this.#refreshSession(index, slices)) || changed;
    }
    onProgress(behind.length, behind.length);
    if (changed || !this.#tidied) await this.#cache.keepOnly(there);
    this.#tidied = true;
    return changed;
  }

  /** The sessions whose logs have changed, the new ones with what the cache knows of them. */
  async #behind(ids: readonly SessionId[]): Promise<SessionIndex[]> {
    const behind = await Promise.all(
      ids.map(async (id) => {
        const known = this.#sessions.get(id);
        // No log in the folder, or not readable now: the next time may be better.
        const changed = (await known?.isBehind().catch(() => false)) ?? true;
        return changed ? (known ?? new SessionIndex(id, sessionFolder(this.#root, id))) : null;
      }),
    );
    return behind.filter((index) => index !== null);
  }

  async #refreshSession(index: SessionIndex, slices: Slices): Promise<boolean> {
    const isNew = !this.#sessions.has(index.id);
    if (isNew) {
      index.begin(await this.#cache.read(index.id));
      this.#sessions.set(index.id, index);
      if (slices.due) await slices.pause();
    }
    try {
      const changed = await index.refresh(slices);
      if (changed) await this.#cache.write(index.id, index.indexed);
      return changed || isNew;
    } catch {
      return false;
    }
  }

  /** Records that have all pieces in their words, newest first; which of them have the words as typed is to be read. */
  *#candidates(pieces: readonly string[]): Generator<Candidate> {
    const blocks = [...this.#sessions.values()].flatMap((index) =>
      index.indexed.blocks.map((block) => ({ index, block })),
    );
    blocks.sort((a, b) => b.block.newest - a.block.newest);
    let pool: Candidate[] = [];
    for (const [n, { index, block }] of blocks.entries()) {
      for (const found of block.find(pieces)) pool.push({ index, place: block.place(found) });
      const next = blocks[n + 1]?.block.newest ?? Number.NEGATIVE_INFINITY;
      if (pool.length === 0) continue;
      const ready = pool
        .filter(({ place }) => place.at > next)
        .sort((a, b) => b.place.at - a.place.at || b.place.seq - a.place.seq);
      pool = pool.filter(({ place }) => place.at <= next);
      yield* ready;
    }
  }

  async #ids(): Promise<SessionId[]> {
    try {
      const entries = await readdir(sessionsFolder(this.#root), { withFileTypes: true });
      const folders = entries.filter((entry) => entry.isDirectory() && isFolderName(entry.name));
      return folders.map((entry) => SessionId.parse(entry.name));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    }
  }
}

interface Candidate {
  index: SessionIndex;
  place: Place;
}

function* batches<T>(items: Iterable<T>): Generator<T[]> {
  let batch: T[] = [];
  for (const item of items) {
    batch.push(item);
    if (batch.length < AT_ONCE) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
