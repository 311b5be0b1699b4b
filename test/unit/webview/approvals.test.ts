import { describe, expect, it } from 'vitest';
import { draft } from '../../../src/protocol/record.ts';
import { editPending, twoThreads } from '../../fixtures/panel/sessions.ts';
import { hasBrowser, oneDesk, type PanelDesk, words } from './desk.ts';

/** Longer than a new card takes no key for. */
const READ = 500;

const focusIsOn = (panel: PanelDesk, selector: string) =>
  panel.page.evaluate((css) => document.activeElement?.closest(css) !== null, selector);

describe.skipIf(!hasBrowser)('approval cards', { timeout: 40_000 }, () => {
  const desk = oneDesk();

  it('shows the whole edit as a diff, why it is asked, and where it would run', async () => {
    const panel = await desk.panel();
    await panel.open(editPending());
    const card = panel.page.locator('.approval');
    await card.getByText('coder wants to edit src/receipt.js').waitFor();
    expect(await card.locator('.diff-line.removed .text').allTextContents()).toEqual([
      '  if (pieces > 10) sum = sum * 0.9;',
    ]);
    expect(await card.locator('.diff-line.added .text').allTextContents()).toEqual([
      '  if (pieces >= DISCOUNT_FROM) sum *= 0.9;',
    ]);
    await card.getByText('The coder asks before it changes a file.').waitFor();
    await card.getByText('Runs in a fresh sandbox of devcontainer, made when you allow it.').waitFor();
  });

  it('allows the oldest call by Ctrl+Enter, with the seq that was seen', async () => {
    const panel = await desk.panel();
    const fixture = editPending();
    await panel.open(fixture);
    await panel.page.waitForTimeout(READ);
    await panel.page.keyboard.press('Control+Enter');
    expect(await panel.sentOf('confirm')).toEqual([
      { type: 'confirm', n: 1, tool_use_id: fixture.calls.edit, result: 'allow', seen: fixture.records.at(-1)?.seq },
    ]);
    await panel.page.getByText('Allow sent…').waitFor();
  });

  it('takes no key in the moment a card appears', async () => {
    const panel = await desk.panel();
    await panel.open(editPending());
    // The same as a card that has just come: what was on screen has to be looked at again.
    await panel.page.evaluate(() => {
      document.dispatchEvent(new Event('visibilitychange'));
      document.dispatchEvent(
        new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true, cancelable: true }),
      );
    });
    expect(await panel.sentOf('confirm')).toEqual([]);
  });

  it('does not let the key that allowed one card allow the next', async () => {
    const panel = await desk.panel({ height: 1100 });
    const fixture = twoThreads();
    await panel.open(fixture);
    await panel.page.waitForTimeout(READ);
    await panel.page.evaluate(() => {
      const press = () =>
        document.dispatchEvent(
          new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true, cancelable: true }),
        );
      press();
      return new Promise<void>((resolve) =>
        requestAnimationFrame(() =>
          requestAnimationFrame(() => {
            press();
            resolve();
          }),
        ),
      );
    });
    expect((await panel.sentOf('confirm')).map((one) => one.tool_use_id)).toEqual([fixture.calls.write]);
  });

  it('takes no click on a card that has just slid under the pointer', async () => {
    const panel = await desk.panel();
    await panel.open(editPending());
    await panel.page.waitForTimeout(READ);
    const clickAfter = (wait: number) =>
      panel.page.evaluate(async (ms) => {
        const allow = document.querySelector('.approval vscode-button');
        await new Promise((resolve) => setTimeout(resolve, ms));
        allow?.dispatchEvent(new MouseEvent('click', { bubbles: true, composed: true, detail: 1 }));
      }, wait);
    await panel.page.getByRole('button', { name: /^read src/ }).evaluate((toggle: HTMLElement) => toggle.click());
    await clickAfter(120);
    expect(await panel.sentOf('confirm')).toEqual([]);
    await clickAfter(READ);
    expect(await panel.sentOf('confirm')).toHaveLength(1);
  });

  it('leaves Ctrl+Enter to a message that is being written', async () => {
    const panel = await desk.panel();
    await panel.open(editPending());
    await panel.page.waitForTimeout(READ);
    await panel.page.getByRole('textbox', { name: 'Message' }).fill('wait a moment');
    await panel.page.keyboard.press('Control+Enter');
    await panel.page.keyboard.press('Control+Backspace');
    expect(await panel.sentOf('confirm')).toEqual([]);
  });

  it('only brings a card that is out of sight before the eyes', async () => {
    const panel = await desk.panel({ height: 600 });
    const fixture = editPending();
    await panel.open(fixture);
    await panel.page.waitForTimeout(READ);
    await panel.page.locator('.scroller').evaluate((scroller) => scroller.scrollTo(0, 0));
    await panel.settle();
    await panel.page.keyboard.press('Control+Enter');
    await panel.settle();
    expect(await panel.sentOf('confirm')).toEqual([]);
    expect(await focusIsOn(panel, '.approval')).toBe(true);
    await panel.page.waitForTimeout(READ);
    await panel.page.keyboard.press('Control+Enter');
    expect((await panel.sentOf('confirm')).map((one) => one.tool_use_id)).toEqual([fixture.calls.edit]);
  });

  it('denies with a reason: the key opens the field, Enter in it sends', async () => {
    const panel = await desk.panel();
    const fixture = editPending();
    await panel.open(fixture);
    await panel.page.waitForTimeout(READ);
    await panel.page.keyboard.press('Control+Backspace');
    await panel.settle();
    expect(await panel.sentOf('confirm')).toEqual([]);
    await panel.page.keyboard.type('Keep the limit.');
    await panel.page.keyboard.press('Enter');
    expect(await panel.sentOf('confirm')).toMatchObject([
      { tool_use_id: fixture.calls.edit, result: 'deny', deny_message: 'Keep the limit.' },
    ]);
  });

  it('gives the focus to the card, never to Allow, when a command asks for it', async () => {
    const panel = await desk.panel();
    const fixture = twoThreads();
    await panel.open(fixture);
    expect(await focusIsOn(panel, '.approval')).toBe(false);
    await panel.host({ type: 'focus_approval' });
    await panel.settle();
    expect(await focusIsOn(panel, `.approval[data-call="${fixture.calls.write}"]`)).toBe(true);
    expect(await focusIsOn(panel, 'vscode-button')).toBe(false);
    await panel.page.keyboard.press('Enter');
    expect(await panel.sentOf('confirm')).toEqual([]);
  });

  it('answers the card of the conversation that is shown before an older one elsewhere', async () => {
    const panel = await desk.panel();
    const fixture = twoThreads();
    await panel.open(fixture);
    await panel.page.getByRole('treeitem', { name: /^verifier/ }).click();
    await panel.page.waitForTimeout(READ);
    await panel.page.keyboard.press('Control+Enter');
    expect((await panel.sentOf('confirm')).map((one) => one.tool_use_id)).toEqual([fixture.calls.ask]);
  });

  it('says what "from now on" covers, and sends it', async () => {
    const panel = await desk.panel({ height: 1100 });
    const fixture = twoThreads();
    await panel.open(fixture);
    const card = panel.page.locator('.approval', { hasText: 'verifier wants to run a command' });
    await card.getByText('From now on: runs this very command without asking again').waitFor();
    await panel.page.waitForTimeout(READ);
    await card.getByRole('button', { name: 'Allow from now on' }).click();
    expect(await panel.sentOf('confirm')).toMatchObject([
      { tool_use_id: fixture.calls.ask, result: 'allow', standing: true },
    ]);
  });

  it('says so when the answer came too late, and gives the buttons back', async () => {
    const panel = await desk.panel();
    await panel.open(editPending());
    await panel.page.waitForTimeout(READ);
    await panel.page.getByRole('button', { name: /^Allow\b.*Enter/ }).click();
    await panel.host({ type: 'reply', to: 1, problem: 'This call was already answered in another window.' });
    await panel.page.getByText('This call was already answered in another window.').waitFor();
    expect(await panel.page.getByRole('button', { name: /^Allow\b.*Enter/ }).isVisible()).toBe(true);
  });

  it('takes the record for the truth once it comes', async () => {
    const panel = await desk.panel();
    const fixture = editPending();
    await panel.open(fixture);
    const last = fixture.records.at(-1);
    if (!last) throw new Error('The fixture is empty.');
    const answer = draft(
      'user.tool_confirmation',
      { tool_use_id: fixture.calls.edit as never, result: 'deny', deny_message: 'Not like this.' },
      { thread: fixture.primary, local: { actor: { type: 'person', via: 'sidebar' } } },
    );
    const event = { processed_at: last.at, ...answer.event } as typeof last.event;
    await panel.host({
      type: 'records',
      records: [{ ...last, seq: last.seq + 1, hash: 'next', event, local: answer.local ?? {} }],
      more: false,
    });
    await panel.page.getByText('Denied by you.').waitFor();
    expect(await panel.page.locator('.approval').count()).toBe(0);
  });

  it("shows a child's ask in the primary's conversation, with the child's name, and reads it out", async () => {
    const panel = await desk.panel({ height: 1100 });
    await panel.open(twoThreads());
    await panel.page.locator('.approval', { hasText: 'verifier wants to run a command' }).waitFor();
    const said = panel.page.locator('[aria-live="assertive"]');
    expect(await words(said)).toContain('verifier wants to run a command: npm test 2>&1 | tee /tmp/test.log');
  });

  it('leaves the focus on the row when the card it was on is answered', async () => {
    const panel = await desk.panel();
    const fixture = editPending();
    await panel.open(fixture);
    await panel.page.waitForTimeout(READ);
    await panel.page.getByRole('button', { name: /^Allow\b.*Enter/ }).click();
    const last = fixture.records.at(-1);
    if (!last) throw new Error('The fixture is empty.');
    const answer = draft(
      'user.tool_confirmation',
      { tool_use_id: fixture.calls.edit as never, result: 'allow' },
      { thread: fixture.primary },
    );
    const event = { processed_at: last.at, ...answer.event } as typeof last.event;
    await panel.host({ type: 'records', records: [{ ...last, seq: last.seq + 1, hash: 'next', event }], more: false });
    await panel.page.locator('.approval').waitFor({ state: 'detached' });
    expect(await panel.page.evaluate(() => document.activeElement?.getAttribute('data-key'))).toBe(fixture.calls.edit);
  });

  it('opens the diff editor on request', async () => {
    const panel = await desk.panel();
    const fixture = editPending();
    await panel.open(fixture);
    await panel.page.getByRole('button', { name: 'Show diff' }).click();
    expect(await panel.sentOf('show_diff')).toEqual([{ type: 'show_diff', tool_use_id: fixture.calls.edit }]);
  });
});
