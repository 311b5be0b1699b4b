// @ts-check
// Kills a session at every point there is, and shows that nothing is lost and nothing happens twice.
//
//   npm run crash                          all points; minutes
//   npm run crash -- 'the disk is full'    only the groups whose name has this in it

import { join } from 'node:path';
import { ensureTinyImage } from './image.mjs';
import { Failed, root, run } from './machine.mjs';
import { describeMissing, prepare } from './setup.mjs';

/** The program has its own limit, and cleans up when it is reached. */
const MOST_MS = 75 * 60_000;

try {
  const prepared = await prepare({ need: ['packages', 'node24', 'engine'] });
  const missing = describeMissing(prepared);
  if (missing.length > 0) throw new Failed(`Nothing can be killed for want of ${missing.join(' ')}`);
  const image = await ensureTinyImage();
  if (!image.ok) throw new Failed(image.why);
  const args = [join(root, 'test/crash/main.ts'), ...process.argv.slice(2)];
  const { code } = await run(prepared.have.node24 ?? process.execPath, args, { timeoutMs: MOST_MS, live: true });
  process.exitCode = code;
} catch (error) {
  console.error(error instanceof Failed ? error.message : error);
  process.exitCode = 1;
}
