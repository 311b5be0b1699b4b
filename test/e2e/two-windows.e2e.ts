import { describe, expect, it } from 'vitest';
import { Desk } from '../support/desk.ts';
import { eventsOf } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { PanelPage } from '../support/panel-page.ts';
import { allowButton, allowUntil, hasEnded } from '../support/play.ts';
import { Workbench } from '../support/workbench.ts';

describe('two windows on one folder', () => {
  it('the second follows live and may not write, takes over, and finishes; the first follows then', async () => {
    await using desk = await Desk.open();
    await desk.start('[rehearsal:call tool=write] {"file_path": "two.txt", "content": "windows\\n"}');
    await allowUntil(desk, /two\.txt/, 90_000);

    const browser = desk.workbench.page.context().browser();
    if (!browser) throw new Error('The desk has a browser.');
    const second = await Workbench.open(browser, desk.server, desk.folder);
    const panel = new PanelPage(second);
    await second.command('Drover: Open Session');
    await panel.frame.getByText(/Follows another window/).waitFor({ timeout: 60_000 });
    const card = panel.card(/two\.txt/).first();
    await card.waitFor({ timeout: 20_000 });
    expect(await allowButton(card).isDisabled()).toBe(true);

    await desk.panel.say('One more thing.');
    await panel.frame.getByText('One more thing.').first().waitFor({ timeout: 20_000 });

    await panel.frame.getByRole('button', { name: 'Take over' }).click();
    await desk.panel.frame.getByText(/Follows another window/).waitFor({ timeout: 30_000 });
    await eventually('the answer in the second window to count', 60_000, async () => {
      if (await card.isVisible()) await allowButton(card).click({ timeout: 2_000 });
      return await hasEnded(desk);
    });

    const records = await desk.records();
    expect(records.map(({ seq }) => seq)).toEqual(records.map((_, n) => n));
    expect(Math.max(...records.map(({ fence }) => fence))).toBeGreaterThan(1);
    expect(eventsOf(records, 'user.tool_confirmation')).toHaveLength(1);
    expect(records.find(({ event }) => event.type === 'agent.tool_result')?.local?.outcome).toBe('ok');
    await second.close();
  });
});
