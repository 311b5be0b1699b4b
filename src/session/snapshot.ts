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
export const FOLD_VERSION = 1;

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

/** The state whose pages these are. Throws if they are not all there. */
export function fromPages(pages: readonly Uint8Array[]): SessionState {
  const first: FirstPage = parse(pages[0]);
  const sizes = [...first.threads.map(({ entries }) => entries), first.calls, first.places];
  if (pages.length !== sizes.reduce((sum, size) => sum + pagesFor(size), 1)) throw new TypeError('A page is missing.');
  const rest = pages.slice(1);
  const take = (size: number) => rest.splice(0, pagesFor(size));
  const agents = [first.session.agent, ...first.session.roster];
  const threads = first.threads.map((one): [ThreadId, ThreadState] => [one.id, thread(one, take(one.entries), agents)]);
  const [calls, places] = [take(first.calls), take(first.places)];
  const state: SessionState = {
    ...first.session,
    threads: new Map(threads),
    sandboxes: new Map(first.sandboxes),
    reserved: new Map(first.reserved),
    calls: new Map(),
    seqOf: new Map(),
  };
  later(state, 'calls', () => new Map(items<ToolCall>(calls).map((call) => [call.id, call])));
  later(state, 'seqOf', () => new Map(items<[EventId, Seq]>(places)));
  return state;
}

/** What a session is, taken up from a kept state and the records behind it, or from all records. */
export class Folding {
  state: SessionState | null = null;

  /** False if these pages can't be used: then all records are wanted. */
  kept(pages: readonly Uint8Array[]): boolean {
    try {
      this.state = fromPages(pages);
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

function thread(of: StoredThread, pages: readonly Uint8Array[], agents: readonly AgentSnapshot[]): ThreadState {
  const agent = typeof of.agent === 'number' ? agents[of.agent] : of.agent;
  if (!agent) throw new TypeError('A thread has no agent.');
  const made: ThreadState = { ...of, agent, entries: [], open: null, last: null };
  // The open and the last request are entries, the very same: the fold goes on writing into them.
  const request = (place: number) => requestAt(made.entries, place);
  const { open, last } = of;
  later(made, 'entries', () => items<Entry>(pages).map(mended));
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
