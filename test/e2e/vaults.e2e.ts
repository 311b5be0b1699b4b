import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CredentialId, SessionId } from '../../src/protocol/ids.ts';
import { placeholderFor } from '../../src/vault/placeholder.ts';
import { Desk } from '../support/desk.ts';
import { eventsOf } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { hasEnded } from '../support/play.ts';
import { written } from '../support/traces.ts';

const VALUE = 'npm_e2eSecretValue0123456789';
/** Made by chance, as a service's key is. */
const LOOKS_SECRET = 'q7Zt4mXw9Lr2Vb8Ns5Kd';
const LOOK = 'echo "found $NPM_TOKEN here"';

/** Answers the box that asks this, once it is there: the one before it may still be on the screen. */
async function answer({ workbench }: Desk, prompt: string, text: string): Promise<void> {
  await workbench.page.locator('.quick-input-widget', { hasText: prompt }).waitFor({ timeout: 20_000 });
  await workbench.type(text);
}

describe('a vault', () => {
  it('is made, filled and chosen by hand; its value is in no file, and what says it aloud is redacted', async () => {
    await using desk = await Desk.open();
    const { workbench } = desk;
    await workbench.command('Drover: Add Vault');
    await answer(desk, 'Secrets that belong together', 'Work');
    await workbench.treeRow('Work').first().waitFor({ timeout: 20_000 });
    await workbench.treeAction(workbench.treeRow('Work'), /Add Credential/);
    await workbench.pick('Environment variable');
    await answer(desk, 'Name of the variable', 'LD_PRELOAD');
    await workbench.page.getByText('is a name that steers programs').first().waitFor({ timeout: 10_000 });
    await workbench.type('NPM_TOKEN');
    await answer(desk, 'Hosts that may get NPM_TOKEN', 'api.example.com, *.example.org');
    await workbench.pick('In headers');
    await workbench.page.locator('.quick-input-widget', { hasText: 'never shown again' }).waitFor({ timeout: 20_000 });
    expect(await workbench.quickInput.getAttribute('type')).toBe('password');
    await workbench.type(VALUE);
    const row = workbench.treeRow(/NPM_TOKEN.*api\.example/);
    await row.first().waitFor({ timeout: 20_000 });
    expect(JSON.parse(await readFile(join(desk.folder, '.drover', 'catalog.json'), 'utf8')).credentials).toMatchObject([
      { auth: { secret_name: 'NPM_TOKEN' }, archived_at: null },
    ]);

    // The task says the value: a person's slip. It reaches neither the log nor the panel.
    await workbench.command('Drover: Start Session');
    await workbench.pick('Rehearsal');
    await workbench.pick('OS sandbox');
    await workbench.pick('Work');
    await workbench.page.keyboard.press('Enter');
    await answer(desk, 'in a sandbox of', `[rehearsal:say] publish with ${VALUE} please`);
    await desk.panel.root.waitFor({ timeout: 30_000 });
    await desk.panel.frame.getByText('publish with [redacted: NPM_TOKEN] please').first().waitFor({ timeout: 30_000 });
    const [created] = eventsOf(await desk.records(), 'drover.session_created');
    expect(created?.vault_ids).toEqual([expect.stringMatching(/^vlt_/)]);
    expect(eventsOf(await desk.records(), 'drover.secret_alarm').length).toBeGreaterThan(0);
    await workbench.notification('took NPM_TOKEN out').first().waitFor({ timeout: 20_000 });
    expect(await written(desk.folder)).not.toContain(VALUE);

    // What a program in the sandbox finds under the name: this session's placeholder.
    await workbench.command('Drover: Start Session');
    await workbench.pick('Rehearsal');
    await workbench.pick('Dev container');
    await workbench.pick('Work');
    await workbench.page.keyboard.press('Enter');
    await answer(desk, 'in a sandbox of', `[rehearsal:call tool=bash] ${JSON.stringify({ command: LOOK })}`);
    const result = await desk.record('the result', 120_000, ({ event }) => event.type === 'agent.tool_result');
    const [looked] = eventsOf(await desk.records(), 'drover.session_created');
    const { credentials } = JSON.parse(await readFile(join(desk.folder, '.drover', 'catalog.json'), 'utf8'));
    const placeholder = placeholderFor(SessionId.parse(looked?.session_id), CredentialId.parse(credentials[0].id));
    expect(JSON.stringify(result.event)).toContain(`found ${placeholder} here`);
    expect(await written(desk.folder)).not.toContain(VALUE);

    await workbench.treeAction(row, /Rotate/);
    await answer(desk, 'never shown again', 'npm_anotherSecretValue987');
    // A menu that was opened while the tree is drawn anew has lost its row, and the command asks which one.
    const archive = workbench.page.getByRole('button', { name: 'Archive', exact: true });
    await eventually('the question whether to archive', 30_000, async () => {
      await workbench.page.keyboard.press('Escape');
      await row.first().click({ button: 'right', timeout: 5_000 });
      await workbench.page.getByRole('menuitem', { name: /Archive Credential/ }).click({ timeout: 5_000 });
      await archive.waitFor({ timeout: 3_000 });
      return true;
    });
    await archive.click({ timeout: 10_000 });
    await workbench
      .treeRow(/NPM_TOKEN.*archived/)
      .first()
      .waitFor({ timeout: 20_000 });
    await eventually('the record to say archived', 10_000, async () =>
      /"archived_at": "20/.test(await readFile(join(desk.folder, '.drover', 'catalog.json'), 'utf8')),
    );
    expect(await written(desk.folder)).not.toMatch(/npm_(e2e|another)Secret/);
  });
});

describe('a value that only looks like a secret', () => {
  it('is masked until a person reveals it in the editor’s dialog, and counts for what the model reads next', async () => {
    await using desk = await Desk.open({
      change: async (folder) => writeFile(join(folder, '.env'), `PAYMENT_API_KEY=${LOOKS_SECRET}\n`),
    });
    const look = `[rehearsal:call tool=bash] ${JSON.stringify({ command: 'cat .env' })}`;
    await desk.start(look);
    const results = async () => eventsOf(await desk.records(), 'agent.tool_result').map((one) => JSON.stringify(one));
    await eventually('the first result', 120_000, async () => (await results()).length === 1);
    expect(await written(desk.folder)).not.toContain(LOOKS_SECRET);
    await desk.panel.frame.getByText('Reveal to model').first().click({ timeout: 30_000 });
    const question = desk.workbench.dialog(/Let the model see this/);
    await question.getByText('stays in this session’s log').waitFor({ timeout: 20_000 });
    await question.getByRole('button', { name: 'Reveal' }).click();
    await desk.record('the answer', 30_000, ({ event }) => event.type === 'drover.secret_revealed');
    await eventually('the session to be told', 60_000, () => hasEnded(desk));
    await desk.panel.say(look);
    await eventually('the second result', 120_000, async () => (await results()).length === 2);
    const [before = '', after = ''] = await results();
    expect(before).toContain('[masked: ');
    expect(after).toContain(`PAYMENT_API_KEY=${LOOKS_SECRET}`);
  });
});
