import type { Browser, BrowserContext, FrameLocator, Locator, Page } from 'playwright-core';
import type { Server } from '../../scripts/vscode.mjs';
import { eventually } from './eventually.ts';

/** A VS Code window in a browser, as a person uses it. */
export class Workbench {
  readonly page: Page;
  readonly #context: BrowserContext;

  private constructor(page: Page, context: BrowserContext) {
    this.page = page;
    this.#context = context;
  }

  /** Opens a folder and waits until the window is drawn; extensions may still be starting. */
  static async open(browser: Browser, server: Server, folder: string | null): Promise<Workbench> {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    const workbench = new Workbench(page, context);
    await page.goto(folder === null ? `${server.origin}/?ew=true` : server.url(folder));
    await workbench.drawn();
    return workbench;
  }

  async drawn(): Promise<void> {
    await this.page.locator('.monaco-workbench .part.statusbar').waitFor({ timeout: 60_000 });
  }

  async reload(): Promise<void> {
    await this.page.reload();
    await this.drawn();
  }

  close(): Promise<void> {
    return this.#context.close();
  }

  /**
   * Runs a command from the palette. A list that was opened before an extension's commands were registered never
   * gains them, so it is opened anew until the command is there.
   */
  async command(title: string): Promise<void> {
    const row = this.quickPickRow(title);
    await eventually(`the command ${title} in the palette`, 45_000, async () => {
      await this.page.keyboard.press('F1');
      await this.quickInput.fill(`>${title}`, { timeout: 3_000 });
      try {
        await row.waitFor({ timeout: 2_000 });
      } catch {
        await this.page.keyboard.press('Escape');
        return false;
      }
      await row.click({ timeout: 10_000 });
      return true;
    });
  }

  get quickInput(): Locator {
    return this.page.locator('.quick-input-widget:not([style*="display: none"]) .quick-input-box input');
  }

  quickPickRow(text: string): Locator {
    return this.page.locator('.quick-input-list .monaco-list-row', { hasText: text }).first();
  }

  /** Picks a row of an open quick pick. */
  async pick(text: string): Promise<void> {
    await this.quickPickRow(text).click({ timeout: 20_000 });
  }

  /** Answers an open input box. */
  async type(text: string): Promise<void> {
    await this.quickInput.fill(text, { timeout: 20_000 });
    await this.page.keyboard.press('Enter');
  }

  /** Answers the editor's own dialog for a file to open or a place to save to: a browser has none of the system's. */
  async choosePath(path: string): Promise<void> {
    // What is typed before the dialog has made its own suggestion is overwritten by it.
    await eventually('the dialog to suggest a path', 20_000, () => this.quickInput.inputValue({ timeout: 2_000 }));
    await eventually('the path to stay', 10_000, async () => {
      await this.quickInput.fill(path, { timeout: 2_000 });
      await this.page.waitForTimeout(300);
      return (await this.quickInput.inputValue({ timeout: 2_000 })) === path;
    });
    const widget = this.page.locator('.quick-input-widget:not([style*="display: none"])');
    await widget.getByRole('button', { name: /^(OK|Open)$/ }).click({ timeout: 20_000 });
  }

  /** A modal dialog. */
  dialog(text: string | RegExp): Locator {
    return this.page.locator('.monaco-dialog-box', { hasText: text });
  }

  async answerDialog(text: string | RegExp, button: string): Promise<void> {
    const dialog = this.dialog(text);
    await dialog.getByRole('button', { name: button, exact: true }).click({ timeout: 20_000 });
    await dialog.waitFor({ state: 'detached', timeout: 10_000 });
  }

  /** The body of Drover's panels; of several, that of the tab in front. */
  get panel(): FrameLocator {
    return this.page
      .locator('iframe.webview.ready[src*="extensionId=drover.drover"]:not([src*="purpose=webviewView"])')
      .filter({ visible: true })
      .first()
      .contentFrame()
      .locator('iframe#active-frame')
      .contentFrame();
  }

  get tabs(): Locator {
    return this.page.locator('.tabs-container .tab');
  }

  async closeActiveTab(): Promise<void> {
    const before = await this.tabs.count();
    await this.command('View: Close Editor');
    await eventually('the tab to close', 10_000, async () => (await this.tabs.count()) < before);
  }

  notification(text: string | RegExp): Locator {
    return this.page.locator('.notifications-toasts .notification-list-item', { hasText: text });
  }

  /** Presses a button of a notification. */
  async answer(text: string | RegExp, button: string): Promise<void> {
    await this.notification(text).first().getByRole('button', { name: button, exact: true }).click({ timeout: 60_000 });
  }

  statusBarItem(text: string | RegExp): Locator {
    return this.page.locator('.part.statusbar .statusbar-item', { hasText: text });
  }

  /** Opens Drover's container in the side bar. */
  async openSideBar(): Promise<void> {
    const rows = this.page.locator('.part.sidebar').getByRole('heading', { name: /Drover/ });
    await eventually('the Drover side bar', 30_000, async () => {
      if (await rows.first().isVisible()) return true;
      await this.page
        .locator('.part.activitybar')
        .getByRole('tab', { name: /Drover/ })
        .first()
        .click({ timeout: 2_000 });
      return false;
    });
  }

  sideBarText(text: string | RegExp): Locator {
    return this.page.locator('.part.sidebar').getByText(text).first();
  }

  /** A row of the Sessions tree. */
  treeRow(text: string | RegExp): Locator {
    return this.page.locator('.part.sidebar .monaco-list-row', { hasText: text });
  }

  /** Presses an inline button of a row of the Sessions tree; they appear when it is pointed at. */
  async treeAction(row: Locator, title: string | RegExp): Promise<void> {
    await row.first().hover();
    await row.first().getByRole('button', { name: title }).click({ timeout: 10_000 });
  }
}
