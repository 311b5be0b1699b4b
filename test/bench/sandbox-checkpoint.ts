import { execFile } from 'node:child_process';
import { appendFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextRound } from 'node:timers/promises';
import { promisify } from 'node:util';
import { mint } from '../../src/protocol/ids.ts';
import type { Draft } from '../../src/protocol/record.ts';
import { CheckpointStore } from '../../src/sandbox/checkpoints/checkpoints.ts';
import { makeFolder } from '../support/temp.ts';
import { figure, quantile } from './figure.ts';
import type { Bench } from './given.ts';

const exec = promisify(execFile);

const FOLDERS = 400;
const FILES_EACH = 50;
const CHANGED = 10;
const ROUNDS = 15;

/**
 * A checkpoint after a call that changed 10 of 20,000 files, from the end of the call to its event in the log, beside
 * `git add -A && git write-tree` on a plain repository of the same files with the same changes; and how long the
 * caller, who has the call's result, was kept by it, over how long it took.
 */
export const sandboxCheckpoint: Bench = async (_given, say) => {
  const home = await makeFolder('drover-bench-');
  try {
    const [ours, plain] = [join(home, 'ours'), join(home, 'plain')];
    for (const folder of [ours, plain]) await fill(folder);
    await exec('git', ['init', '-q'], { cwd: plain });
    await plainCheckpoint(plain);
    let taken = Promise.withResolvers<void>();
    const keeper = keeperOf(ours, home, () => taken.resolve());
    const start = await timed(async () => {
      keeper.warm();
      await taken.promise;
    });
    say(`  The first checkpoint, of all files: ${start.toFixed(0)} ms.`);
    const times: { ours: number; held: number; before: number; plain: number }[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const call = mint.event();
      const before = await timed(() => keeper.before(call));
      for (const folder of [ours, plain]) await change(folder, round);
      taken = Promise.withResolvers();
      const began = performance.now();
      keeper.after(call);
      await nextRound();
      const held = performance.now() - began;
      await taken.promise;
      const our = performance.now() - began;
      const their = await timed(() => plainCheckpoint(plain));
      if (round > 0) times.push({ ours: our, held, before, plain: their });
    }
    await keeper.close();
    const middle = (of: keyof (typeof times)[number]) =>
      quantile(
        times.map((one) => one[of]),
        0.5,
      );
    say(`  Before a call, with nothing to take in: ${middle('before').toFixed(0)} ms.`);
    return [
      figure('sandbox.checkpoint', 'ms', middle('ours'), middle('plain'), 1.2),
      figure('sandbox.checkpoint.on_path', 'ms', middle('held'), middle('ours'), 0.05),
    ];
  } finally {
    await rm(home, { recursive: true, force: true });
  }
};

/** `told` is called for each event. */
function keeperOf(folder: string, home: string, told: (drafts: Draft[]) => void) {
  const store = new CheckpointStore({ root: join(folder, '.drover'), privateFolder: join(home, 'private') });
  return store.follow({
    session: mint.session(),
    environment: {
      id: mint.environment(),
      type: 'environment',
      name: 'Here',
      config: { type: 'os' },
      created_at: '2026-01-01T00:00:00.000Z',
      updated_at: '2026-01-01T00:00:00.000Z',
      archived_at: null,
    },
    workspaceFolder: folder,
    record: async (drafts) => told(drafts),
    log: () => ({ head: 0, forkedAt: -1, checkpoint: null, problem: null, startedAfter: () => [] }),
  });
}

async function fill(folder: string): Promise<void> {
  for (let n = 0; n < FOLDERS; n++) {
    const place = join(folder, `area${n % 20}`, `part${Math.floor(n / 20)}`);
    await mkdir(place, { recursive: true });
    await Promise.all(
      Array.from({ length: FILES_EACH }, (_, at) =>
        writeFile(join(place, `file${at}.ts`), `export const value${at} = '${n}';\n`.repeat(20)),
      ),
    );
  }
}

async function change(folder: string, round: number): Promise<void> {
  for (let n = 0; n < CHANGED; n++) {
    await appendFile(join(folder, `area${n}`, `part${n}`, `file${n}.ts`), `// round ${round}\n`);
  }
}

async function plainCheckpoint(cwd: string): Promise<void> {
  await exec('git', ['add', '-A'], { cwd });
  await exec('git', ['write-tree'], { cwd });
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await act();
  return performance.now() - began;
}
