import { execFile } from 'node:child_process';
import { readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { SessionStore } from '../../src/log/log.ts';
import { openStore } from '../../src/log/store.ts';
import type { SessionId } from '../../src/protocol/ids.ts';
import { FOLD_VERSION, folded, pagesOf } from '../../src/session/snapshot.ts';
import type { SessionState } from '../../src/session/state.ts';
import { makeFolder } from '../support/temp.ts';
import { figure } from './figure.ts';
import type { Bench } from './given.ts';
import { writeLogs } from './search-logs.ts';

/** Of ten records each. */
const TURNS = 10_000;
const ROUNDS = 9;

/**
 * Opening a session of 100,000 events, as a list of sessions does it and as a harness does, over the bare `JSON.parse`
 * of every line: read, decoded and parsed, no hash, no fold. The same work by turns; the fastest of each counts, as
 * what else the machine does only ever adds to it.
 */
export const logOpen: Bench = async (_given, say) => {
  const folder = await makeFolder('drover-bench-log-');
  const store = openStore({ root: join(folder, '.drover') });
  try {
    await writeLogs(store, 1, TURNS);
    const [id] = await store.list();
    if (!id) throw new Error('The session was not written.');
    const log = join(folder, '.drover', 'sessions', id, 'log.jsonl');
    const { size } = await stat(log);
    say(`a log of ${TURNS * 10} events, ${mib(size)}`);
    const parse = () => parseLines(log);
    const [parsed, whole] = await fastest(parse, () => open(store, id));
    const memory = await memoryOf(folder, id);
    await keep(store, id);
    const [again, kept] = await fastest(parse, () => open(store, id));
    const [, used] = await fastest(parse, () => use(store, id));
    const keptMemory = await memoryOf(folder, id);
    say(`from the kept state with every page parsed, as a harness needs it: ${used.toFixed(1)} ms`);
    say(
      `the process grew by ${mib(memory.resident)} while it read the log, garbage and all; ${mib(memory.state)} stayed`,
    );
    return [
      figure('log.open', 'ms', whole, parsed, 1.5),
      figure('log.open.kept', 'ms', kept, again, 0.1),
      figure('log.open.memory', 'bytes', memory.peak, memory.state, 2),
      figure('log.open.kept.memory', 'bytes', keptMemory.peak, memory.state, 2),
    ];
  } finally {
    await store.dispose();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
};

/** The fastest of either, in ms, over rounds in which they take turns. */
async function fastest(one: () => Promise<unknown>, other: () => Promise<unknown>): Promise<[number, number]> {
  const best: [number, number] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < ROUNDS; round++) {
    best[0] = Math.min(best[0], await timed(one));
    best[1] = Math.min(best[1], await timed(other));
  }
  return best;
}

const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

async function timed(act: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await act();
  return performance.now() - started;
}

async function parseLines(log: string): Promise<unknown[]> {
  const bytes = await readFile(log);
  const all: unknown[] = [];
  let start = 0;
  for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
    all.push(JSON.parse(bytes.toString('utf8', start, end)));
    start = end + 1;
  }
  return all;
}

const open = (store: SessionStore, id: SessionId): Promise<SessionState> =>
  folded((version, into) => store.scan(id, version, into));

/** Opens it and looks at all of it. */
async function use(store: SessionStore, id: SessionId): Promise<number> {
  const state = await open(store, id);
  let entries = 0;
  for (const thread of state.threads.values()) entries += thread.entries.length;
  return entries + state.calls.size + state.seqOf.size;
}

async function keep(store: SessionStore, id: SessionId): Promise<void> {
  const writer = await store.acquire(id, 'a benchmark');
  const state = await folded((version, into) => writer.scan(version, into));
  if (!(await writer.keep(state.head, FOLD_VERSION, pagesOf(state)))) throw new Error('The state was not kept.');
  await writer.release();
}

interface Memory {
  state: number;
  peak: number;
  resident: number;
}

/** In a process of its own, in bytes: the folded state, what was alive at most, and by how much the process had grown. */
async function memoryOf(folder: string, id: SessionId): Promise<Memory> {
  const program = join(import.meta.dirname, 'log-open-memory.ts');
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', program, join(folder, '.drover'), id]);
  return JSON.parse(stdout);
}
