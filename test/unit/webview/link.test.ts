import { describe, expect, it } from 'vitest';
import type { SessionId } from '../../../src/protocol/ids.ts';
import { editPending, noKey, twoThreads } from '../../fixtures/panel/sessions.ts';
import { hasBrowser, oneDesk, words } from './desk.ts';

const GONE = 'The extension host of this panel has stopped. Waiting for it to come back…';

describe.skipIf(!hasBrowser)('the panel and its host', { timeout: 40_000 }, () => {
  const desk = oneDesk();

  it('says ready every two seconds until it is answered, then gives up and says so', async () => {
    const panel = await desk.panel({ clock: true });
    await panel.page.clock.runFor(4_100);
    expect(await panel.sentOf('ready')).toHaveLength(3);
    await panel.page.clock.runFor(60_000);
    expect(await panel.sentOf('ready')).toHaveLength(15);
    await panel.page.getByText('The extension does not answer.').waitFor();
  });

  it('says at once that its host is gone, and stops taking input', async () => {
    const panel = await desk.panel();
    await panel.open(editPending());
    expect(await panel.page.getByText(GONE).count()).toBe(0);
    await panel.page.getByText(GONE).waitFor({ timeout: 6_000 });
    expect(await panel.page.getByRole('textbox', { name: 'Message' }).isDisabled()).toBe(true);
    await panel.page.keyboard.press('Control+Enter');
    expect(await panel.sentOf('confirm')).toEqual([]);
  });

  it('stays quiet while the host says that it is alive', async () => {
    const panel = await desk.panel();
    const fixture = editPending();
    await panel.open(fixture);
    for (let beat = 0; beat < 9; beat++) {
      await panel.page.waitForTimeout(500);
      await panel.host({ type: 'alive', now: fixture.now + beat });
    }
    expect(await panel.page.getByText(GONE).count()).toBe(0);
  });

  it('does not take the silence of a hidden panel for a death', async () => {
    const panel = await desk.panel();
    await panel.page.evaluate(() => Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' }));
    await panel.open(editPending());
    await panel.page.waitForTimeout(4_500);
    expect(await panel.page.getByText(GONE).count()).toBe(0);
  });

  it('is back with the next hello, without a trace of the old history', async () => {
    const panel = await desk.panel();
    await panel.open(twoThreads());
    await panel.page.getByText(GONE).waitFor({ timeout: 6_000 });
    await panel.open(noKey());
    expect(await panel.page.getByText(GONE).count()).toBe(0);
    expect(await words(panel.page.locator('.top h1'))).toBe('A first task');
    expect(await panel.page.locator('.branch').count()).toBe(1);
    expect(await panel.page.getByRole('textbox', { name: 'Message' }).isEnabled()).toBe(true);
  });

  it('follows another window read-only, says whose, and offers to take over', async () => {
    const panel = await desk.panel();
    await panel.open(editPending());
    await panel.host({
      type: 'access',
      access: { mode: 'follow', holder: 'process 4711 on workshop' },
      interrupted: false,
    });
    await panel.page.getByText('This window follows: the session is run by process 4711 on workshop.').waitFor();
    expect(await words(panel.page.locator('.words.status'))).toContain('Follows another window');
    expect(await panel.page.getByRole('textbox', { name: 'Message' }).isDisabled()).toBe(true);
    await panel.page.getByRole('button', { name: 'Take over' }).click();
    expect(await panel.sentOf('run')).toEqual([{ type: 'run', command: 'takeOver' }]);
  });

  it('says that a session was interrupted rather than working for ever', async () => {
    const panel = await desk.panel();
    const fixture = twoThreads();
    await panel.open({ ...fixture, records: fixture.records.slice(0, 12) });
    expect(await words(panel.page.locator('.words.status'))).toBe('Running');
    await panel.host({ type: 'access', access: { mode: 'write' }, interrupted: true });
    await panel.page.getByText('Interrupted: its window is gone').waitFor();
    expect(await panel.page.getByRole('button', { name: 'Interrupt', exact: true }).count()).toBe(0);
  });

  it('shows an exported session that was at work as it was at its last event, and lets no clock run', async () => {
    const panel = await desk.panel();
    const fixture = twoThreads();
    const started = fixture.records.findIndex(({ event }) => event.type === 'drover.tool_started');
    await panel.open({ ...fixture, records: fixture.records.slice(0, started + 1) });
    await panel.host({ type: 'access', access: { mode: 'read_only', why: 'It was imported.' }, interrupted: true });
    await panel.page.getByText('Read-only: at work until its last event').waitFor();
    await panel.page.getByText('was running at the last event').first().waitFor();
    const shown = await words(panel.page.locator('body'));
    await panel.page.waitForTimeout(1500);
    expect(await words(panel.page.locator('body'))).toBe(shown);
    expect(await panel.page.locator('.codicon-modifier-spin').count()).toBe(0);
  });

  it('offers a key or a rehearsal where there is no key', async () => {
    const panel = await desk.panel();
    await panel.open(noKey());
    await panel.page.getByRole('button', { name: 'Set API Key' }).click();
    await panel.page.getByRole('button', { name: 'Rehearse' }).click();
    expect(await panel.sentOf('run')).toEqual([
      { type: 'run', command: 'setApiKey' },
      { type: 'run', command: 'rehearse' },
    ]);
  });

  it('keeps a message until the host says that it is in the log', async () => {
    const panel = await desk.panel();
    await panel.open(editPending());
    const field = panel.page.getByRole('textbox', { name: 'Message' });
    await field.fill('one');
    await field.press('Shift+Enter');
    await field.pressSequentially('two');
    await field.press('Enter');
    expect(await panel.sentOf('send')).toEqual([{ type: 'send', n: 1, content: [{ type: 'text', text: 'one\ntwo' }] }]);
    await panel.host({ type: 'reply', to: 1, problem: 'The disk is full, so the message was not stored.' });
    await panel.page.getByText('The disk is full').waitFor();
    expect(await field.inputValue()).toBe('one\ntwo');
    await field.press('Enter');
    await panel.host({ type: 'reply', to: 2, problem: null });
    await panel.settle();
    expect(await field.inputValue()).toBe('');
  });

  it('saves what the serializer needs, and comes back where it was', async () => {
    const first = await desk.panel();
    const fixture = twoThreads();
    await first.open(fixture);
    await first.page.getByRole('treeitem', { name: /verifier/ }).click();
    await first.page.getByRole('textbox', { name: 'Message' }).fill('half a thought');
    const savedNow = () => first.page.evaluate(() => window.saved);
    await expect.poll(savedNow, { timeout: 5_000 }).toMatchObject({
      sessionId: 'sesn_fixture' as SessionId,
      thread: fixture.child,
      draft: 'half a thought',
    });
    const saved = await savedNow();
    const second = await desk.panel({ saved });
    await second.open(fixture);
    expect(await second.page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('half a thought');
    expect(await second.page.getByRole('treeitem', { selected: true }).getAttribute('data-thread')).toBe(fixture.child);
  });
});
