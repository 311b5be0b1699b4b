// @ts-check
// The headless half of `npm run demo -- --check`: a rehearsal through the real interface, checked by running the
// sample's test in a container of its own image. Run by Node 24, which reads the tests' TypeScript as it is.
//
//   node demo-check.mjs IMAGE      IMAGE: where the test is run afterwards; '' for this machine itself

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Desk, resultsFolder } from '../test/support/desk.ts';
import { eventsOf } from '../test/support/events.ts';
import { allowUntil } from '../test/support/play.ts';
import { childEnv, lastLines, run } from './machine.mjs';

const image = process.argv[2] ?? '';
await using desk = await Desk.open();
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => desk[Symbol.asyncDispose]().finally(() => process.exit(130)));
}
const before = await runTests();
if (before.code === 0) throw new Error('The sample’s test passes before anything was done: there is nothing to show.');

console.log('Running “Drover: Rehearse” and allowing what it asks.');
await desk.workbench.command('Drover: Rehearse');
await desk.record('a session', 60_000, ({ event }) => event.type === 'drover.session_created');
await allowUntil(desk, null, 180_000);
await screenshots();

const after = await runTests();
const records = await desk.records();
const asked = eventsOf(records, 'user.tool_confirmation').length > 0;
const sandboxed = records.some(({ event }) => event.type === 'drover.sandbox_ready');
const verdict = [
  ['the edit was asked for and allowed in the panel', asked],
  ['the tools ran in a sandbox', sandboxed],
  [
    `the sample’s test failed before and passes now, run ${image ? 'in a container of its image' : 'on this machine'}`,
    after.code === 0,
  ],
];
for (const [what, yes] of verdict) console.log(`  ${yes ? '✓' : '✗'} ${what}`);
if (after.code !== 0) console.log(lastLines(after.output, 20));
const good = verdict.every(([, yes]) => yes);
console.log(
  good ? 'The demo works: the rehearsal fixed the sample. See test-results/demo.png.' : 'The demo does not work.',
);
process.exitCode = good ? 0 : 1;

/** The sample's own test, in a container of the sample's image. */
function runTests() {
  const command = ['node', '--test'];
  if (image === '') return run('node', ['--test'], { cwd: desk.folder, env: childEnv(), timeoutMs: 60_000 });
  const mount = ['-v', `${desk.folder}:/workspace`, '-w', '/workspace'];
  return run('docker', ['run', '--rm', '--init', '--network', 'none', ...mount, image, ...command], {
    timeoutMs: 60_000,
  });
}

/** The panel as it stands, in a dark and a light theme. */
async function screenshots() {
  await mkdir(resultsFolder, { recursive: true });
  const { page } = desk.workbench;
  for (const [scheme, name] of /** @type {const} */ ([
    ['light', 'demo-light.png'],
    ['dark', 'demo.png'],
  ])) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.locator(`.monaco-workbench.vs${scheme === 'dark' ? '-dark' : ''}`).waitFor({ timeout: 10_000 });
    await page.screenshot({ path: join(resultsFolder, name), animations: 'disabled' });
  }
}
