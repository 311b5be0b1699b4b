import type { FrameLocator, Locator } from 'playwright-core';
import type { Workbench } from './workbench.ts';

/** Drover's panel, as a person uses it. */
export class PanelPage {
  readonly #workbench: Workbench;

  constructor(workbench: Workbench) {
    this.#workbench = workbench;
  }

  get frame(): FrameLocator {
    return this.#workbench.panel;
  }

  /** The page's one element. */
  get root(): Locator {
    return this.frame.locator('drover-panel');
  }

  /** Cards of calls that wait for a person; `text` narrows them. */
  card(text?: string | RegExp): Locator {
    const cards = this.frame.locator('drover-approval section.approval');
    return text === undefined ? cards : cards.filter({ hasText: text });
  }

  /** Cards of calls that were answered or never asked. */
  call(text: string | RegExp): Locator {
    return this.frame.locator('.card.call', { hasText: text });
  }

  get tree(): Locator {
    return this.frame.getByRole('tree');
  }

  /** A line of the tree of subagents. */
  thread(name: string | RegExp): Locator {
    return this.tree.getByRole('treeitem', { name });
  }

  get composer(): Locator {
    return this.frame.getByRole('textbox', { name: 'Message', exact: true });
  }

  async say(text: string): Promise<void> {
    await this.composer.fill(text, { timeout: 30_000 });
    await this.composer.press('Enter');
  }

  tab(name: string | RegExp): Locator {
    return this.frame.getByRole('tab', { name });
  }

  get inspector(): Locator {
    return this.frame.locator('drover-inspector');
  }

  /** What the model said, as it is shown. */
  message(text: string | RegExp): Locator {
    return this.frame.locator('.message', { hasText: text });
  }
}
