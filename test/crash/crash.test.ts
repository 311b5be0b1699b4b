import { afterAll, beforeAll, expect, it } from 'vitest';
import { ensureTinyImage } from '../../scripts/image.mjs';
import { describeWith, engineAvailable } from '../support/engine.ts';
import { type Counts, GROUPS, lacking, sampleOf } from './points.ts';
import { CrashRun } from './run.ts';

const engine = await engineAvailable();

/** ms for the points of all groups, which are played side by side. */
const ALL_MS = 300_000;

/** A sample of the points; `npm run crash` plays all of them. */
describeWith(engine, 'a session loses nothing, and does nothing twice, when', () => {
  let run: CrashRun;
  let counts: Counts;

  beforeAll(async () => {
    const made = await ensureTinyImage({ log: () => {} });
    if (!made.ok) throw new Error(made.why);
    run = await CrashRun.open();
    counts = await run.count();
  });
  afterAll(async () => {
    await run?.[Symbol.asyncDispose]();
  });

  for (const group of GROUPS) {
    it.skipIf(lacking(group) !== undefined).concurrent(group.name, { timeout: ALL_MS }, async () => {
      const report = await run.play(group, sampleOf(group, counts), Date.now() + ALL_MS / 2);
      expect(report).toMatchObject({ survived: report.points, duplicated: 0, lost: 0, failures: [], missed: [] });
      expect(report.points).toBeGreaterThan(0);
    });
  }
});
