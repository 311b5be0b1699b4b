import { openStore } from '../../src/log/store.ts';
import { SessionId } from '../../src/protocol/ids.ts';
import { folded } from '../../src/session/snapshot.ts';

/*
 * Opens one session and prints, in bytes, what its state takes, what was alive at most on the way to it (after a
 * collection each time, so that what nobody needs any more does not count), and by how much the process had grown.
 * Run by log-open.ts with --expose-gc.
 */

/** Collecting takes a while, so not after every piece. */
const EVERY = 8;

const [root = '', id = ''] = process.argv.slice(2);
const collect = () => {
  for (let n = 0; n < 3; n++) globalThis.gc?.();
};
const live = () => {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

const store = openStore({ root });
collect();
const [before, residentBefore] = [live(), process.memoryUsage().rss];
let peak = 0;
let pieces = 0;
const state = await folded((version, into) =>
  store.scan(SessionId.parse(id), version, {
    kept: (kept) => into.kept(kept),
    take(records) {
      into.take(records);
      if (pieces++ % EVERY !== 0) return;
      globalThis.gc?.();
      peak = Math.max(peak, live() - before);
    },
  }),
);
const resident = process.resourceUsage().maxRSS * 1024 - residentBefore;
collect();
// Looked at after the last collection, so that it is still there.
const size = live() - before + (state.head.seq < 0 ? 1 : 0);
console.log(JSON.stringify({ state: size, peak: Math.max(peak, size), resident }));
await store.dispose();
