// @ts-check
// Gets the machine ready, runs every kind of test, and closes with one line over all of them.
//
//   node scripts/test.mjs [check|unit|sandbox|crash|security|host|e2e]… [-- part of a file name…]
//
// A real part that can't be had is named and the tests that need it count as skipped; with CI=true they count as failed.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check } from './check.mjs';
import { runHostTests } from './host-tests.mjs';
import { childEnv, Failed, lastLines, npm, readJson, root, run } from './machine.mjs';
import { prepare } from './setup.mjs';

/**
 * @typedef {{ passed: number, failed: number, skipped: number }} Counts
 * @typedef {{ name: string, minutes: number, needs: import('./setup.mjs').Part[], wants?: import('./setup.mjs').Part[], packaged?: boolean }} Suite
 *   `packaged`: it runs the built extension; `wants`: tests that need it skip themselves without it
 */

/** @type {Suite[]} */
const suites = [
  { name: 'check', minutes: 5, needs: [] },
  { name: 'unit', minutes: 8, needs: [], wants: ['browser'] },
  {
    name: 'sandbox',
    minutes: 17,
    needs: ['engine', 'image', 'osSandbox'],
    wants: ['busybox', 'compose', 'ssh', 'podman', 'debian'],
  },
  { name: 'crash', minutes: 8, needs: ['engine'] },
  { name: 'security', minutes: 8, needs: ['engine'] },
  { name: 'host', minutes: 8, needs: ['browser', 'vscode'], packaged: true },
  { name: 'e2e', minutes: 20, needs: ['browser', 'vscode', 'engine', 'image'], packaged: true },
];

const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const argv = process.argv.slice(2);
const dashes = argv.includes('--') ? argv.indexOf('--') : argv.length;
const named = argv.slice(0, dashes).filter((word) => suites.some(({ name }) => name === word));
const only = argv.filter((word) => word !== '--' && !named.includes(word));
const chosen = named.length > 0 ? suites.filter(({ name }) => named.includes(name)) : suites;
const ci = process.env.CI === 'true' || process.env.CI === '1';

/** @type {Counts} */
const total = { passed: 0, failed: 0, skipped: 0 };
try {
  const prepared = await prepare({
    need: ['packages', 'node24', ...chosen.flatMap(({ needs, wants = [] }) => [...needs, ...wants])],
  });
  const node = prepared.have.node24;
  if (!node) throw new Failed(prepared.missing.node24);
  let packaging = '';
  for (const suite of chosen) {
    if (suite.packaged && packaging === '') packaging = (await packageExtension()) || 'done';
    const started = Date.now();
    console.log(`\n── ${suite.name} ${'─'.repeat(72 - suite.name.length)}`);
    const lacking = suite.needs.filter((part) => part in prepared.missing);
    for (const part of lacking) console.log(`  ${ci ? '✗' : '-'} no ${part}: ${prepared.missing[part]}`);
    if (lacking.length > 0) add(await leftOut(suite, node));
    else if (suite.packaged && packaging !== 'done') {
      console.log(`  ✗ the extension could not be packaged:\n${packaging}`);
      add({ passed: 0, failed: 1, skipped: 0 });
    } else add(await runSuite(suite, node, prepared.have));
    console.log(`  ${suite.name} took ${Math.round((Date.now() - started) / 1000)} s`);
  }
} catch (error) {
  console.error(error instanceof Failed ? error.message : error);
  total.failed++;
}
if (ci && total.skipped > 0) {
  console.log(`\nOf CI's tests none may be skipped; ${total.skipped} were.`);
  total.failed += total.skipped;
  total.skipped = 0;
}
console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
// Not all that a suite started need have let go of our output.
process.exit(total.failed > 0 ? 1 : 0);

/** @param {Counts} counts */
function add(counts) {
  total.passed += counts.passed;
  total.failed += counts.failed;
  total.skipped += counts.skipped;
}

/** @param {Suite} suite @param {string} node @param {Partial<Record<import('./setup.mjs').Part, string>>} have @returns {Promise<Counts>} */
async function runSuite(suite, node, have) {
  const timeoutMs = suite.minutes * 60_000;
  if (suite.name === 'check') {
    const { passed, failed } = await check();
    return { passed: passed.length, failed: failed.length, skipped: 0 };
  }
  if (suite.name === 'host') {
    return await runHostTests({ server: have.vscode ?? '', browser: have.browser ?? '', node, timeoutMs, only });
  }
  return await runVitest(suite.name, node, timeoutMs);
}

/** @param {string} project @param {string} node @param {number} timeoutMs @returns {Promise<Counts>} */
async function runVitest(project, node, timeoutMs) {
  const folder = await mkdtemp(join(tmpdir(), 'drover-report-'));
  const report = join(folder, 'report.json');
  try {
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const args = [vitest, 'run', '--project', project, '--passWithNoTests', ...reporters, ...only];
    const env = childEnv(process.stdout.isTTY ? { FORCE_COLOR: '1' } : { NO_COLOR: '1' });
    const { code } = await run(node, args, { timeoutMs, live: true, env });
    const counts = { passed: 0, failed: 0, skipped: 0 };
    for (const file of await resultsIn(report)) {
      for (const { status } of file.assertionResults) {
        counts[status === 'passed' || status === 'failed' ? status : 'skipped']++;
      }
      // A file that could not even be loaded has no tests to count.
      if (file.status === 'failed' && file.assertionResults.length === 0) counts.failed++;
    }
    if (code !== 0 && counts.failed === 0) {
      console.log(`  ✗ the run of ${project} ended with ${code === 124 ? 'its time over' : `code ${code}`}`);
      counts.failed++;
    }
    return counts;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @param {string} report @returns {Promise<{ status: string, assertionResults: { status: string }[] }[]>} */
async function resultsIn(report) {
  try {
    return readJson(report).testResults;
  } catch {
    // The run was stopped before it wrote one.
    return [];
  }
}

/** How many tests a suite would have run. @param {Suite} suite @param {string} node @returns {Promise<Counts>} */
async function leftOut(suite, node) {
  const skipped = suite.name === 'host' ? await countHostTests() : await countVitest(suite.name, node);
  return ci ? { passed: 0, failed: Math.max(skipped, 1), skipped: 0 } : { passed: 0, failed: 0, skipped };
}

/** @param {string} project @param {string} node */
async function countVitest(project, node) {
  const folder = await mkdtemp(join(tmpdir(), 'drover-list-'));
  const list = join(folder, 'list.json');
  await run(node, [vitest, 'list', '--project', project, `--json=${list}`], { timeoutMs: 60_000 });
  const tests = await readFile(list, 'utf8').then(JSON.parse, () => []);
  await rm(folder, { recursive: true, force: true });
  return tests.length;
}

async function countHostTests() {
  const folder = join(root, 'test/host');
  const files = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('.test.ts'));
  const texts = await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')));
  return texts.join('\n').match(/^\s*it\(/gm)?.length ?? 0;
}

/** Builds drover.vsix; returns what went wrong, or ''. */
async function packageExtension() {
  console.log('\nBuilding and packaging the extension, as the next tests run what a user installs.');
  const { code, output } = await npm(['run', 'package'], { timeoutMs: 180_000 });
  return code === 0 ? '' : lastLines(output, 30);
}
