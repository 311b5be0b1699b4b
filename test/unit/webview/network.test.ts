import { describe, expect, it } from 'vitest';
import type { EventOf } from '../../../src/protocol/event.ts';
import { type ExecutionId, mint } from '../../../src/protocol/ids.ts';
import type { LogRecord } from '../../../src/protocol/record.ts';
import { twoThreads } from '../../fixtures/panel/sessions.ts';
import { hasBrowser, oneDesk, words } from './desk.ts';
import { lowContrast, nameless } from './readable.ts';
import { themeKinds } from './themes.ts';

type Entry = Partial<EventOf<'drover.egress'>> & Pick<EventOf<'drover.egress'>, 'host' | 'execution_id'>;

/** A session of which one call was on the network, and something that belongs to none. */
function networked() {
  const fixture = twoThreads();
  const started = fixture.records.flatMap(({ event }) =>
    event.type === 'drover.tool_started' && 'execution_id' in event ? [event as EventOf<'drover.tool_started'>] : [],
  );
  const call = started.at(-1);
  if (!call) throw new Error('The fixture has no call.');
  const add = (entry: Entry) => {
    const last = fixture.records.at(-1) as LogRecord;
    const event = {
      id: mint.event(),
      type: 'drover.egress' as const,
      processed_at: last.at,
      scheme: 'https' as const,
      port: 443,
      method: 'GET',
      path: '/',
      status: 200,
      bytes_out: 0,
      bytes_in: 2048,
      duration_ms: 5,
      verdict: 'allowed' as const,
      reason: null,
      credential_ids: [],
      count: 1,
      ...entry,
    };
    const { thread: _, local: __, ...base } = last;
    fixture.records.push({ ...base, seq: last.seq + 1, event });
  };
  const execution_id: ExecutionId = call.execution_id;
  add({ host: 'api.test', execution_id, path: '/v1/me?…', credential_ids: ['cred_1'], count: 3 });
  const stopped = { verdict: 'refused', reason: 'not_listed', status: 403, bytes_in: 0 } as const;
  add({ host: 'evil.test', execution_id, method: 'CONNECT', path: null, ...stopped });
  add({ host: 'api.test', execution_id: null, bytes_out: 1024, bytes_in: 0 });
  return { fixture, call };
}

describe.skipIf(!hasBrowser)('the network in the panel', { timeout: 40_000 }, () => {
  const desk = oneDesk();

  it('sums connections by host, and is reached by arrows', async () => {
    const panel = await desk.panel();
    await panel.open(networked().fixture);
    await panel.page.getByRole('tab', { name: 'Conversation' }).focus();
    await panel.page.keyboard.press('ArrowLeft');
    const table = panel.page.getByRole('table', { name: 'Hosts' });
    await table.waitFor();
    const rows = await table.getByRole('row').allInnerTexts();
    const cells = rows.map((row) => row.split('\t').map((cell) => cell.trim()));
    expect(cells.slice(1)).toEqual([
      ['api.test:443', '4', '1.0 KiB', '2.0 KiB', 'cred_1', ''],
      ['evil.test:443', '1', '0 bytes', '0 bytes', '', '1: not among the allowed hosts'],
    ]);
    await panel.page.keyboard.press('ArrowRight');
    expect(await panel.page.getByRole('tab', { name: 'Conversation' }).getAttribute('aria-selected')).toBe('true');
  });

  it('lists what a call connected to in the story of the call, with its records', async () => {
    const panel = await desk.panel();
    const { fixture, call } = networked();
    await panel.open(fixture);
    await panel.host({ type: 'reveal', id: call.tool_use_id });
    const list = panel.page.locator('drover-inspector .call-network li');
    await list.first().waitFor();
    expect((await list.allInnerTexts()).map((line) => line.replaceAll(/\s+/g, ' ').trim())).toEqual([
      'GET api.test:443/v1/me?… × 3 → 200 0 bytes out, 2.0 KiB in, with cred_1',
      'CONNECT evil.test:443 → 403 0 bytes out, 0 bytes in, refused: not among the allowed hosts',
    ]);
    expect(await words(panel.page.locator('drover-inspector'))).toMatch(/drover\.egress.*drover\.egress/s);
  });

  it.each(themeKinds)('can be read in the theme %s, and everything has a name', async (theme) => {
    const panel = await desk.panel({ theme });
    await panel.open(networked().fixture);
    await panel.page.getByRole('tab', { name: 'Network' }).click();
    await panel.page.getByRole('table', { name: 'Hosts' }).waitFor();
    expect(await panel.page.evaluate(lowContrast, 4.5)).toEqual([]);
    expect(await panel.page.evaluate(nameless)).toEqual([]);
  });
});
