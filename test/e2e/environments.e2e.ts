import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Desk } from '../support/desk.ts';
import { eventually } from '../support/eventually.ts';
import { allowButton, hasEnded } from '../support/play.ts';

const call = (command: string): string => `[rehearsal:call tool=bash] ${JSON.stringify({ command })}`;

/** Fills the form that is open, by the names of what it offers, and creates the environment. */
async function create(desk: Desk, name: string, choices: readonly RegExp[]): Promise<void> {
  await desk.workbench.command('Drover: New Environment');
  const form = desk.workbench.panel.locator('drover-environment');
  await form.getByRole('heading', { name: 'New environment' }).waitFor({ timeout: 30_000 });
  await form.getByRole('textbox', { name: 'Name' }).fill(name);
  for (const choice of choices) await form.getByRole('radio', { name: choice }).check();
  await form.getByRole('button', { name: 'Create' }).click();
}

describe('an environment', () => {
  it('is made in its form, which says what is wrong; a session in it works on a copy, and its changes are applied by hand', async () => {
    await using desk = await Desk.open();
    const { workbench } = desk;
    await create(desk, 'OS sandbox', [/^OS sandbox/, /^On a copy/]);
    const form = workbench.panel.locator('drover-environment');
    await form.getByText('Another environment of this folder has this name.').waitFor({ timeout: 10_000 });
    await form.getByRole('textbox', { name: 'Name' }).fill('On a copy');
    await form.getByRole('button', { name: 'Create' }).click();
    await eventually('the environment to be saved', 20_000, async () => {
      const text = await readFile(join(desk.folder, '.drover', 'catalog.json'), 'utf8').catch(() => '{}');
      const { environments = [] } = JSON.parse(text);
      return environments.some(
        (one: { name: string; workspace?: string }) => one.name === 'On a copy' && one.workspace === 'isolated',
      );
    });

    await desk.start(call('echo made >made.txt; echo more >>README.md'), { environment: 'On a copy' });
    await eventually('the session to end', 60_000, () => hasEnded(desk));
    expect(await readdir(desk.folder)).not.toContain('made.txt');

    await workbench.command('Drover: Review Changes');
    await workbench.tabs.filter({ hasText: 'Changes by' }).first().waitFor({ timeout: 20_000 });
    await workbench.command('Drover: Apply Changes');
    const list = workbench.page.locator('.quick-input-widget');
    await list.getByText('made.txt').first().waitFor({ timeout: 20_000 });
    await list.getByRole('button', { name: 'OK' }).click();
    await eventually('the change in the folder', 20_000, async () => (await readdir(desk.folder)).includes('made.txt'));
    expect(await readFile(join(desk.folder, 'made.txt'), 'utf8')).toBe('made\n');
    await desk.record('what was applied', 10_000, ({ event }) => event.type === 'drover.changes_applied');

    // What was not applied is not lost unasked.
    const [work] = (await readdir(join(desk.folder, '.drover', 'work'))).filter((name) => !name.includes('.'));
    await writeFile(join(desk.folder, '.drover', 'work', work ?? '', 'late.txt'), 'late\n');
    await workbench.command('Drover: Archive Session');
    await workbench.answerDialog(/lose 1 file it has changed/, 'Lose Them');
    await desk.record('its copy to be gone', 20_000, ({ event }) => event.type === 'drover.workspace_discarded');
    await eventually('the copy to be gone', 20_000, async () => {
      return (await readdir(join(desk.folder, '.drover', 'work'))).length === 0;
    });
  });

  it('without a sandbox says so wherever it is used, and asks before every call', async () => {
    await using desk = await Desk.open();
    await create(desk, 'Right here', [/no sandbox/]);
    await desk.start(call('pwd >where.txt'), { environment: 'Right here' });
    const card = desk.panel.card().first();
    await card.waitFor({ timeout: 60_000 });
    await card.getByText('on this machine itself, without a sandbox').waitFor({ timeout: 5_000 });
    expect(await card.getByRole('button', { name: 'Allow from now on' }).count()).toBe(0);
    await desk.panel.frame.getByText('Right here: no sandbox, on this machine').waitFor({ timeout: 5_000 });
    expect(await readdir(desk.folder)).not.toContain('where.txt');
    await eventually('the answer to be taken', 20_000, async () => {
      await allowButton(card)
        .click({ timeout: 2_000 })
        .catch(() => undefined);
      return await hasEnded(desk);
    });
    expect((await readFile(join(desk.folder, 'where.txt'), 'utf8')).trim()).toBe(desk.folder);
  });
});
