// @ts-check
// Lets a hostile script try everything there is in a real sandbox, and shows that no secret gets in and nothing gets out
// past the proxy, while a useful session works. Whatever it reaches for is a host this program made itself.
//
//   npm run redteam                     all attempts; about two minutes
//   npm run redteam -- 'placeholder'    only those whose name has this in it; VERBOSE=1 shows what they printed

import { join } from 'node:path';
import { Failed, root, run } from './machine.mjs';
import { describeMissing, prepare } from './setup.mjs';

const MOST_MS = 15 * 60_000;

try {
  if (process.platform !== 'linux')
    throw new Failed('The image of the attempts is made from programs of a Linux machine.');
  const prepared = await prepare({ need: ['packages', 'node24', 'engine'] });
  const missing = describeMissing(prepared);
  if (missing.length > 0) throw new Failed(`Nothing can be tried for want of ${missing.join(' ')}`);
  const args = [join(root, 'test/security/main.ts'), ...process.argv.slice(2)];
  const { code } = await run(prepared.have.node24 ?? process.execPath, args, { timeoutMs: MOST_MS, live: true });
  process.exitCode = code;
} catch (error) {
  console.error(error instanceof Failed ? error.message : error);
  process.exitCode = 1;
}
