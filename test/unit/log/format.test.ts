import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ready, serialize } from '../../../src/log/serialize.ts';
import { text } from '../../../src/protocol/content.ts';
import { EventId, SessionId, ThreadId } from '../../../src/protocol/ids.ts';
import { type Draft, draft } from '../../../src/protocol/record.ts';
import { created, independentHash, linesOf, newSession, opened, said, temporary } from './kit.ts';

const V1 = join(import.meta.dirname, 'fixtures/v1/log.jsonl');
const id = SessionId.parse('sesn_golden');
const thread = ThreadId.parse('sthr_primary');
const event = (n: number) => ({ id: EventId.parse(`sevt_${n}`) });

/** One of each thing a line can hold: thread or none, local or none, queued or not, characters that break readers. */
const drafts: Draft[] = [
  { ...created(id, thread), event: { ...created(id, thread).event, ...event(0) } },
  draft(
    'user.message',
    { content: [text('line\nbreak, "quotes", \u2028, \ud83d\udc11, \ud800')] },
    { thread, queued: true, ...event(1) },
  ),
  draft('session.status_running', {}, event(2)),
  draft('drover.event_processed', { event_id: EventId.parse('sevt_1') }, { thread, ...event(3) }),
  draft(
    'agent.message',
    { content: [text('done')] },
    { thread, ...event(4), local: { reply: { span: EventId.parse('sevt_9'), index: 0 } } },
  ),
];

describe('the format', () => {
  it('writes version 1 exactly as the fixture has it, byte for byte', async () => {
    const root = join(await temporary(), '.drover');
    const store = opened({
      root,
      now: () => new Date('2026-11-30T15:04:05.123Z'),
      holder: { pid: 4711, host: 'golden' },
    });
    const writer = await store.create(id, drafts.slice(0, 1));
    await writer.append(drafts.slice(1, 3));
    await writer.append(drafts.slice(3), { sync: false });
    await writer.release();
    const log = readFileSync(join(root, 'sessions', id, 'log.jsonl'));
    expect(log.toString()).toBe(readFileSync(V1, 'utf8'));
  });

  it('reads a log of version 1 for ever', async () => {
    const root = await temporary();
    mkdirSync(join(root, 'sessions', id), { recursive: true });
    copyFileSync(V1, join(root, 'sessions', id, 'log.jsonl'));
    const reading = await opened({ root }).read(id);
    expect(reading).toMatchObject({ damage: [], tornBytes: 0, stale: 0, newer: false });
    expect(reading.records.map((record) => record.event.type)).toEqual([
      'drover.session_created',
      'user.message',
      'session.status_running',
      'drover.event_processed',
      'agent.message',
    ]);
    expect(reading.records[1]).toMatchObject({
      seq: 1,
      thread: 'sthr_primary',
      fence: 1,
      event: { processed_at: null },
    });
    expect(reading.records[2]?.thread).toBeUndefined();
  });

  it('ends every line with the hash of the bytes before it, and names the hash before as prev', async () => {
    const { log, writer } = await newSession(['one', 'two \u2028 \ud83d\udc11', 'three']);
    await writer.release();
    let prev = '';
    for (const [seq, one] of linesOf(log).entries()) {
      const cut = one.lastIndexOf(',"hash":');
      const hash = independentHash(Buffer.from(one.slice(0, cut)));
      expect(one.slice(cut)).toBe(`,"hash":"${hash}"}`);
      expect(JSON.parse(one)).toMatchObject({ v: 1, seq, prev, fence: 1 });
      prev = hash;
    }
  });

  it('stamps what says nothing of processed_at with the append time, and leaves null alone', async () => {
    const { writer } = await newSession();
    const [now, queued] = await writer.append([said('now'), draft('user.message', { content: [] }, { queued: true })]);
    expect(now?.event.processed_at).toBe(now?.at);
    expect(queued?.event.processed_at).toBeNull();
  });

  it('returns from append what a reader finds in the file', async () => {
    const { writer } = await newSession();
    const appended = await writer.append([
      said('one'),
      draft(
        'session.error',
        { error: { type: 'x_error', message: 'm', retry_status: { type: 'terminal' } } },
        { thread },
      ),
    ]);
    const { records } = await writer.read();
    expect(records.slice(1)).toStrictEqual(appended);
  });

  it('never emits a raw newline, whatever the text', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' }), { minLength: 1, maxLength: 5 }), (says) => {
        const at = '2026-11-30T12:00:00.000Z';
        const { bytes, records } = serialize(
          says.map((what) => ready(said(what), at)),
          { seq: 4, hash: 'h' },
          2,
          at,
        );
        const lines = bytes.toString().split('\n');
        expect(lines.pop()).toBe('');
        expect(lines.map((one) => JSON.parse(one))).toStrictEqual(records);
      }),
    );
  });
});
