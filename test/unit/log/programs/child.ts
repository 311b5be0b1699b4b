/*
 * One process of a test: does what its first argument says and prints a line of JSON for each thing it has done,
 * so that the test knows when to strike. Usage: node child.ts WHAT ROOT SESSION …
 */
import { openCatalog } from '../../../../src/log/catalog.ts';
import { LeaseHeld, LeaseLost } from '../../../../src/log/log.ts';
import { openStore } from '../../../../src/log/store.ts';
import { text } from '../../../../src/protocol/content.ts';
import { SessionId } from '../../../../src/protocol/ids.ts';
import { draft } from '../../../../src/protocol/record.ts';

const [what, root = '', session = 'none', ...rest] = process.argv.slice(2);
const id = SessionId.parse(session);
const store = openStore({ root });

const tell = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);
const said = (words: string) => draft('agent.message', { content: [text(words)] });

/** Waits for a line on standard input: the test lets all of its processes go at the same moment. */
const go = () =>
  new Promise<void>((resolve) => {
    process.stdin.once('data', () => resolve());
  });

/** Takes the session, and keeps it or says who has it. */
async function race(): Promise<void> {
  tell({ ready: true });
  await go();
  try {
    const writer = await store.acquire(id, 'race');
    await writer.append([said(`winner ${process.pid}`)]);
    tell({ won: writer.fence });
  } catch (error) {
    if (!(error instanceof LeaseHeld)) throw error;
    tell({ lost: error.holder.pid });
  }
  await go();
  process.exit(0);
}

/** Appends as fast as it can, in batches of a few, until it is killed or the session is taken over. */
async function append(): Promise<void> {
  const writer = await store.acquire(id, 'append');
  writer.onLost(() => tell({ told: 'lost' }));
  try {
    for (let n = 0; n < 1_000_000; n++) {
      const batch = await writer.append([said(`${n} a`), said(`${n} b ${'x'.repeat(n % 700)}`)]);
      tell({ acknowledged: batch.map((record) => record.hash) });
    }
  } catch (error) {
    if (!(error instanceof LeaseLost)) throw error;
    tell({ stopped: true });
    process.exit(0);
  }
}

/** Appends `count` records, then gives the session back. */
async function some(count: number): Promise<void> {
  const writer = await store.acquire(id, 'some');
  tell({ ready: true });
  await go();
  for (let n = 0; n < count; n++) await writer.append([said(`${process.pid} ${n}`)]);
  await store.dispose();
  tell({ done: true });
  process.exit(0);
}

/** Takes the session and then does nothing, until it is killed. */
async function hold(): Promise<void> {
  const writer = await store.acquire(id, 'hold');
  tell({ holds: writer.fence });
  setInterval(() => undefined, 1000);
}

/** Makes `count` agents in the catalog. */
async function agents(count: number): Promise<void> {
  const catalog = await openCatalog(root);
  tell({ ready: true });
  await go();
  for (let n = 0; n < count; n++) await catalog.createAgent({ name: `${process.pid} ${n}`, model: 'm' });
  tell({ done: true });
  process.exit(0);
}

const count = Number(rest[0] ?? 0);
const acts: Record<string, () => Promise<void>> = {
  race,
  append,
  hold,
  some: () => some(count),
  agents: () => agents(count),
};
await acts[what ?? '']?.();
