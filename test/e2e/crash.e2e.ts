import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Desk } from '../support/desk.ts';
import { eventsOf } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { allowUntil, hasEnded } from '../support/play.ts';
import { extensionHosts, killExtensionHost } from '../support/processes.ts';

/** A test that takes a while, so that the tool that runs it can be caught in the middle. */
async function addSlowTest(folder: string): Promise<void> {
  await mkdir(join(folder, 'test'), { recursive: true });
  const slow = `import { test } from 'node:test';
test('takes its time', () => new Promise((resolve) => setTimeout(resolve, 6000)));
`;
  await writeFile(join(folder, 'test', 'slow.test.js'), slow);
}

const orphanSays = /extension host of this panel has stopped/;

describe('when the extension host dies', () => {
  it('in the middle of a running tool: the tool is not run again, and the session finishes', async () => {
    await using desk = await Desk.open({ change: addSlowTest });
    await desk.workbench.command('Drover: Rehearse');
    await allowFirst(desk, 'drover.tool_started');
    const started = await desk.record('a running bash', 60_000, (record) => {
      const [event] = eventsOf([record], 'drover.tool_started');
      return event !== undefined;
    });
    const [call] = eventsOf([started], 'drover.tool_started');
    const bash = await eventually('the running shell command', 60_000, async () => {
      const records = await desk.records();
      const uses = eventsOf(records, 'agent.tool_use').filter(({ name }) => name === 'bash');
      const open = eventsOf(records, 'drover.tool_started').find(({ tool_use_id }) =>
        uses.some(({ id }) => id === tool_use_id),
      );
      const done = eventsOf(records, 'agent.tool_result').some(({ tool_use_id }) => tool_use_id === open?.tool_use_id);
      return open && !done ? open : null;
    });
    expect(call).toBeDefined();

    await killExtensionHost(desk.server);

    const recovered = await eventually('the tool to be asked for', 60_000, async () =>
      eventsOf(await desk.records(), 'drover.tool_recovered').find(
        ({ tool_use_id }) => tool_use_id === bash.tool_use_id,
      ),
    );
    expect(['running', 'finished']).toContain(recovered.found);
    await allowUntil(desk, null, 120_000);

    const records = await desk.records();
    expect(eventsOf(records, 'drover.tool_started').filter((one) => one.tool_use_id === bash.tool_use_id)).toHaveLength(
      1,
    );
    const result = records.find(
      ({ event }) =>
        'tool_use_id' in event && event.type === 'agent.tool_result' && event.tool_use_id === bash.tool_use_id,
    );
    expect(result?.local?.outcome).not.toBe('unknown');
    expect(eventsOf(records, 'agent.message').length).toBeGreaterThan(0);
    await desk.panel.message(/The bug is fixed/).waitFor({ timeout: 20_000 });
    expect(await droverTabs(desk)).toBe(1);
  });

  it('while an approval is pending: the panel is replaced in its place, the card is back and works', async () => {
    await using desk = await Desk.open();
    await desk.workbench.command('Drover: Rehearse');
    const card = await allowUntil(desk, /schedule\.js/, 90_000);
    const asked = await card.getAttribute('data-call');

    await killExtensionHost(desk.server);

    await desk.record('a second waking', 60_000, ({ fence }) => fence > 1).catch(() => undefined);
    const again = await eventually('the card in a live panel', 60_000, async () => {
      if (await desk.panel.frame.getByText(orphanSays).isVisible()) return null;
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
      await desk.panel.frame.getByText(orphanSays).waitFor({ timeout: 15_000 });
      expect(await desk.panel.composer.isDisabled()).toBe(true);
    } finally {
      for (const pid of hosts) process.kill(pid, 'SIGCONT');
    }
    await desk.panel.frame.getByText(orphanSays).waitFor({ state: 'hidden', timeout: 30_000 });
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

/** Allows what is asked until the log has an event of this type: whether the first command asks is the agent's setting. */
async function allowFirst(desk: Desk, type: string): Promise<void> {
  await eventually(type, 90_000, async () => {
    if ((await desk.records()).some(({ event }) => event.type === type)) return true;
    const card = desk.panel.card().first();
    if (await card.isVisible()) await card.getByRole('button', { name: /^Allow(?! from)/ }).click({ timeout: 2_000 });
    return false;
  });
}
