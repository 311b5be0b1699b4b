import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Desk } from '../support/desk.ts';
import { eventsOf } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { allowUntil } from '../support/play.ts';

const CHANGED = 'minutes = 4;\n';

/** One session that changes a file, and what a person can do about it afterwards. */
describe('the files of a session', () => {
  let desk: Desk;
  let before: string;
  const clock = () => readFile(join(desk.folder, 'src', 'clock.js'), 'utf8');
  const card = () => desk.panel.call(/clock\.js/).first();
  /** A panel that was hidden comes back with its cards closed. */
  const openCard = async () => {
    const toggle = card().getByRole('button', { name: /^write/ });
    if ((await toggle.getAttribute('aria-expanded', { timeout: 20_000 })) === 'false') await toggle.click();
  };

  beforeAll(async () => {
    desk = await Desk.open();
    before = await clock();
    const input = { file_path: 'src/clock.js', content: CHANGED };
    await desk.start(`[rehearsal:call tool=write] ${JSON.stringify(input)}`);
    await allowUntil(desk, null, 120_000);
  });
  afterAll(() => desk?.[Symbol.asyncDispose]());

  it('are kept before and after the call, outside of the user’s own repository', async () => {
    expect(await clock()).toBe(CHANGED);
    await desk.record(
      'the checkpoint',
      30_000,
      ({ event }) => event.type === 'drover.checkpoint' && 'why' in event && event.why === 'calls',
    );
    const taken = eventsOf(await desk.records(), 'drover.checkpoint');
    expect(taken.map(({ why, files }) => [why, files.map(({ path }) => path)])).toEqual([
      ['start', []],
      ['calls', ['src/clock.js']],
    ]);
  });

  it('are compared in the editor’s own diff of several files, which the mark on the timeline leads to', async () => {
    await desk.panel.tab('Timeline').click();
    await desk.panel.frame.locator('.bar .kept').click();
    await desk.panel.inspector.getByRole('button', { name: 'Changes by this call' }).click();
    const tab = desk.workbench.page.getByRole('tab', { name: /Changes by write/ }).first();
    await tab.waitFor({ timeout: 30_000 });
    const text = desk.workbench.page.locator('.multiDiffEntry .view-lines');
    await eventually('both sides of the diff', 30_000, async () => {
      const all = (await text.allTextContents()).join('\n').replaceAll('\u00a0', ' ');
      return all.includes('minutes = 4') && all.length > CHANGED.length * 2;
    });
    await desk.workbench.closeActiveTab();
    await desk.panel.tab('Conversation').click();
  });

  it('are put back after a question that says what would change', async () => {
    await desk.workbench.command('Drover: Changes by This Session');
    await desk.workbench.page
      .getByRole('tab', { name: /Changes by “/ })
      .first()
      .waitFor({ timeout: 30_000 });
    await desk.workbench.closeActiveTab();
    await desk.panel.frame.locator('.input.person').first().hover();
    await desk.panel.frame.getByRole('button', { name: 'Restore files to before this message' }).first().click();
    const question = desk.workbench.dialog(/back to how they were before/);
    await question.waitFor({ timeout: 30_000 });
    expect(await question.textContent()).toMatch(/1 file changes\..*src\/clock\.js is put back/s);
    await desk.workbench.answerDialog(/back to how they were before/, 'Restore Files');
    await eventually('the file as it was', 30_000, async () => (await clock()) === before);
    await desk.panel.frame.getByText(/Files put back by you, 1 file changed/).waitFor({ timeout: 20_000 });
  });

  it('come along with a fork, which says where it is from', async () => {
    const [first] = await desk.sessions();
    await openCard();
    await card().getByRole('button', { name: 'Fork session from here' }).click();
    const question = desk.workbench.dialog(/back to how they were after/);
    await question.waitFor({ timeout: 30_000 });
    await desk.workbench.answerDialog(/back to how they were after/, 'Restore Files');
    await eventually('the file as the call had left it', 30_000, async () => (await clock()) === CHANGED);
    expect(await desk.sessions()).toHaveLength(2);
    const records = await desk.records();
    expect(eventsOf(records, 'drover.forked_from').map((one) => one.session_id)).toEqual([first]);
    await desk.workbench.openSideBar();
    await desk.workbench.page
      .getByRole('treeitem', { name: /\(fork\).*fork of/ })
      .first()
      .waitFor({ timeout: 20_000 });
  });
});
