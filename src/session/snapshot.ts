import type { AgentSnapshot } from '../protocol/drover-event.ts';
import type { EventId, SandboxId, ThreadId } from '../protocol/ids.ts';
import type { LogRecord, Seq } from '../protocol/record.ts';
import { apply, fold } from './fold.ts';
import type { Entry, ModelRequest, SandboxState, SessionState, ThreadState, ToolCall } from './state.ts';

/*
 * A folded state as text, so that a long session can be opened without its whole log. It is cut into pages that are
 * parsed when they are first looked at: a list of sessions needs what stands on the first page and nothing else.
 * A snapshot is only ever a shortcut: whoever has one that does not fit folds the log instead.
 */

/** The version of what `fold` makes of a log. A state that another version folded is not used. */
export const FOLD_VERSION = 3;

/** Entries, calls or places on one page. */
const PAGE_ITEMS = 500;

type Lazy = 'threads' | 'calls' | 'seqOf' | 'sandboxes' | 'reserved';
type Reserved = SessionState['reserved'] extends Map<EventId, infer R> ? R : never;

interface StoredThread extends Omit<ThreadState, 'entries' | 'open' | 'last' | 'agent'> {
  /** Index in the session's own agent and its roster, or an agent that is in neither. */
  agent: number | AgentSnapshot;
  /** Places in `entries`. */
  open: number | null;
  last: number | null;
  entries: number;
}

/** The first page. Numbers of items tell which pages follow: each thread's entries, the calls, the places. */
interface FirstPage {
  session: Omit<SessionState, Lazy>;
  threads: StoredThread[];
  sandboxes: [SandboxId, SandboxState][];
  reserved: [EventId, Reserved][];
  calls: number;
  places: number;
}

/** The pages of a state, one JSON text without a line break each. The state must stay as it is until the last one. */
export function* pagesOf(state: SessionState): Generator<string> {
  const { threads, calls, seqOf, sandboxes, reserved, ...session } = state;
  const agents = [state.agent, ...state.roster];
  const first: FirstPage = {
    session,
    threads: [...threads.values()].map((thread) => stored(thread, agents)),
    sandboxes: [...sandboxes],
    reserved: [...reserved],
    calls: calls.size,
    places: seqOf.size,
  };
  yield JSON.stringify(first);
  for (const { entries } of threads.values()) yield* inPages(entries);
  yield* inPages([...calls.values()]);
  yield* inPages([...seqOf]);
}

/** A state that was kept: the first page, and what the others hold when it is asked for. */
export interface Kept {
  first: Uint8Array;
  /** The other pages, or null if they are gone. */
  rest(): readonly Uint8Array[] | null;
  /** Gives all records that were folded into the state, for who finds the pages gone. */
  replay(each: (records: readonly LogRecord[]) => void): void;
}

/** A kept state, taken up again. Throws if its first page is none. */
export function resume(kept: Kept): SessionState {
  const first: FirstPage = parse(kept.first);
  const agents = [first.session.agent, ...first.session.roster];
  const rest = once(() => Rest.of(first, kept));
  const state: SessionState = {
    ...first.session,
    threads: new Map(first.threads.map((one) => [one.id, thread(one, agents, rest)])),
    sandboxes: new Map(first.sandboxes),
    reserved: new Map(first.reserved),
    calls: new Map(),
    seqOf: new Map(),
  };
  later(state, 'calls', () => rest().calls());
  later(state, 'seqOf', () => rest().places());
  return state;
}

/** What stands behind the first page. */
interface Behind {
  entries(thread: ThreadId): Entry[];
  calls(): SessionState['calls'];
  places(): SessionState['seqOf'];
}

/** The pages, each parsed when it is asked for. */
class Rest implements Behind {
  readonly #entries = new Map<ThreadId, Uint8Array[]>();
  readonly #calls: Uint8Array[];
  readonly #places: Uint8Array[];

  /** From the pages; where they are gone, from the records that made them. */
  static of(first: FirstPage, kept: Kept): Behind {
    const pages = kept.rest();
    const sizes = [...first.threads.map(({ entries }) => entries), first.calls, first.places];
    if (pages?.length === sizes.reduce((sum, size) => sum + pagesFor(size), 0)) return new Rest(first, pages);
    return new Refolded(kept);
  }

  private constructor(first: FirstPage, pages: readonly Uint8Array[]) {
    const left = [...pages];
    for (const { id, entries } of first.threads) this.#entries.set(id, left.splice(0, pagesFor(entries)));
    this.#calls = left.splice(0, pagesFor(first.calls));
    this.#places = left;
  }

