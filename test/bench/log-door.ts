import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionWriter } from '../../src/log/log.ts';
import { openStore } from '../../src/log/store.ts';
import { text } from '../../src/protocol/content.ts';
import { draft } from '../../src/protocol/record.ts';
import { Door } from '../../src/vault/door.ts';
import { Redactor } from '../../src/vault/redactor.ts';
import { makeFolder } from '../support/temp.ts';
import { figure, quantile } from './figure.ts';
import type { Bench } from './given.ts';
import { writeLogs } from './search-logs.ts';

const ROUNDS = 60;
const RECORDS = 100;
const CREDENTIALS = 40;
/** What an agent typically says, and what a command typically prints: records of 600 bytes and of 20 KB. */
const said = () => draft('agent.message', { content: [text('word '.repeat(60))] });
const printed = () => draft('agent.message', { content: [text('ok 12 - adds up to 4711 (0.9 ms)\n'.repeat(600))] });

/**
 * Appending with a door in front of the log, over appending without one: where no secret is known, and where two full
 * vaults are. Nothing is synced: that would cost either the same. ms per record.
 */
export const appendDoor: Bench = async () => {
  const folder = await makeFolder('drover-bench-door-');
  const known = new Redactor();
  for (let n = 0; n < CREDENTIALS; n += 1) {
    known.know(`k${n}`, { credential_id: null, vault_id: null, name: `K${n}` }, [
      randomBytes(30).toString('base64url'),
    ]);
  }
  const sides = [undefined, new Redactor(), known];
  const stores = sides.map((redactor, n) =>
    openStore({ root: join(folder, String(n)), ...(redactor ? { door: doorOf(redactor) } : {}) }),
  );
  try {
    const writers: SessionWriter[] = [];
    for (const store of stores) {
      await writeLogs(store, 1, 1);
      const [id] = await store.list();
      if (id) writers.push(await store.acquire(id, 'a benchmark'));
    }
    const small = await byTurns(writers, said);
    const large = await byTurns(writers, printed);
    return [
      figure('log.append_door.empty', 'ms', small[1] ?? 0, small[0] ?? 0, 1.1),
      figure('log.append_door.vaults', 'ms', small[2] ?? 0, small[0] ?? 0, 1.5),
      figure('log.append_door.vaults_20kb', 'ms', large[2] ?? 0, large[0] ?? 0, 2),
    ];
  } finally {
    for (const store of stores) await store.dispose();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
};

const doorOf = (redactor: Redactor): Door =>
  new Door(
    redactor,
    async () => undefined,
    () => undefined,
  );

/** The median time of one append of each writer, in turns, so that all find the machine in the same mood. */
async function byTurns(writers: readonly SessionWriter[], make: typeof said): Promise<number[]> {
  const times: number[][] = writers.map(() => []);
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [n, writer] of writers.entries()) {
      const started = performance.now();
      for (let record = 0; record < RECORDS; record += 1) await writer.append([make()], { sync: false });
      // The first round only warms up.
      if (round > 0) times[n]?.push((performance.now() - started) / RECORDS);
    }
  }
  return times.map((one) => quantile(one, 0.25));
}
