import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { root } from '../../scripts/machine.mjs';
import { type Server, startServer } from '../../scripts/vscode.mjs';
import { openBrowser } from '../support/browser.ts';
import { bytesLoadedByActivate } from '../support/built.ts';
import { eventually } from '../support/eventually.ts';
import { Workbench } from '../support/workbench.ts';
import { figure, type Promised, quantile } from './figure.ts';
import type { Bench } from './given.ts';

const windows = 9;
const megabyte = 1_000_000;

/**
 * What a window pays for having Drover: the time VS Code itself took to load its code and call activate(), beside the
 * built-in Git extension in the same window; what is loaded then; and what is installed.
 */
export const activation: Bench = async ({ have }, say) => {
  const loaded = await bytesLoadedByActivate();
  const vsix = (await stat(join(root, 'drover.vsix'))).size;
  const sizes = [
    figure('activation.bytes', 'bytes', loaded, 1.5 * megabyte, 1),
    figure('activation.vsix', 'bytes', vsix, 8 * megabyte, 1),
  ];
  if (!have.vscode || !have.browser) return sizes;

  const folder = await mkdtemp(join(tmpdir(), 'drover-bench-'));
  execFileSync('git', ['init', '-q'], { cwd: folder });
  // Drover, too, is woken by what the folder contains.
  await mkdir(join(folder, '.drover'));
  const server = await startServer({ server: have.vscode, node: process.execPath, vsix: join(root, 'drover.vsix') });
  const browser = await openBrowser(have.browser);
  try {
    return [await time(browser, server, folder, say), ...sizes];
  } finally {
    await browser.close();
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
};

async function time(browser: Browser, server: Server, folder: string, say: (text: string) => void): Promise<Promised> {
  const drover: number[] = [];
  const git: number[] = [];
  // The first window fills the disk's and the browser's caches.
  for (let n = 0; n <= windows; n++) {
    const workbench = await Workbench.open(browser, server, folder);
    const [ours, theirs] = await activationTimes(workbench);
    await workbench.close();
    if (n === 0) continue;
    drover.push(ours);
    git.push(theirs);
  }
  say(`  ms per window: Drover ${drover.join(' ')}, Git ${git.join(' ')}`);
  return figure('activation.time', 'ms', quantile(drover, 0.5), quantile(git, 0.5), 0.6);
}

/** ms to load code and call activate(), as VS Code's own list of running extensions tells it. */
async function activationTimes(workbench: Workbench): Promise<[drover: number, git: number]> {
  // The list draws only the rows in view, the slowest first.
  await workbench.page.setViewportSize({ width: 1440, height: 3000 });
  await workbench.command('Developer: Show Running Extensions');
  const of = (name: string) =>
    eventually(`the activation time of ${name}`, 30_000, async () => {
      const row = workbench.page.locator('.runtime-extensions-editor .monaco-list-row', {
        has: workbench.page.locator('.name', { hasText: new RegExp(`^${name}$`) }),
      });
      const text = await row.locator('.activation-time').first().textContent({ timeout: 2_000 });
      return /(\d+)\s*ms/.exec(text ?? '')?.[1];
    });
  return [Number(await of('Drover')), Number(await of('Git'))];
}
