import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Desk } from '../support/desk.ts';
import { eventsOf } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { allowUntil, hasEnded } from '../support/play.ts';

describe('an approval', () => {
  it('is given from the Sessions tree with its inline button', async () => {
    await using desk = await Desk.open();
    await desk.workbench.command('Drover: Rehearse');
    await allowUntil(desk, /schedule\.js/, 90_000);
    await desk.workbench.openSideBar();
    await desk.workbench.treeAction(desk.workbench.treeRow(/schedule\.js/), /Allow/);
    await desk.record('the answer', 20_000, (record) => {
      const [given] = eventsOf([record], 'user.tool_confirmation');
      return given?.result === 'allow' && JSON.stringify(record.local?.actor ?? {}).includes('sidebar');
    });
    await allowUntil(desk, null, 90_000);
  });

  it('is denied with a reason by the keyboard: nothing is changed, and the agent reads the reason', async () => {
    await using desk = await Desk.open();
    const before = await readFile(join(desk.folder, 'src/schedule.js'), 'utf8');
    await desk.workbench.command('Drover: Rehearse');
    const card = await allowUntil(desk, /schedule\.js/, 90_000);
    const reason = card.getByRole('textbox');
    await eventually('the field for the reason', 20_000, async () => {
      if (await reason.isVisible()) return true;
      await card.focus({ timeout: 2_000 });
      await desk.workbench.page.keyboard.press('Control+Backspace');
      return false;
    });
    await reason.fill('Leave the schedule alone today.');
    await reason.press('Enter');
    const denied = await eventually('the denial', 20_000, async () =>
      eventsOf(await desk.records(), 'user.tool_confirmation').find(({ result }) => result === 'deny'),
    );
    expect(denied.deny_message).toBe('Leave the schedule alone today.');
    await eventually('the session to end', 60_000, () => hasEnded(desk));
    const results = (await desk.records()).filter(({ event }) => event.type === 'agent.tool_result');
    const answer = results.find(({ local }) => local?.outcome === 'denied');
    expect(JSON.stringify(answer?.event)).toContain('Leave the schedule alone today.');
    expect(await readFile(join(desk.folder, 'src/schedule.js'), 'utf8')).toBe(before);
    await desk.panel.frame.getByText('Denied by you.').first().waitFor({ timeout: 10_000 });
  });

  it('is asked for in a notification when no panel is in view, and given there', async () => {
    await using desk = await Desk.open();
    await desk.workbench.command('Drover: Rehearse');
    await allowUntil(desk, /schedule\.js/, 90_000);
    await desk.workbench.closeActiveTab();
    await desk.workbench.answer(/asks.*schedule\.js/, 'Allow');
    await eventually('the session to end', 90_000, () => hasEnded(desk));
    const given = (await desk.records()).filter(({ event }) => event.type === 'user.tool_confirmation');
    expect(JSON.stringify(given.at(-1)?.local)).toContain('notification');
  });

  it('is given from the palette: Approve Next', async () => {
    await using desk = await Desk.open();
    await desk.workbench.command('Drover: Rehearse');
    await allowUntil(desk, /schedule\.js/, 90_000);
    await desk.workbench.command('Drover: Approve Next');
    await desk.record('the answer', 20_000, ({ event, local }) => {
      return event.type === 'user.tool_confirmation' && JSON.stringify(local ?? {}).includes('command');
    });
    await allowUntil(desk, null, 90_000);
  });
});
