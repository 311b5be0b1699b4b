import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { build } from 'esbuild';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { prepare } from '../../../scripts/setup.mjs';
import type { FormHostMessage, FormPageMessage } from '../../../src/protocol/environment-form.ts';
import type { SessionId } from '../../../src/protocol/ids.ts';
import type { HostMessage, PanelMessage } from '../../../src/protocol/panel.ts';
import type { LogRecord } from '../../../src/protocol/record.ts';
import { openBrowser } from '../../support/browser.ts';
import { type ThemeKind, theme } from './themes.ts';

const root = join(import.meta.dirname, '../../..');
const TYPES: Record<string, string> = { '.js': 'text/javascript', '.css': 'text/css', '.ttf': 'font/ttf' };

/** Where pictures of the panel are left for people to look at. */
export const pictures = join(root, 'test-results', 'panel');

const { have, missing } = await prepare({ need: ['browser'] });

/** False where no browser can be had: the tests that look at the panel are then skipped. In CI they fail instead. */
export const hasBrowser = have.browser !== undefined;
if (!hasBrowser && process.env.CI === 'true') throw new Error(missing.browser ?? 'There is no browser.');

/** A message the panel sent; the shapes are those of the protocol. */
export type Sent = PanelMessage;

declare global {
  interface Window {
    sent: Sent[];
    saved: unknown;
  }
}

/** A browser with the real bundle of the panel, in a page as VS Code would make it: theme, strict CSP, nonce. */
class Desk {
  readonly #browser: Browser;
  readonly #server: Server;
  readonly #folder: string;
  readonly #pages: Page[] = [];

  private constructor(browser: Browser, server: Server, folder: string) {
    this.#browser = browser;
    this.#server = server;
    this.#folder = folder;
  }

