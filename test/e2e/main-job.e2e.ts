import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Desk } from '../support/desk.ts';
import { eventsOf } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { allowUntil, hasEnded } from '../support/play.ts';

const BUG = join('src', 'schedule.js');

/** One rehearsal from the palette to its end: each test looks at the next thing a person sees. */
describe('the main job', () => {
  let desk: Desk;
  let before: string;

  beforeAll(async () => {
    desk = await Desk.open();
    before = await readFile(join(desk.folder, BUG), 'utf8');
    expect(failingTests(desk.folder)).toBe(1);
  });
  afterAll(() => desk?.[Symbol.asyncDispose]());

  it('starts from the command palette and opens a panel of its own', async () => {
    await desk.workbench.command('Drover: Rehearse');
    await desk.panel.root.waitFor({ timeout: 60_000 });
    await desk.panel.thread(/./).first().waitFor({ timeout: 30_000 });
    expect(await desk.sessions()).toHaveLength(1);
    expect(await readFile(join(desk.folder, '.drover', '.gitignore'), 'utf8')).toContain('*');
  });

  it('asks before the edit: what, why and where, and nothing has changed until then', async () => {
    const card = await allowUntil(desk, /schedule\.js/, 90_000);
    expect(await card.textContent()).toMatch(/asks/);
    for (const name of [/^Allow(?! from)/, /^Allow from now on/, /^Deny/, /^Show diff/]) {
      expect(await card.getByRole('button', { name }).first().isEnabled()).toBe(true);
    }
    expect(await readFile(join(desk.folder, BUG), 'utf8')).toBe(before);
    expect(await hasEnded(desk)).toBe(false);
    await desk.workbench.statusBarItem(/1/).first().waitFor({ timeout: 10_000 });
  });

  it('shows the edit in the editor’s own diff view', async () => {
    await desk.panel
      .card(/schedule\.js/)
      .getByRole('button', { name: 'Show diff' })
      .click();
    const sides = desk.workbench.page.locator('.monaco-diff-editor .view-lines');
    await eventually('both sides of the diff', 20_000, async () => (await sides.count()) === 2);
    const [left, right] = await eventually('the text of the diff', 20_000, async () => {
      const texts = await sides.allTextContents();
      return texts[0] !== texts[1] && texts.every(Boolean) && texts;
    });
    expect(left).not.toBe(right);
    await desk.workbench.closeActiveTab();
  });

  it('goes on when Ctrl+Enter allows the card, and the change is on the disk', async () => {
    const card = desk.panel.card(/schedule\.js/);
    const given = await eventually('the answer', 30_000, async () => {
      const [answer] = eventsOf(await desk.records(), 'user.tool_confirmation');
      if (answer) return answer;
      // A card takes no key before it could be read.
      await card.focus({ timeout: 2_000 });
      await desk.workbench.page.keyboard.press('Control+Enter');
      return null;
    });
    expect(given.result).toBe('allow');
    await eventually('the change', 30_000, async () => (await readFile(join(desk.folder, BUG), 'utf8')) !== before);
  });

  it('works in a container of the folder’s devcontainer.json, with nothing to gain in it', async () => {
    const containers = await desk.containers();
    expect(containers).toHaveLength(1);
    const { HostConfig, Config } = await new Docker().getContainer(containers[0]?.Id ?? '').inspect();
    expect(Config.Labels['devcontainer.metadata']).toContain('"remoteUser":"dev"');
    expect(HostConfig.Privileged).toBe(false);
    expect(HostConfig.CapDrop).toEqual(['ALL']);
    expect(HostConfig.SecurityOpt).toContain('no-new-privileges');
    expect(HostConfig.Init).toBe(true);
  });

  it('shows the subagent in the tree, with its figures, and its own conversation on a click', async () => {
    await allowUntil(desk, null, 90_000);
    const child = desk.panel.thread(/Reviewer/);
    await child.waitFor({ timeout: 30_000 });
    expect(await child.getAttribute('aria-label')).toMatch(/Reviewer, .*\d+.* tokens.*\$/);
    expect(await child.getAttribute('aria-level')).toBe('2');
    await child.click();
    await desk.panel.frame.getByText(/A subagent of/).waitFor({ timeout: 10_000 });
    await desk.panel.thread(/./).first().click();
  });

  it('ends with the bug fixed: the sample’s own test passes', async () => {
    expect(await hasEnded(desk)).toBe(true);
    await desk.panel.message(/The bug is fixed/).waitFor({ timeout: 10_000 });
    expect(failingTests(desk.folder)).toBe(0);
  });

  it('draws a lane per thread, and a click on a bar tells its story', async () => {
    await desk.panel.tab('Timeline').click();
    const lanes = desk.panel.frame.locator('svg.lane');
    await eventually('a lane for each thread and the sandbox', 10_000, async () => (await lanes.count()) >= 3);
    await desk.panel.frame.locator('svg.lane .bar.tool').first().click();
    const story = await desk.panel.inspector.textContent({ timeout: 10_000 });
    for (const word of [/Asked by/i, /Ran in/i, /Took/i, /Outcome/i]) expect(story).toMatch(word);
    await desk.panel.inspector.getByRole('button', { name: /^#\d+/ }).first().click();
    expect(await desk.panel.inspector.locator('pre.json').first().textContent()).toContain('"seq"');
    await desk.panel.tab('Conversation').click();
  });

  it('has told everything in one log: who asked, who allowed, where it ran', async () => {
    const records = await desk.records();
    expect(records.map(({ seq }) => seq)).toEqual(records.map((_, n) => n));
    const started = eventsOf(records, 'drover.tool_started');
    const ready = eventsOf(records, 'drover.sandbox_ready');
    expect(ready).toHaveLength(1);
    expect(started.length).toBeGreaterThan(4);
    expect(eventsOf(records, 'agent.tool_result')).toHaveLength(eventsOf(records, 'agent.tool_use').length);
    const usage = eventsOf(records, 'session.usage');
    expect(usage.length).toBeGreaterThan(0);
  });

  it('takes a further message from the composer', async () => {
    await desk.panel.say('Thank you.');
    await desk.record('the message', 20_000, ({ event }) => JSON.stringify(event).includes('Thank you.'));
    await eventually('the session to end again', 30_000, () => hasEnded(desk));
    const said = eventsOf(await desk.records(), 'agent.message').length;
    expect(said).toBeGreaterThan(3);
  });
});

/** How many of the sample's tests fail, run in a container of the sample's image. */
function failingTests(folder: string): number {
  const mount = ['-v', `${folder}:/workspace`, '-w', '/workspace'];
  const args = ['run', '--rm', '--init', '--network', 'none', ...mount, 'drover-sample:latest', 'node', '--test'];
  let output: string;
  try {
    output = execFileSync('docker', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 });
  } catch (error) {
    output = String(error instanceof Error && 'stdout' in error ? error.stdout : error);
  }
  const failed = /^# fail (\d+)$/m.exec(output) ?? /^ℹ fail (\d+)$/m.exec(output);
  if (!failed) throw new Error(`The test run said nothing of failures:\n${output}`);
  return Number(failed[1]);
}
