/*
 * Lets a hostile script try everything in a real sandbox, and says what came of it.
 * Usage: node main.ts [part of an attempt's name]…
 */
import { ATTEMPTS } from './attempts.ts';
import { openField } from './field.ts';
import { attemptIn } from './redteam.ts';
import { USEFUL } from './useful.ts';

// Until all is shown to be well it is not: whatever ends this program before its last line has failed it.
process.exitCode = 1;
const wanted = process.argv.slice(2);
const verbose = process.env.VERBOSE === '1';
const field = await openField();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => void field.close().finally(() => process.exit(130)));
}

let blocked = 0;
let leaks = 0;
let works = 0;
const chosen = ATTEMPTS.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
try {
  for (const attempt of chosen) {
    const verdict = await attemptIn(field, attempt);
    if (verdict.leaks.length === 0) blocked++;
    leaks += verdict.leaks.length;
    console.log(`  ${verdict.leaks.length === 0 ? '✓' : '✗'} ${attempt.name}`);
    for (const leak of verdict.leaks) console.log(`      ${leak}`);
    if (verbose || verdict.leaks.length > 0) console.log(verdict.output.slice(0, 1500).replaceAll(/^/gm, '      | '));
  }
  for (const { name, script, expect } of USEFUL) {
    const { output } = await field.run(script);
    const ok = expect.test(output);
    if (ok) works++;
    console.log(`  ${ok ? '✓' : '✗'} works meanwhile: ${name}`);
    if (verbose || !ok) console.log(output.slice(0, 1500).replaceAll(/^/gm, '      | '));
  }
  await field.settled();
  for (const found of await field.search()) {
    leaks++;
    console.log(`  ✗ found afterwards: ${found}`);
  }
} finally {
  await field.close();
}
console.log(`\nuseful work ${works} of ${USEFUL.length}`);
console.log(`attempts ${chosen.length}, blocked ${blocked}, leaks ${leaks}`);
process.exit(leaks === 0 && blocked === chosen.length && works === USEFUL.length ? 0 : 1);
