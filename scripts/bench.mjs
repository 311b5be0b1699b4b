// @ts-check
// Measures Drover beside a baseline in the same run.
//
//   npm run bench                        a table of everything
//   npm run bench -- ttft                only what begins with `ttft`
//   npm run bench -- --json activation   one JSON object per line: {name, value, unit, baseline, ratio}

import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Failed, lastLines, npm, root, run } from './machine.mjs';
import { describeMissing, prepare } from './setup.mjs';

const { values: flags, positionals: groups } = parseArgs({
  options: { json: { type: 'boolean', default: false } },
  allowPositionals: true,
});
/** With --json only figures go to stdout. @param {string} line */
const say = (line) => (flags.json ? console.error(line) : console.log(line));

try {
  const prepared = await prepare({ need: ['packages', 'node24', 'browser', 'vscode', 'engine', 'image'], log: say });
  for (const line of describeMissing(prepared)) say(`Not measured for want of ${line}`);
  const packaged = await npm(['run', 'package'], { timeoutMs: 180_000 });
  if (packaged.code !== 0) throw new Failed(`Drover could not be packaged:\n${lastLines(packaged.output, 30)}`);
  const args = [join(root, 'test/bench/main.ts'), JSON.stringify({ have: prepared.have, groups, json: flags.json })];
  const { code } = await run(prepared.have.node24 ?? process.execPath, args, { timeoutMs: 1_800_000, live: true });
  process.exitCode = code;
} catch (error) {
  console.error(error instanceof Failed ? error.message : error);
  process.exitCode = 1;
}
