import { describe, expect, it } from 'vitest';
import { filesChanged } from '../../fixtures/panel/sessions.ts';
import { hasBrowser, oneDesk, type PanelDesk, words } from './desk.ts';
import { lowContrast, nameless } from './readable.ts';
import { themeKinds } from './themes.ts';

const card = (panel: PanelDesk, name: string) =>
  panel.page.locator('.card.call').filter({ has: panel.page.getByText(name, { exact: true }) });
const asked = async (panel: PanelDesk) => (await panel.sentOf('checkpoint')).map(({ act, id }) => [act, id]);

describe.skipIf(!hasBrowser)('the files of a session, in the panel', { timeout: 40_000 }, () => {
  const desk = oneDesk();

  it('are a click away from the call that changed them, and from a message', async () => {
    const panel = await desk.panel();
    const fixture = filesChanged();
    await panel.open(fixture);
    const edit = card(panel, 'edit');
    await edit.getByRole('button', { name: /^edit src\/receipt\.js/ }).click();
    await edit.getByRole('button', { name: 'Changes by this call' }).click();
    await edit.getByRole('button', { name: 'Restore files to here' }).click();
    await edit.getByRole('button', { name: 'Fork session from here' }).click();
    await panel.page.getByRole('button', { name: 'Changes by this session' }).click();
    const { edit: call } = fixture.calls;
    expect(await asked(panel)).toEqual([
      ['changes_by_call', call],
      ['restore', call],
      ['fork', call],
      ['changes_by_session', call],
    ]);
    await panel.host({ type: 'reply', to: 2, problem: 'This session is at work on the files.' });
    await panel.page.getByText('This session is at work on the files.').first().waitFor();
    await panel.page.locator('.scroller').evaluate((scroller) => scroller.scrollTo(0, 0));
    await panel.settle();
    const message = panel.page.locator('.input.person').first();
    await message.hover();
    await message.getByRole('button', { name: 'Restore files to before this message' }).click();
    expect((await asked(panel)).at(-1)?.[0]).toBe('restore');
  });

  it('are reached by the keyboard alone', async () => {
    const panel = await desk.panel();
    const fixture = filesChanged();
    await panel.open(fixture);
    await card(panel, 'edit')
      .getByRole('button', { name: /^edit src\/receipt\.js/ })
      .focus();
    await panel.page.keyboard.press('Enter');
    await panel.settle();
    const label = () => panel.page.evaluate(() => document.activeElement?.textContent?.trim() ?? '');
    for (let steps = 0; steps < 12 && (await label()) !== 'Restore files to here'; steps += 1) {
      await panel.page.keyboard.press('Tab');
    }
    await panel.page.keyboard.press('Enter');
    expect(await asked(panel)).toEqual([['restore', fixture.calls.edit]]);
  });

  it('are told of in the inspector, which a bar of the timeline opens: whose sandbox, which files, and the ways back', async () => {
    const panel = await desk.panel();
    const fixture = filesChanged();
    await panel.open(fixture);
    await panel.page.getByRole('tab', { name: 'Timeline' }).click();
    await panel.settle();
    const kept = panel.page.locator('.bar:has(.kept)');
    expect(await kept.evaluateAll((bars) => bars.map((bar) => bar.getAttribute('aria-label')))).toEqual([
      expect.stringMatching(/^edit src\/receipt\.js, 1 change kept, /),
    ]);
    await kept.locator('.kept').click();
    const inspector = panel.page.locator('drover-inspector');
    await inspector.getByRole('heading', { name: 'edit', exact: true }).waitFor();
    expect(await words(inspector.locator('.facts-list'))).toMatch(
      /Sandbox of ?verifier.*Files ?1 change, kept as 22222222/,
    );
    await inspector.getByRole('button', { name: 'by this thread' }).click();
    expect(await asked(panel)).toEqual([['changes_by_thread', fixture.calls.edit]]);
    await inspector.getByRole('button', { name: /^1 change, kept as/ }).click();
    await inspector.getByRole('heading', { name: 'Checkpoint' }).waitFor();
    expect(await words(inspector.locator('.facts-list'))).toMatch(
      /modified ?src\/receipt\.js.*Left out ?data\/stock\.db \(46\.0 MiB, large\)/,
    );
    await inspector.getByRole('button', { name: 'Restore files to here' }).click();
    expect((await asked(panel)).at(-1)).toEqual(['restore', fixture.calls.after]);
  });

  it('that were put back are a line of the conversation', async () => {
    const panel = await desk.panel();
    await panel.open(filesChanged());
    await panel.page.getByText('Files put back by you, 1 file changed; the agent is told').waitFor();
  });

  it('can’t be asked for where the session is only read', async () => {
    const panel = await desk.panel();
    await panel.open(filesChanged());
    await panel.host({ type: 'access', access: { mode: 'read_only', why: 'imported' }, interrupted: false });
    await panel.settle();
    expect(await panel.page.getByRole('button', { name: /Restore files|Fork session|Changes by/ }).count()).toBe(0);
  });

  for (const theme of themeKinds) {
    it(`can be read in ${theme}`, async () => {
      const panel = await desk.panel({ theme });
      const fixture = filesChanged();
      await panel.open(fixture);
      await card(panel, 'edit')
        .getByRole('button', { name: /^edit src\/receipt\.js/ })
        .click();
      await card(panel, 'edit')
        .getByRole('button', { name: /^Inspect/ })
        .click();
      await panel.settle();
      await panel.picture(`checkpoints-${theme}`);
      expect(await panel.page.evaluate(lowContrast, 4.5)).toEqual([]);
      await panel.page.getByRole('tab', { name: 'Timeline' }).click();
      await panel.settle();
      await panel.picture(`checkpoints-timeline-${theme}`);
      expect(await panel.page.locator('.bar .kept').count()).toBe(1);
      expect(await panel.page.evaluate(lowContrast, 4.5)).toEqual([]);
      expect(await panel.page.evaluate(nameless)).toEqual([]);
      expect(panel.complaints).toEqual([]);
    });
  }
});
