import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Place } from './rig.ts';

const KILLS = 5;
const VICTIM = fileURLToPath(new URL('./programs/victim.ts', import.meta.url));

/** Lets a process take checkpoints for so long, in ms, and kills it, alone or with its git. What it said are the commits in its log. */
async function killedAfter(place: Place, ms: number, alone: boolean): Promise<string[]> {
  const args = [VICTIM, place.folder, join(place.folder, '..', 'private'), place.session];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const ended = once(child, 'close');
  await once(child.stdout, 'data');
  await sleep(ms);
  if (child.pid) process.kill(alone ? child.pid : -child.pid, 'SIGKILL');
  await ended;
  return said.split('\n').slice(0, -1);
}

describe('a checkpoint that a kill cuts short', () => {
  it('is in nobody’s way: whatever had been said is there, whole, and the next one takes in what it missed', async () => {
    const place = await Place.open();
    for (let n = 0; n < 200; n += 1) await place.write(`f${n}.txt`, `${n}\n`.repeat(50));
    for (let kill = 0; kill < KILLS; kill += 1) {
      const said = await killedAfter(place, 40 + kill * 37, kill % 2 === 1);
      expect(said.filter((line) => !/^[0-9a-f]{40}$/.test(line))).toEqual([]);
      await place.store.changes(said);
      place.restart();
      await place.call(() => place.write('mine.txt', `${kill}\n`));
      expect(place.problems).toEqual([]);
    }
    const objects = place.path('.drover/checkpoints/objects');
    const gitDir = join(place.folder, '..', 'private', (await readdir(join(place.folder, '..', 'private')))[0] ?? '');
    const env = { PATH: process.env.PATH, GIT_DIR: gitDir, GIT_OBJECT_DIRECTORY: objects };
    expect(execFileSync('git', ['fsck', '--strict', '--no-dangling'], { env, stdio: 'pipe' }).toString()).toBe('');
    const restore = place.restore(place.checkpoints[0]?.commit ?? '');
    await restore.apply(await restore.plan());
    expect((await readdir(place.path('.drover/checkpoints/index'))).filter((name) => name.endsWith('.lock'))).toEqual(
      [],
    );
  }, 60_000);
});
