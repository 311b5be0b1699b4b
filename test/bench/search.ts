import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { SearchIndex } from '../../src/log/search/search.ts';
import { openStore } from '../../src/log/store.ts';
import { text } from '../../src/protocol/content.ts';
import { mint } from '../../src/protocol/ids.ts';
import { draft } from '../../src/protocol/record.ts';
import { makeFolder } from '../support/temp.ts';
import { figure, quantile } from './figure.ts';
import type { Bench } from './given.ts';
import { writeLogs } from './search-logs.ts';

const SESSIONS = 100;
/** Of ten records each. */
const TURNS = 100;
/** As many as the list in the editor shows. */
const HITS = 100;
const ROUNDS = 15;
const BUILDS = 3;
const LARGE = 5;
/** What building may block the extension host for at a time, ms. */
const MOST_BLOCKED = 50;

/** Rare words and common ones, parts of words, several words, and one that is nowhere. */
const TYPED = ['createWebviewPanel', 'thenable', 'export', 'viewpan', 'file store', 'playwright', 'not anywhere'];

/**
 * Searching all sessions, from what is typed to the previews of the newest hits, with the look at what changed on the
 * disk before it, beside ripgrep counting the same words in the same logs; and the longest that building the index
 * kept the event loop from everything else, by the clock: of many sessions, and of one with large outputs.
 */
export const search: Bench = async (_given, say) => {
  const home = await makeFolder('drover-bench-');
  try {
    const root = join(home, '.drover');
    const store = openStore({ root });
    await writeLogs(store, SESSIONS, TURNS);
    await store.dispose();
    const built = await build(root, say);
    const large = await build(await largeOutputs(join(home, 'large')), say);
    const longest = Math.max(built.blocked, large.blocked);
    const blocked = figure('log.search.build_blocks', 'ms', longest, MOST_BLOCKED, 1);
    if (!(await hasRipgrep())) {
      say('  Not measured for want of ripgrep: log.search. Install it (apt-get install ripgrep).');
      return [blocked];
    }
    const ours: number[] = [];
    const theirs: number[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      for (const typed of TYPED) {
        const our = await timed(async () => {
          await built.index.refresh();
          await built.index.search(typed, { limit: HITS });
        });
        const their = await timed(() => ripgrep(typed, join(root, 'sessions')));
        // The first round fills the caches of both.
        if (round === 0) continue;
        ours.push(our);
        theirs.push(their);
      }
    }
    say(`  p95: ${quantile(ours, 0.95).toFixed(1)} ms, ripgrep ${quantile(theirs, 0.95).toFixed(1)} ms`);
    return [figure('log.search', 'ms', quantile(ours, 0.5), quantile(theirs, 0.5), 0.3), blocked];
  } finally {
    await rm(home, { recursive: true, force: true });
  }
};

/** A session with outputs of 4 MiB, which are in blobs, and messages of nearly 1 MiB, which are not. */
async function largeOutputs(root: string): Promise<string> {
  const store = openStore({ root });
  await writeLogs(store, 1, 1);
  const [id] = await store.list();
  if (!id) throw new Error('The session was not written.');
  const writer = await store.acquire(id, 'a benchmark');
  const words = Array.from({ length: 500_000 }, (_, n) => `word${n}`).join(' ');
  for (let n = 0; n < LARGE; n++) {
    const output = { tool_use_id: mint.event(), content: [text(words.slice(0, 4 * 1024 * 1024))], is_error: false };
    await writer.append([draft('agent.tool_result', output)]);
    await writer.append([draft('agent.message', { content: [text(words.slice(0, 1_000_000))] })]);
  }
  await store.dispose();
  return root;
}

/** Builds the index from nothing, a few times, and says how long it kept the event loop at most. */
async function build(root: string, say: (text: string) => void): Promise<{ index: SearchIndex; blocked: number }> {
  let index = new SearchIndex(root);
  const rounds: Round[] = [];
  const times: number[] = [];
  for (let n = 0; n < BUILDS; n++) {
    await rm(join(root, 'cache'), { recursive: true, force: true });
    index = new SearchIndex(root);
    const watch = watchRounds();
    times.push(await timed(() => index.refresh()));
    rounds.push(await watch.longest());
  }
  const cached = await timed(() => new SearchIndex(root).refresh());
  const ms = (samples: number[]) => samples.map((sample) => sample.toFixed(0)).join(' ');
  say(`  building takes ${ms(times)} ms, from the cache ${cached.toFixed(0)} ms`);
  say(`  longest rounds of the event loop: ${ms(rounds.map(({ wall }) => wall))} ms by the clock,`);
  say(`  the longest at work ${ms(rounds.map(({ cpu }) => cpu))} ms: more by the clock is waiting for a processor`);
  return { index, blocked: Math.max(...rounds.map(({ wall }) => wall)) };
}

/** One round of the event loop, ms: by the clock, and as the thread's own time on a processor. */
interface Round {
  wall: number;
  cpu: number;
}

/** Measures every round of the event loop, the garbage collector's share included. */
function watchRounds(): { longest(): Promise<Round> } {
  const longest: Round = { wall: 0, cpu: 0 };
  let watching = true;
  const work = async () => {
    while (watching) {
      const [wall, cpu] = [performance.now(), process.threadCpuUsage()];
      await setImmediate();
      const { user, system } = process.threadCpuUsage(cpu);
      longest.wall = Math.max(longest.wall, performance.now() - wall);
      longest.cpu = Math.max(longest.cpu, (user + system) / 1000);
    }
    return longest;
  };
  const done = work();
  return {
    longest: () => {
      watching = false;
      return done;
    },
  };
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await act();
  return performance.now() - started;
}

const hasRipgrep = (): Promise<boolean> =>
  new Promise((resolve) => execFile('rg', ['--version'], (error) => resolve(error === null)));

/** Counts the lines with a text, in any case, in every log: it prints next to nothing, so it is scanning that is timed. */
const ripgrep = (text: string, folder: string): Promise<void> =>
  new Promise((resolve, reject) => {
    execFile('rg', ['--fixed-strings', '--ignore-case', '--count', text, folder], (error) => {
      // 1: nothing found.
      if (error && error.code !== 1) reject(error);
      else resolve();
    });
  });
