import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import Docker from 'dockerode';
import type { Browser } from 'playwright-core';
import { copySample } from '../../scripts/copy-sample.mjs';
import { type Server, startServer } from '../../scripts/vscode.mjs';
import type { LogRecord } from '../../src/protocol/record.ts';
import { openBrowser } from './browser.ts';
import { eventually } from './eventually.ts';
import { PanelPage } from './panel-page.ts';
import { parts } from './parts.ts';
import { makeFolder } from './temp.ts';
import { Workbench } from './workbench.ts';

export interface DeskOptions {
  /** Changes the copy of the sample before it is opened. */
  change?: (folder: string) => Promise<void>;
  /** Opens a window without any folder. */
  empty?: boolean;
  settings?: Record<string, unknown>;
  env?: Record<string, string | undefined>;
  /** Default true. */
  trustAll?: boolean;
}

/**
 * A person's desk: a real VS Code with the packaged extension, open in a browser on a fresh copy of the sample, and
 * nothing else that could be left over from another test. `await using` clears it whatever happens.
 */
export class Desk {
  readonly folder: string;
  readonly server: Server;
  readonly workbench: Workbench;
  readonly panel: PanelPage;
  readonly #browser: Browser;

  private constructor(folder: string, server: Server, browser: Browser, workbench: Workbench) {
    this.folder = folder;
    this.server = server;
    this.workbench = workbench;
    this.panel = new PanelPage(workbench);
    this.#browser = browser;
  }

  static async open({ change, empty, settings, env, trustAll }: DeskOptions = {}): Promise<Desk> {
    const { server: program, browser: chromium, vsix } = await parts();
    const home = await makeFolder('drover-desk-');
    const folder = join(home, 'sample');
    await copySample(folder);
    await change?.(folder);
    const server = await startServer({
      server: program,
      node: process.execPath,
      vsix,
      // A developer's own key must not be spent by a test.
      env: { ANTHROPIC_API_KEY: undefined, ...env },
      // Unless a test names a server of its own, there is none: no request ever leaves this machine.
      settings: { 'drover.baseUrl': 'http://127.0.0.1:9', ...settings },
      ...(trustAll === undefined ? {} : { trustAll }),
    });
    let browser: Browser | undefined;
    try {
      browser = await openBrowser(chromium);
      return new Desk(folder, server, browser, await Workbench.open(browser, server, empty ? null : folder));
    } catch (error) {
      await browser?.close();
      await server.stop();
      throw error;
    }
  }

  /** Ids of the folder's sessions, from the directories. */
  async sessions(): Promise<string[]> {
    return (await readdir(this.#sessions).catch(() => [])).sort();
  }

  /** The whole records in the log of the folder's newest session. */
  async records(): Promise<LogRecord[]> {
    const logs = (await this.sessions()).map((id) => join(this.#sessions, id, 'log.jsonl'));
    const born = await Promise.all(
      logs.map((log) =>
        stat(log).then(
          ({ birthtimeMs }) => birthtimeMs,
          () => 0,
        ),
      ),
    );
    const newest = logs[born.indexOf(Math.max(...born))];
    const text = newest ? await readFile(newest, 'utf8').catch(() => '') : '';
    const lines = text.split('\n').slice(0, -1);
    return lines.map((line): LogRecord => JSON.parse(line));
  }

  get #sessions(): string {
    return join(this.folder, '.drover', 'sessions');
  }

  /**
   * Starts a session from the palette, as a person does: agent, environment, task. Resolves when its log is there and
   * its panel is in front.
   */
  async start(task: string, { agent = 'Rehearsal', environment = 'Dev container' } = {}): Promise<void> {
    const before = await this.sessions();
    await this.workbench.command('Drover: Start Session');
    await this.workbench.pick(agent);
    await this.workbench.pick(environment);
    await this.workbench.type(task);
    await eventually('the new session', 30_000, async () => (await this.sessions()).length > before.length);
    await this.panel.root.waitFor({ timeout: 30_000 });
  }

  /** Waits until the log has a record like this, and returns the first of them. */
  record(what: string, timeoutMs: number, like: (record: LogRecord) => boolean): Promise<LogRecord> {
    return eventually(`the log to have ${what}`, timeoutMs, async () => (await this.records()).find(like));
  }

  /** Containers that Drover made for this folder. */
  async containers(): Promise<Docker.ContainerInfo[]> {
    const filters = { label: [`drover.workspace=${this.folder}`] };
    return await new Docker().listContainers({ all: true, filters });
  }

  /** How the window looked at the end: where a test failed, that tells more than its message. */
  async #picture(): Promise<void> {
    await mkdir(resultsFolder, { recursive: true });
    await this.workbench.page.screenshot({ path: join(resultsFolder, `${await nameOfTest()}.png`), timeout: 5_000 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#picture().catch(() => undefined);
    await this.#browser.close().catch(() => undefined);
    await this.server.stop();
    const docker = new Docker();
    const containers = await this.containers().catch(() => []);
    await Promise.allSettled(containers.map(({ Id }) => docker.getContainer(Id).remove({ force: true, v: true })));
    // The devcontainer tool makes an image per folder, and this folder will never be again.
    const images = new Set(containers.map(({ Image }) => Image).filter((name) => name.startsWith('vsc-')));
    await Promise.allSettled([...images].map((name) => docker.getImage(name).remove()));
    await rm(join(this.folder, '..'), { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The running test's name as a file name, or `desk` outside of a test. */
async function nameOfTest(): Promise<string> {
  if (!process.env.VITEST) return 'desk';
  const { expect } = await import('vitest');
  return (expect.getState().currentTestName ?? 'desk').replace(/[^\w]+/g, '-').slice(0, 150);
}

/** Where screenshots go. */
export const resultsFolder = join(import.meta.dirname, '../../test-results');
