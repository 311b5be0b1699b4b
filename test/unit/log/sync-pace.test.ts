import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { SyncPace } from '../../../src/log/sync-pace.ts';

/** Syncs of so many ms each, done where the pace says; how many were done here. */
async function syncs(pace: SyncPace, count: number, ms: number): Promise<number> {
  let here = 0;
  for (let n = 0; n < count; n += 1) {
    if (pace.isHere) here += 1;
    pace.took(ms, pace.isHere);
    await nextTurn();
  }
  return here;
}

describe('a sync', () => {
  it('is left to another thread until the disk has been quick for a while', async () => {
    const pace = new SyncPace();
    expect(await syncs(pace, 16, 0.1)).toBe(0);
    expect(await syncs(pace, 100, 0.1)).toBe(100);
  });

  it('is never done here where the disk takes milliseconds', async () => {
    expect(await syncs(new SyncPace(), 1000, 1.5)).toBe(0);
  });

  it('that was slow is followed by as many in another thread as it took milliseconds, times 16', async () => {
    const pace = new SyncPace();
    await syncs(pace, 16, 0.1);
    pace.took(4.5, pace.isHere);
    expect(await syncs(pace, 80, 0.1)).toBe(0);
    expect(await syncs(pace, 10, 0.1)).toBe(10);
  });

  it('is trusted again after a bad hour of the disk', async () => {
    const pace = new SyncPace();
    for (let n = 0; n < 1000; n += 1) pace.took(n % 2 === 0 ? 50 : 0.1, false);
    expect(await syncs(pace, 128, 0.1)).toBeLessThan(2);
    expect(await syncs(pace, 10, 0.1)).toBe(10);
  });

  it('gives the event loop its turn after 4 ms, and may be done here again after that', async () => {
    const pace = new SyncPace();
    await syncs(pace, 16, 0.1);
    let here = 0;
    for (let n = 0; n < 30; n += 1) {
      if (pace.isHere) here += 1;
      pace.took(0.5, pace.isHere);
    }
    expect(here).toBe(8);
    await nextTurn();
    expect(pace.isHere).toBe(true);
  });
});