  entries(thread: ThreadId): Entry[] {
    return items<Entry>(this.#entries.get(thread) ?? []).map(mended);
  }

  calls(): SessionState['calls'] {
    return new Map(items<ToolCall>(this.#calls).map((call) => [call.id, call]));
  }

  places(): SessionState['seqOf'] {
    return new Map(items<[EventId, Seq]>(this.#places));
  }
}

class Refolded implements Behind {
  readonly #state: SessionState;

  constructor(kept: Kept) {
    const folding = new Folding();
    kept.replay((records) => folding.take(records));
    this.#state = folding.state ?? fold([]);
  }

  entries(thread: ThreadId): Entry[] {
    return this.#state.threads.get(thread)?.entries ?? [];
  }

  calls(): SessionState['calls'] {
    return this.#state.calls;
  }

  places(): SessionState['seqOf'] {
    return this.#state.seqOf;
  }
}

/** What a session is, taken up from a kept state and the records behind it, or from all records. */
export class Folding {
  state: SessionState | null = null;

  /** False if it can't be used: then all records are wanted. */
  kept(state: Kept): boolean {
    try {
      this.state = resume(state);
      return true;
    } catch {
      return false;
    }
  }

  /** Throws a TypeError if the log does not begin as a session does. */
  take(records: readonly LogRecord[]): void {
    for (const record of records) this.state = this.state ? apply(this.state, record) : fold([record]);
  }
}

/** The state that `scan` leads to. Throws a TypeError for an empty log. */
export async function folded(scan: (version: number, into: Folding) => Promise<unknown>): Promise<SessionState> {
  const folding = new Folding();
  await scan(FOLD_VERSION, folding);
  return folding.state ?? fold([]);
}

function stored(thread: ThreadState, agents: readonly AgentSnapshot[]): StoredThread {
  const { entries, open, last, agent, ...rest } = thread;
  const known = agents.indexOf(agent);
  const place = (request: ModelRequest | null) => (request ? entries.indexOf(request) : null);
  return { ...rest, agent: known < 0 ? agent : known, open: place(open), last: place(last), entries: entries.length };
}

function thread(of: StoredThread, agents: readonly AgentSnapshot[], rest: () => Behind): ThreadState {
  const agent = typeof of.agent === 'number' ? agents[of.agent] : of.agent;
  if (!agent) throw new TypeError('A thread has no agent.');
  const made: ThreadState = { ...of, agent, entries: [], open: null, last: null };
  // The open and the last request are entries, the very same: the fold goes on writing into them. Their places are good
  // only until the fold moves entries, so they are looked up when the entries come.
  const requests = new Map<number, ModelRequest>();
  const places = [of.open, of.last].filter((place) => place !== null);
  later(made, 'entries', () => {
    const entries = rest().entries(of.id);
    for (const place of places) requests.set(place, requestAt(entries, place));
    return entries;
  });
  const request = (place: number): ModelRequest => requests.get(place) ?? requestAt(made.entries, place);
  const { open, last } = of;
  if (open !== null) later(made, 'open', () => request(open));
  if (last !== null) later(made, 'last', () => request(last));
  return made;
}

function requestAt(entries: readonly Entry[], place: number): ModelRequest {
  const entry = entries[place];
  if (entry?.type !== 'request') throw new TypeError(`Entry ${place} is no request.`);
  return entry;
}

/** JSON knows no holes: blocks of a reply that have not come yet. */
function mended(entry: Entry): Entry {
  if (entry.type !== 'request') return entry;
  const blocks: readonly unknown[] = entry.blocks;
  blocks.forEach((block, index) => {
    if (block === null) delete entry.blocks[index];
  });
  return entry;
}

const pagesFor = (size: number): number => Math.ceil(size / PAGE_ITEMS);

function* inPages(all: readonly unknown[]): Generator<string> {
  for (let from = 0; from < all.length; from += PAGE_ITEMS) yield JSON.stringify(all.slice(from, from + PAGE_ITEMS));
}

const items = <T>(pages: readonly Uint8Array[]): T[] => pages.flatMap((page) => parse<T[]>(page));

const utf8 = new TextDecoder();
const parse = <T>(page: Uint8Array | undefined): T => JSON.parse(utf8.decode(page));

function once<T extends object>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** A property that is made when it is first looked at, and from then on is an ordinary one. */
function later<T extends object, K extends keyof T>(target: T, key: K, make: () => T[K]): void {
  const settle = (value: T[K]): T[K] => {
    Object.defineProperty(target, key, { value, configurable: true, enumerable: true, writable: true });
    return value;
  };
  Object.defineProperty(target, key, {
    configurable: true,
    enumerable: true,
    get: () => settle(make()),
    set: settle,
  });
}
