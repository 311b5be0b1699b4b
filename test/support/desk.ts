import { readdir, readFile, rm } from 'node:fs/promises';
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

  static async open({ change, settings, env, trustAll }: DeskOptions = {}): Promise<Desk> {
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
      ...(settings ? { settings } : {}),
      ...(trustAll === undefined ? {} : { trustAll }),
    });
    let browser: Browser | undefined;
    try {
      browser = await openBrowser(chromium);
      return new Desk(folder, server, browser, await Workbench.open(browser, server, folder));
    } catch (error) {
      await browser?.close();
      await server.stop();
      throw error;
    }
  }

  /** Ids of the folder's sessions, from the directories. */
  async sessions(): Promise<string[]> {
    return (await readdir(join(this.folder, '.drover', 'sessions')).catch(() => [])).sort();
  }

  /** The whole records in the log of the folder's only session. */
  async records(): Promise<LogRecord[]> {
    const [id] = await this.sessions();
    if (!id) return [];
    const bytes = await readFile(join(this.folder, '.drover', 'sessions', id, 'log.jsonl'), 'utf8').catch(() => '');
    const lines = bytes.split('\n').slice(0, -1);
    return lines.map((line): LogRecord => JSON.parse(line));
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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close().catch(() => undefined);
    await this.server.stop();
    const docker = new Docker();
    const containers = await this.containers().catch(() => []);
    await Promise.allSettled(containers.map(({ Id }) => docker.getContainer(Id).remove({ force: true, v: true })));
    await rm(join(this.folder, '..'), { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Where screenshots of failures go. */
export const resultsFolder = join(import.meta.dirname, '../../test-results');