  static async open(): Promise<Desk> {
    const folder = await mkdtemp(join(tmpdir(), 'drover-panel-'));
    await build({
      entryPoints: {
        panel: join(root, 'webview/panel.ts'),
        environment: join(root, 'webview/environment/environment.ts'),
      },
      bundle: true,
      outdir: folder,
      platform: 'browser',
      target: 'es2022',
      format: 'iife',
      loader: { '.ttf': 'file' },
      assetNames: '[name]',
      tsconfig: join(root, 'tsconfig.json'),
      logLevel: 'error',
    });
    await mkdir(pictures, { recursive: true });
    const server = createServer((request, response) => {
      const url = new URL(request.url ?? '/', 'http://127.0.0.1');
      if (url.pathname === '/') {
        const kind = (url.searchParams.get('theme') ?? 'dark') as ThemeKind;
        response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(pageOf(kind, url.searchParams));
        return;
      }
      readFile(join(folder, url.pathname.slice(1))).then(
        (body) => response.writeHead(200, { 'content-type': TYPES[extname(url.pathname)] ?? 'text/plain' }).end(body),
        () => response.writeHead(404).end(),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new Desk(await openBrowser(have.browser ?? ''), server, folder);
  }

  /** A page with the panel in it; it has sent `ready` and heard nothing yet. */
  async panel(
    options: { theme?: ThemeKind; width?: number; height?: number; saved?: unknown; clock?: boolean } = {},
  ): Promise<PanelDesk> {
    const page = await this.#browser.newPage({
      viewport: { width: options.width ?? 1280, height: options.height ?? 800 },
    });
    page.setDefaultTimeout(8_000);
    this.#pages.push(page);
    const { port } = this.#server.address() as AddressInfo;
    const desk = new PanelDesk(page);
    const query = new URLSearchParams({ theme: options.theme ?? 'dark' });
    if (options.saved !== undefined) query.set('saved', JSON.stringify(options.saved));
    if (options.clock) await page.clock.install();
    await page.goto(`http://127.0.0.1:${port}/?${query}`);
    await page.waitForFunction(() => window.sent.some((message) => message.type === 'ready'), undefined, {
      polling: 50,
    });
    return desk;
  }

  /** A page with the form of an environment in it; it has sent `ready` and heard nothing yet. */
  async form(options: { theme?: ThemeKind; width?: number; height?: number } = {}): Promise<FormDesk> {
    const { theme: kind = 'dark', width = 900, height = 1500 } = options;
    const page = await this.#browser.newPage({ viewport: { width, height } });
    page.setDefaultTimeout(8_000);
    this.#pages.push(page);
    const { port } = this.#server.address() as AddressInfo;
    const desk = new FormDesk(page);
    await page.goto(`http://127.0.0.1:${port}/?${new URLSearchParams({ theme: kind, page: 'environment' })}`);
    await page.waitForFunction(() => window.sent.length > 0, undefined, { polling: 50 });
    return desk;
  }

  async closePages(): Promise<void> {
    for (const page of this.#pages.splice(0)) await page.close();
  }

  async close(): Promise<void> {
    await this.#browser.close();
    await new Promise((resolve) => this.#server.close(resolve));
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** One desk for the tests of the `describe` it is called in; the pages of each are closed after it. */
export function oneDesk(): Pick<Desk, 'panel' | 'form'> {
  let desk: Desk | undefined;
  beforeAll(async () => {
    desk = await Desk.open();
  }, 60_000);
  afterEach(() => desk?.closePages());
  afterAll(() => desk?.close());
  return {
    panel(options) {
      if (!desk) throw new Error('The desk is open only while tests run.');
      return desk.panel(options);
    },
    form(options) {
      if (!desk) throw new Error('The desk is open only while tests run.');
      return desk.form(options);
    },
  };
}

function pageOf(kind: ThemeKind, query: URLSearchParams): string {
  const { css, bodyClass, attribute } = theme(kind);
  const nonce = 'n0nce';
  const csp = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'self' 'nonce-${nonce}'; font-src 'self'; img-src 'self' data:`;
  const host = `window.sent = []; window.saved = ${query.get('saved') ?? 'undefined'};
    window.acquireVsCodeApi = () => ({
      postMessage: (message) => { window.sent.push(message); },
      getState: () => window.saved,
      setState: (state) => { window.saved = state; return state; },
    });`;
  const name = query.get('page') ?? 'panel';
  return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${csp}">
    <meta name="viewport" content="width=device-width, initial-scale=1"><title>Drover</title><link rel="icon" href="data:,">
    <style nonce="${nonce}">${css}</style><link rel="stylesheet" href="${name}.css"></head>
    <body class="${bodyClass}" data-vscode-theme-kind="${attribute}" data-session="sesn_fixture"><drover-${name}></drover-${name}>
    <script nonce="${nonce}">${host}</script><script nonce="${nonce}" src="${name}.js"></script></body></html>`;
}

/** What an element says, with one space where the page has white space of any kind. */
export const words = async (of: Locator): Promise<string> =>
  ((await of.textContent()) ?? '').replace(/\s+/g, ' ').trim();

/** One page, seen from the host's side. */
class PageDesk {
  readonly page: Page;
  /** What the page complained about: exceptions, and whatever its CSP forbade. */
  readonly complaints: string[] = [];

  constructor(page: Page) {
    this.page = page;
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') this.complaints.push(message.text());
    });
  }

  protected async post(messages: readonly (HostMessage | FormHostMessage)[]): Promise<void> {
    await this.page.evaluate((all) => {
      for (const message of all) window.postMessage(message, '*');
    }, messages);
  }

  /** Waits until what was drawn has been measured. */
  async settle(): Promise<void> {
    await this.page.waitForTimeout(250);
  }

  async picture(name: string): Promise<void> {
    await this.page.screenshot({ path: join(pictures, `${name}.png`) });
  }
}

/** The form of an environment. */
export class FormDesk extends PageDesk {
  async host(...messages: FormHostMessage[]): Promise<void> {
    await this.post(messages);
    await this.settle();
  }

  /** What the page sent, in order. */
  async sent(): Promise<FormPageMessage[]> {
    return await this.page.evaluate(() => window.sent as unknown[] as FormPageMessage[]);
  }
}

/** One panel. */
export class PanelDesk extends PageDesk {
  async host(...messages: HostMessage[]): Promise<void> {
    await this.post(messages);
  }

  /** Says hello and sends the records in batches, as the host does. */
  async open(fixture: { records: LogRecord[]; now: number }, batch = 500): Promise<void> {
    await this.host({
      type: 'hello',
      sessionId: 'sesn_fixture' as SessionId,
      access: { mode: 'write' },
      now: fixture.now,
    });
    for (let at = 0; at < fixture.records.length; at += batch) {
      const more = at + batch < fixture.records.length;
      await this.host({ type: 'records', records: fixture.records.slice(at, at + batch), more });
    }
    await this.page.locator('.top h1').waitFor();
    await this.settle();
  }

  sent(): Promise<Sent[]> {
    return this.page.evaluate(() => window.sent);
  }

  async sentOf<T extends Sent['type']>(type: T): Promise<Extract<Sent, { type: T }>[]> {
    return (await this.sent()).filter((message): message is Extract<Sent, { type: T }> => message.type === type);
  }
}
