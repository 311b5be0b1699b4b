import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { Desk } from '../support/desk.ts';
import { eventsOf } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { allowUntil, hasEnded } from '../support/play.ts';
import { extensionHosts, killExtensionHost } from '../support/processes.ts';

/** What a panel shows whose extension host has fallen silent. */
const orphan = (desk: Desk): Locator =>
  desk.panel.frame.locator('.banner', { hasText: 'The extension host of this panel has stopped' });

describe('when the extension host dies', () => {
  it('in the middle of a running tool: the tool runs on, is not started again, and the session finishes', async () => {
    await using desk = await Desk.open();
    await desk.start('[rehearsal:long-command seconds=12] Go.');
    const trace = join(desk.folder, 'long-command.txt');
    await eventually('the command to be at work', 60_000, () => readFile(trace, 'utf8'));
    const [started] = eventsOf(await desk.records(), 'drover.tool_started');
    expect(eventsOf(await desk.records(), 'agent.tool_result')).toEqual([]);

    await killExtensionHost(desk.server);

    const recovered = await eventually('the new host to ask what became of it', 60_000, async () =>
      eventsOf(await desk.records(), 'drover.tool_recovered').at(0),
    );
    expect(recovered.tool_use_id).toBe(started?.tool_use_id);
    expect(['running', 'finished']).toContain(recovered.found);
    await eventually('the session to end', 60_000, () => hasEnded(desk));

    const result = (await desk.records()).find(({ event }) => event.type === 'agent.tool_result');
    expect(result?.local?.outcome).toBe('ok');
    expect(JSON.stringify(result?.event)).toContain('done after 12 s');
    expect(await readFile(trace, 'utf8')).toBe('started\n');
    await desk.panel.message(/The command ended and said/).waitFor({ timeout: 20_000 });
    expect(await desk.workbench.tabs.count()).toBe(1);
  });

  it('while an approval is pending: the panel is replaced in its place, the card is back and works', async () => {
    await using desk = await Desk.open();
    await desk.workbench.command('Drover: Rehearse');
    const card = await allowUntil(desk, /schedule\.js/, 90_000);
    const asked = await card.getAttribute('data-call');

    await killExtensionHost(desk.server);

    const again = await eventually('the card in a live panel', 60_000, async () => {
      if (await orphan(desk).isVisible()) return null;
      const call = await desk.panel
        .card(/schedule\.js/)
        .first()
        .getAttribute('data-call', { timeout: 2_000 });
      return call;
    });
    expect(again).toBe(asked);
    expect(await droverTabs(desk)).toBe(1);
    await allowUntil(desk, null, 120_000);
    expect(
      eventsOf(await desk.records(), 'user.tool_confirmation').filter((one) => one.tool_use_id === asked),
    ).toHaveLength(1);
  });

  it('and does not come back: the panel says so, and says so no more once it is there again', async () => {
    await using desk = await Desk.open();
    await desk.workbench.command('Drover: Rehearse');
    await allowUntil(desk, /schedule\.js/, 90_000);
    const hosts = extensionHosts(desk.server);
    for (const pid of hosts) process.kill(pid, 'SIGSTOP');
    try {
      await orphan(desk).waitFor({ timeout: 15_000 });
      expect(await desk.panel.composer.isDisabled()).toBe(true);
    } finally {
      for (const pid of hosts) process.kill(pid, 'SIGCONT');
    }
    await orphan(desk).waitFor({ state: 'hidden', timeout: 30_000 });
    await allowUntil(desk, null, 120_000);
  });
});

describe('when the window is reloaded', () => {
  it('the panel is restored with its session, and an approval still works', async () => {
    await using desk = await Desk.open();
    await desk.workbench.command('Drover: Rehearse');
    await allowUntil(desk, /schedule\.js/, 90_000);
    // VS Code's web build writes its storage with a delay, and what it has not written a reload forgets.
    await desk.workbench.page.waitForTimeout(8_000);
    await desk.workbench.reload();
    await desk.panel.card(/schedule\.js/).waitFor({ timeout: 60_000 });
    expect(await droverTabs(desk)).toBe(1);
    await allowUntil(desk, null, 120_000);
    expect(await hasEnded(desk)).toBe(true);
  });
});

const droverTabs = (desk: Desk): Promise<number> => desk.workbench.tabs.filter({ hasText: /Rehearsal/ }).count();
