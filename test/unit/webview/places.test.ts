import { describe, expect, it } from 'vitest';
import { bigOutput, noKey, twoThreads } from '../../fixtures/panel/sessions.ts';
import { hasBrowser, oneDesk, type PanelDesk, words } from './desk.ts';
import { nameless } from './readable.ts';

const focused = (panel: PanelDesk, attribute: string) =>
  panel.page.evaluate((name) => document.activeElement?.getAttribute(name), attribute);

describe.skipIf(!hasBrowser)('the panel by keyboard and by eye', { timeout: 40_000 }, () => {
  const desk = oneDesk();

  it('walks the tree by arrows and shows a thread by Enter', async () => {
    const panel = await desk.panel();
    const fixture = twoThreads();
    await panel.open(fixture);
    await panel.page.getByRole('treeitem', { name: /^coder/ }).focus();
    await panel.page.keyboard.press('ArrowRight');
    expect(await focused(panel, 'data-thread')).toBe(fixture.child);
    await panel.page.keyboard.press('Enter');
    await panel.page.getByRole('heading', { name: 'verifier', exact: true }).waitFor();
    await panel.page.keyboard.press('ArrowLeft');
    expect(await focused(panel, 'data-thread')).toBe(fixture.primary);
  });

  it("gives the primary's own figures and those of all threads", async () => {
    const panel = await desk.panel();
    await panel.open(twoThreads());
    const label = await panel.page.getByRole('treeitem', { name: /^coder/ }).getAttribute('aria-label');
    expect(label).toMatch(
      /^coder, waits for you, 31\.9k tokens, .* \$0\.10; with subagents 39\.9k tokens, .* \$0\.11$/,
    );
  });

  it('walks the timeline by arrows, inspects by Enter and zooms by plus', async () => {
    const panel = await desk.panel();
    const fixture = twoThreads();
    await panel.open(fixture);
    await panel.page.getByRole('tab', { name: 'Timeline' }).click();
    await panel.settle();
    await panel.page.locator('.bar[tabindex="0"]').focus();
    expect(await focused(panel, 'data-key')).toMatch(/^model /);
    await panel.page.keyboard.press('ArrowRight');
    await panel.settle();
    expect(await focused(panel, 'data-key')).toBe(`tool ${fixture.calls.list}`);
    await panel.page.keyboard.press('Enter');
    await panel.page.locator('drover-inspector').getByRole('heading', { name: 'glob' }).waitFor();
    await panel.settle();
    expect(await words(panel.page.locator('.span-length'))).toMatch(/^5[2-5] s$/);
    await panel.page.keyboard.press('+');
    await panel.settle();
    expect(await words(panel.page.locator('.span-length'))).toMatch(/^3[5-9] s$/);
    expect(await focused(panel, 'data-key')).toBe(`tool ${fixture.calls.list}`);
    await panel.page.keyboard.press('ArrowDown');
    await panel.settle();
    expect(await panel.page.evaluate(() => document.activeElement?.closest('svg')?.getAttribute('aria-label'))).toBe(
      'verifier',
    );
  });

  it('tells what a request left out, and leads there', async () => {
    const panel = await desk.panel();
    const fixture = twoThreads();
    await panel.open(fixture);
    const asked = fixture.records.findLast(
      (record) => record.event.type === 'drover.context_assembled' && record.thread === fixture.primary,
    );
    if (!asked) throw new Error('The fixture has no request.');
    await panel.host({ type: 'reveal', id: asked.event.id });
    const inspector = panel.page.locator('drover-inspector');
    await inspector.getByText('47 KiB, an old result over 4 KiB').waitFor();
    expect(await words(inspector.locator('dl'))).toMatch(/List cost\s*\$0\.0190 \(prices of 2026-11-01\)/);
    await inspector.locator('.left-out button').click();
    await inspector.getByRole('heading', { name: 'bash' }).waitFor();
    await inspector.getByRole('button', { name: /agent\.tool_result/ }).click();
    await inspector.getByRole('button', { name: /^Copy record 24 / }).click();
    const [copy] = await panel.sentOf('copy');
    expect(JSON.parse(copy?.text ?? '')).toEqual(fixture.records[24]);
  });

  it('makes drawers of the side columns where it is narrow', async () => {
    const panel = await desk.panel({ width: 520 });
    await panel.open(twoThreads());
    expect(await panel.page.getByRole('tree').isVisible()).toBe(false);
    await panel.page.getByRole('button', { name: 'Agents' }).click();
    await panel.page.getByRole('treeitem', { name: /^verifier/ }).click();
    await panel.page.getByRole('tree').waitFor({ state: 'hidden' });
    await panel.page.getByRole('button', { name: 'Inspect this call' }).click();
    await panel.page.locator('drover-inspector').waitFor();
    await panel.page.keyboard.press('Escape');
    await panel.page.locator('drover-inspector').waitFor({ state: 'hidden' });
  });

  for (const width of [1280, 520]) {
    it(`lets nothing run out of the page at ${width} px`, async () => {
      const panel = await desk.panel({ width });
      await panel.open(twoThreads());
      const overflow = await panel.page.evaluate(() =>
        [...document.querySelectorAll('.top, .middle, .row, .approval, .composer')]
          .filter((element) => element.scrollWidth > element.clientWidth + 1)
          .map((element) => element.className),
      );
      expect(overflow).toEqual([]);
    });
  }

  it('has a name for everything that can be pressed, and no style attribute from a template', async () => {
    for (const fixture of [twoThreads(), bigOutput(), noKey()]) {
      const panel = await desk.panel({ height: 1600 });
      await panel.open(fixture);
      await panel.page.evaluate(() => {
        for (const toggle of document.querySelectorAll<HTMLElement>('.card-toggle[aria-expanded="false"]'))
          toggle.click();
      });
      await panel.settle();
      expect(await panel.page.evaluate(nameless)).toEqual([]);
      await panel.page.getByRole('tab', { name: 'Timeline' }).click();
      await panel.settle();
      expect(await panel.page.evaluate(nameless)).toEqual([]);
      expect(panel.complaints).toEqual([]);
    }
  });
});
