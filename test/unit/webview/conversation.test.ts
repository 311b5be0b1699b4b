import { describe, expect, it } from 'vitest';
import type { EventId } from '../../../src/protocol/ids.ts';
import { bigOutput, coloured, editPending, long, twoThreads, unsafeMessage } from '../../fixtures/panel/sessions.ts';
import { eventually } from '../../support/eventually.ts';
import { hasBrowser, oneDesk, type PanelDesk, words } from './desk.ts';

const top = (panel: PanelDesk) => panel.page.locator('.scroller').evaluate((scroller) => scroller.scrollTop);
const fromEnd = (panel: PanelDesk) =>
  panel.page.locator('.scroller').evaluate((it) => it.scrollHeight - it.scrollTop - it.clientHeight);

describe.skipIf(!hasBrowser)('the conversation', { timeout: 40_000 }, () => {
  const desk = oneDesk();

  it('opens a session of 10,000 events at its last message, with few rows in the page', async () => {
    const panel = await desk.panel();
    await panel.open(long(10_000), 1000);
    await panel.page.getByText('That was the last module.').waitFor();
    expect(await panel.page.locator('.row').count()).toBeLessThan(60);
    await panel.page.getByRole('tab', { name: 'Timeline' }).click();
    await panel.settle();
    expect(await panel.page.locator('.bar').count()).toBeLessThan(400);
  });

  it('stays where the person reads while more comes, and at the end if they were there', async () => {
    const panel = await desk.panel();
    const fixture = long(600);
    const rest = fixture.records.slice(500);
    await panel.open({ ...fixture, records: fixture.records.slice(0, 480) });
    await panel.host({ type: 'records', records: fixture.records.slice(480, 500), more: false });
    await panel.settle();
    expect(await fromEnd(panel)).toBeLessThan(3);
    await panel.page.mouse.move(700, 400);
    await panel.page.mouse.wheel(0, -900);
    await panel.settle();
    const before = await top(panel);
    await panel.host({ type: 'records', records: rest, more: false });
    await panel.settle();
    expect(await top(panel)).toBe(before);
    await panel.page.getByRole('button', { name: 'Jump to the latest' }).click();
    await panel.page.getByText('That was the last module.').waitFor();
  });

  it('comes back to the row that was being read', async () => {
    const first = await desk.panel();
    const fixture = long(900);
    await first.open(fixture);
    await first.page.mouse.move(700, 400);
    await first.page.mouse.wheel(0, -4000);
    await first.settle();
    await first.page.waitForTimeout(400);
    const place = (panel: PanelDesk) =>
      panel.page.evaluate(() => {
        const frame = document.querySelector('.scroller')?.getBoundingClientRect();
        const row = [...document.querySelectorAll('.row')].find(
          (one) => one.getBoundingClientRect().bottom > (frame?.top ?? 0) + 1,
        );
        return { key: row?.getAttribute('data-key'), y: Math.round((row?.getBoundingClientRect().top ?? 0) / 4) };
      });
    const before = await place(first);
    const second = await desk.panel({ saved: await first.page.evaluate(() => window.saved) });
    await second.open(fixture);
    await second.settle();
    expect(await place(second)).toEqual(before);
  });

  it('shows text and tool input as they stream, and the record in their place', async () => {
    const panel = await desk.panel();
    const fixture = editPending();
    const cut = fixture.records.findLastIndex((record) => record.event.type === 'span.model_request_start') + 1;
    await panel.open({ ...fixture, records: fixture.records.slice(0, cut) });
    const request = fixture.records[cut - 1]?.event.id as EventId;
    const message = fixture.records.findLast((record) => record.event.type === 'agent.message')?.event.id as EventId;
    const call = fixture.calls.edit as EventId;
    const thread = fixture.primary;
    await panel.host(
      { type: 'preview', preview: { type: 'start', thread, request, id: message, block: 'message' } },
      { type: 'preview', preview: { type: 'delta', thread, id: message, text: 'The discount **starts' } },
      { type: 'preview', preview: { type: 'start', thread, request, id: call, block: 'tool_use', name: 'edit' } },
      { type: 'preview', preview: { type: 'delta', thread, id: call, text: '{"file_path":"src/rec' } },
    );
    await panel.page.locator('.message.live', { hasText: 'The discount' }).waitFor();
    expect(await words(panel.page.locator('.card.live .summary'))).toBe('src/rec');
    await panel.picture('streaming');
    await panel.host(
      { type: 'records', records: fixture.records.slice(cut), more: false },
      { type: 'preview', preview: { type: 'end', thread, request } },
    );
    await panel.page.locator('.approval').waitFor();
    expect(await panel.page.locator('.live').count()).toBe(0);
    expect(await panel.page.getByText('The discount starts one piece too late').count()).toBe(1);
  });

  it('drops the previews of a request that ended without a reply', async () => {
    const panel = await desk.panel();
    const fixture = editPending();
    const cut = fixture.records.findLastIndex((record) => record.event.type === 'span.model_request_start') + 1;
    await panel.open({ ...fixture, records: fixture.records.slice(0, cut) });
    const request = fixture.records[cut - 1]?.event.id as EventId;
    const thread = fixture.primary;
    await panel.host(
      { type: 'preview', preview: { type: 'start', thread, request, id: 'sevt_gone' as EventId, block: 'message' } },
      { type: 'preview', preview: { type: 'delta', thread, id: 'sevt_gone' as EventId, text: 'half a sen' } },
    );
    await panel.page.getByText('half a sen').waitFor();
    await panel.host({ type: 'preview', preview: { type: 'end', thread, request } });
    await panel.settle();
    expect(await panel.page.getByText('half a sen').count()).toBe(0);
  });

  it('shows the output of a running command as it comes', async () => {
    const panel = await desk.panel();
    const fixture = bigOutput();
    await panel.open(fixture);
    const id = fixture.calls.open as EventId;
    await panel.host({
      type: 'preview',
      preview: {
        type: 'output',
        thread: fixture.primary,
        id,
        text: 'step 1\n\u001b[31mred\u001b[0m 10%\r\u001b[31mred\u001b[0m 99%\n',
      },
    });
    const tail = panel.page.locator('.tail', { hasText: 'step 1' });
    expect(await tail.textContent()).toBe('step 1\nred 99%');
    expect(await words(tail.locator('.fg-red'))).toBe('red');
  });

  it('says that an output was cut, and shows all of it when asked', async () => {
    const panel = await desk.panel();
    const fixture = bigOutput();
    await panel.open(fixture);
    await panel.page.getByRole('button', { name: /^bash seq 1 200000/ }).click();
    await panel.page.getByText('Only a part is shown; the whole output is 1.2 MiB.').waitFor();
    await panel.page.getByRole('button', { name: 'Show all' }).click();
    const [asked] = await panel.sentOf('read_blob');
    expect(asked?.blob.sha256).toBe('ab'.repeat(32));
    const text = Array.from({ length: 200_000 }, (_, i) => `${i + 1}\n`).join('');
    await panel.host({ type: 'blob', sha256: 'ab'.repeat(32), text, problem: null });
    await panel.page.getByRole('button', { name: /^Show more/ }).waitFor();
    expect(await panel.page.locator('.terminal', { hasText: /^1\n2\n3\n4\n/ }).count()).toBe(1);
  });

  it('shows output in the colours it was printed in, without being asked', async () => {
    const panel = await desk.panel();
    await panel.open(coloured());
    await panel.page.getByRole('button', { name: /^bash cargo test/ }).click();
    // Nobody clicks for it: it is asked for once the card is drawn open.
    const asked = await eventually(
      'the output to be asked for',
      5_000,
      async () => (await panel.sentOf('read_blob'))[0],
    );
    expect(asked.blob.sha256).toBe('cd'.repeat(32));
    await panel.page.locator('.terminal', { hasText: 'passed' }).waitFor();
    expect(await panel.page.getByRole('button', { name: 'Show all' }).count()).toBe(0);
    const text = '\u001b[32mpassed\u001b[0m\n';
    await panel.host({ type: 'blob', sha256: 'cd'.repeat(32), text, problem: null });
    await panel.page.locator('.terminal .fg-green', { hasText: 'passed' }).waitFor();
    expect(await panel.sentOf('read_blob')).toHaveLength(1);
  });

  it('names every outcome in words', async () => {
    const panel = await desk.panel({ height: 2400 });
    await panel.open(bigOutput());
    const words = await panel.page.locator('.card.call .standing').allTextContents();
    expect(words.map((one) => one.trim())).toEqual(
      expect.arrayContaining(['done', 'exit 1', 'lost: the sandbox died under it', 'denied']),
    );
    await panel.page.getByText('Keep the limit where it is and fix the test.').first().waitFor();
  });

  it('marks a message that waits in the queue', async () => {
    const panel = await desk.panel();
    await panel.open(twoThreads());
    const queued = panel.page.locator('.input.queued');
    expect(await words(queued)).toContain('Also mention the fix in the changelog, please.');
    expect(await words(queued)).toContain('queued');
    expect(await panel.page.locator('.row').last().locator('.input.queued').count()).toBe(1);
  });

  it('shows what a model wrote as text, whatever it wrote', async () => {
    const panel = await desk.panel();
    await panel.open(unsafeMessage());
    const message = panel.page.locator('.message').first();
    await message.getByText('<img src=x onerror=').waitFor();
    expect(await message.locator('img, script, iframe, style, [onerror], [style]').count()).toBe(0);
    expect(await message.locator('a').evaluateAll((links) => links.map((a) => a.getAttribute('href')))).toEqual([
      'https://example.com/beacon.png',
      'src/a%20b.ts',
    ]);
    await message.getByRole('link', { name: 'a file' }).click();
    expect(await panel.sentOf('open_file')).toEqual([{ type: 'open_file', path: 'src/a b.ts' }]);
    expect(panel.complaints).toEqual([]);
  });

  it('copies a block of code as it is', async () => {
    const panel = await desk.panel();
    await panel.open(editPending());
    await panel.page.getByRole('button', { name: 'Copy code' }).click();
    expect(await panel.sentOf('copy')).toEqual([
      { type: 'copy', text: 'if (pieces > 10) sum = sum * 0.9;   // ← never true for ten\n' },
    ]);
  });

  it('goes to an event that the host reveals, and tells its story', async () => {
    const panel = await desk.panel();
    const fixture = twoThreads();
    await panel.open(fixture);
    const result = fixture.records.find((record) => record.local?.outcome === 'failed')?.event.id as EventId;
    await panel.host({ type: 'reveal', id: result });
    await panel.settle();
    expect(await panel.page.evaluate(() => document.activeElement?.getAttribute('data-key'))).toBe(fixture.calls.test);
    const facts = await words(panel.page.locator('drover-inspector dl'));
    expect(facts).toMatch(/Asked by\s*coder/);
    expect(facts).toMatch(/Allowed by\s*you, in this panel/);
    expect(facts).toMatch(/Ran in\s*container 3f2a9c41d7e0, lost since/);
    expect(facts).toMatch(/Exit code\s*1/);
  });

  it('keeps the focus where it is while records come', async () => {
    const panel = await desk.panel();
    const fixture = bigOutput();
    await panel.open({ ...fixture, records: fixture.records.slice(0, -3) });
    const toggle = panel.page.getByRole('button', { name: /^bash seq 1 200000/ });
    await toggle.focus();
    await panel.host({ type: 'records', records: fixture.records.slice(-3), more: false });
    await panel.settle();
    expect(await panel.page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toContain(
      'seq 1 200000',
    );
  });
});
