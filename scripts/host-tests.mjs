// @ts-check
// Runs test/host/*.test.ts with mocha inside the extension host of a real VS Code.

import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readJson, root } from './machine.mjs';
import { startServer } from './vscode.mjs';

/** Of the lines that test/support/host-runner.ts says; VS Code's own are passed over. */
const prefix = '[host-tests]';

/**
 * @param {{ server: string, node: string, browser: string, timeoutMs: number, only?: readonly string[] }} options
 *   `only`: parts of the file names to run
 * @returns {Promise<{ passed: number, failed: number, skipped: number }>}
 */
export async function runHostTests({ server, node, browser, timeoutMs, only = [] }) {
  const files = (await readdir(join(root, 'test/host')).catch(() => /** @type {string[]} */ ([])))
    .filter((name) => name.endsWith('.test.ts') && (only.length === 0 || only.some((part) => name.includes(part))))
    .sort();
  if (files.length === 0) return { passed: 0, failed: 0, skipped: 0 };

  const work = await mkdtemp(join(tmpdir(), 'drh-'));
  const report = join(work, 'report.json');
  const bundle = join(root, 'dist-test', 'host.cjs');
  await bundleTests(files, report, bundle);
  const folder = join(work, 'workspace');
  if (existsSync(join(root, 'sample'))) await cp(join(root, 'sample'), folder, { recursive: true });
  else await mkdir(folder);

  // No key and no model service: no request ever leaves this machine.
  const vscode = await startServer({
    server,
    node,
    testDriver: true,
    env: { ANTHROPIC_API_KEY: undefined },
    settings: { 'drover.baseUrl': 'http://127.0.0.1:9' },
  });
  const { chromium } = await import('playwright-core');
  const chrome = await chromium.launch({ executablePath: browser, args: ['--no-sandbox', '--disable-gpu'] });
  try {
    const page = await chrome.newPage();
    const exit = new Promise((resolve) => {
      page.exposeFunction('codeAutomationExit', resolve);
      setTimeout(() => resolve('timeout'), timeoutMs).unref();
      page.once('close', () => resolve('closed'));
    });
    await page.exposeFunction('codeAutomationLog', (/** @type {string} */ _level, /** @type {unknown[]} */ args) => {
      const line = args.map(String).join(' ');
      if (line.startsWith(prefix)) console.log(line.slice(prefix.length));
    });
    const remote = (/** @type {string} */ path) => `vscode-remote://127.0.0.1:${vscode.port}${path}`;
    const payload = JSON.stringify([
      ['extensionDevelopmentPath', remote(root)],
      ['extensionTestsPath', remote(bundle)],
    ]);
    await page.goto(`${vscode.url(folder)}&payload=${encodeURIComponent(payload)}`);
    const code = await exit;
    const result = existsSync(report) ? readJson(report) : { passed: 0, failed: 0, skipped: 0 };
    if (code !== 0 && result.failed === 0) {
      const cause = code === 'timeout' ? `did not end within ${timeoutMs / 1000} s` : `ended with ${code}`;
      console.log(`  ✗ the run in the extension host ${cause}`);
      result.failed++;
    }
    return result;
  } finally {
    await chrome.close();
    await vscode.stop();
    await rm(work, { recursive: true, force: true });
  }
}

/**
 * One CommonJS file that exports `run`; the tests are imported when mocha's globals are there.
 * @param {readonly string[]} files @param {string} report @param {string} outfile
 */
async function bundleTests(files, report, outfile) {
  const { build } = await import('esbuild');
  const imports = files.map((file) => `await import('./test/host/${file}');`).join('\n');
  await build({
    stdin: {
      contents: `import { runHostTests } from './test/support/host-runner.ts';
        export const run = () => runHostTests(async () => { ${imports} }, ${JSON.stringify(report)});`,
      resolveDir: root,
      loader: 'ts',
    },
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node22',
    mainFields: ['module', 'main'],
    format: 'cjs',
    sourcemap: 'inline',
    external: ['vscode', 'mocha', 'cpu-features', '*.node'],
    logLevel: 'warning',
    // What import.meta.url would be, for code under test that finds files beside itself.
    define: { 'import.meta.url': '__importMetaUrl', 'import.meta.dirname': '__dirname' },
    banner: { js: "const __importMetaUrl = require('node:url').pathToFileURL(__filename).href;" },
  });
}
