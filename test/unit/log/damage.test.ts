import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AppendFailed, SessionMissing } from '../../../src/log/log.ts';
import { Scanner } from '../../../src/log/scan.ts';
import { SessionId } from '../../../src/protocol/ids.ts';
import { draft } from '../../../src/protocol/record.ts';
import {
  addBytes,
  closedSession,
  line,
  linesOf,
  newSession,
  opened,
  said,
  snapshot,
  texts,
  writeLines,
} from './kit.ts';

const SAYS = ['a', 'b', 'c', 'd', 'e'];

/** Replaces `from` by `to` in the file, byte for byte. */
function patch(log: string, from: string, to: string | Uint8Array): void {
  const bytes = readFileSync(log);
  const at = bytes.indexOf(from);
  expect(at).toBeGreaterThan(-1);
  writeFileSync(
    log,
    Buffer.concat([bytes.subarray(0, at), Buffer.from(to), bytes.subarray(at + Buffer.byteLength(from))]),
  );
}

const cutLast = (log: string, bytes: number): void => {
  const all = readFileSync(log);
  writeFileSync(log, all.subarray(0, all.length - bytes));
};

describe('the end of a log', () => {
  it('passes over a torn tail and says how many bytes it has', async () => {
    const { store, id, log } = await closedSession(SAYS);
    const last = linesOf(log).at(-1) ?? '';
    cutLast(log, 30);
    const reading = await store.read(id);
    expect(texts(reading.records)).toEqual(['a', 'b', 'c', 'd']);
    expect(reading).toMatchObject({ damage: [], tornBytes: Buffer.byteLength(last) + 1 - 30 });
  });

  it('counts a whole record that lacks only its newline', async () => {
    const { store, id, log } = await closedSession(SAYS);
    cutLast(log, 1);
    expect(await store.read(id)).toMatchObject({ damage: [], tornBytes: 0 });
    const writer = await store.acquire(id, 'test');
    await writer.append([said('f')]);
    const { records, damage } = await writer.read();
    expect(texts(records)).toEqual([...SAYS, 'f']);
    expect(damage).toEqual([]);
    expect(linesOf(log)).toHaveLength(records.length);
  });

  it('is mended by the next holder, who keeps the torn bytes and says so in the log', async () => {
    const { store, id, log, folder } = await closedSession(SAYS);
    cutLast(log, 30);
    const bytes = readFileSync(log);
    const start = bytes.lastIndexOf(0x0a) + 1;
    const writer = await store.acquire(id, 'test');
    const kept = readdirSync(folder).filter((name) => name.startsWith('torn-'));
    expect(kept).toEqual([`torn-${start}-1.bin`]);
    expect(readFileSync(join(folder, kept[0] ?? ''))).toEqual(bytes.subarray(start));
    const { records, damage, tornBytes } = await writer.read();
    expect({ damage, tornBytes }).toEqual({ damage: [], tornBytes: 0 });
    expect(records.slice(-3).map(({ event }) => event)).toMatchObject([
      { type: 'drover.woke', why: 'test' },
      { type: 'drover.log_damaged', range: [start, start], reason: expect.stringContaining('1 saved record is gone') },
      { type: 'drover.log_damaged', range: [start, bytes.length], reason: expect.stringContaining(kept[0] ?? 'none') },
    ]);
  });

  it('keeps both tails if the same place is torn twice', async () => {
    const { store, id, log, folder } = await closedSession(SAYS);
    const whole = readFileSync(log);
    for (const rest of ['{"v":1,"se', '{"v":1,"seq":']) {
      writeFileSync(log, Buffer.concat([whole, Buffer.from(rest)]));
      await (await store.acquire(id, 'test')).release();
    }
    const kept = readdirSync(folder)
      .filter((name) => name.startsWith('torn-'))
      .sort();
    expect(kept.map((name) => readFileSync(join(folder, name), 'utf8'))).toEqual(['{"v":1,"se', '{"v":1,"seq":']);
  });

  it('recovers a whole record that stands behind a torn one on the same line', async () => {
    const { store, id, log } = await closedSession(SAYS);
    const lines = linesOf(log);
    const half = '{"v":1,"seq":6,"at":"2026-11-30T12:00:00.000Z","fence":1,"prev":"x","event":{"id":"sevt_x","ty';
    writeLines(log, [...lines.slice(0, -1), `${half}${lines.at(-1)}`]);
    const { records, damage } = await store.read(id);
    expect(texts(records)).toEqual(SAYS);
    const start = lines.slice(0, -1).reduce((sum, one) => sum + Buffer.byteLength(one) + 1, 0);
    expect(damage).toEqual([{ range: [start, start + half.length], reason: 'bytes that are no record' }]);
  });

  it('keeps a whole record with torn bytes behind it, and cuts off only those', async () => {
    const { store, id, log } = await closedSession(SAYS);
    cutLast(log, 1);
    addBytes(log, '{"v":1,"seq":');
    expect((await store.read(id)).tornBytes).toBe(13);
    const writer = await store.acquire(id, 'test');
    const { records, damage, tornBytes } = await writer.read();
    expect(texts(records)).toEqual(SAYS);
    expect({ damage, tornBytes }).toEqual({ damage: [], tornBytes: 0 });
  });

  it('takes a run of zeros at the end, as a power cut leaves it, for a torn tail', async () => {
    const { store, id, log } = await closedSession(SAYS);
    addBytes(log, Buffer.alloc(4096));
    const reading = await store.read(id);
    expect(texts(reading.records)).toEqual(SAYS);
    expect(reading.tornBytes).toBe(4096);
  });
});

describe('a damaged middle', () => {
  it('skips a run of zeros over two records and keeps both sides', async () => {
    const { store, id, log } = await closedSession(SAYS);
    const lines = linesOf(log);
    const start = lines.slice(0, 2).reduce((sum, one) => sum + one.length + 1, 0) + 10;
    const bytes = readFileSync(log);
    const end = start + (lines[2]?.length ?? 0) + 20;
    bytes.fill(0, start, end);
    writeFileSync(log, bytes);
    const reading = await store.read(id);
    expect(texts(reading.records)).toEqual(['a', 'd', 'e']);
    expect(reading.damage).toEqual([
      {
        range: [start - 10, start - 10 + (lines[2]?.length ?? 0) + 1 + (lines[3]?.length ?? 0)],
        reason: 'a run of zero bytes, as a power cut leaves them; 2 records are missing',
      },
    ]);
  });

  it('finds the record behind zeros that took its newline', async () => {
    const { store, id, log } = await closedSession(SAYS);
    const lines = linesOf(log);
    const bytes = readFileSync(log);
    const start = lines.slice(0, 2).reduce((sum, one) => sum + one.length + 1, 0);
    bytes.fill(0, start + 5, start + (lines[2]?.length ?? 0) + 1);
    writeFileSync(log, bytes);
    const reading = await store.read(id);
    expect(texts(reading.records)).toEqual(['a', 'c', 'd', 'e']);
    expect(reading.damage).toMatchObject([{ reason: expect.stringMatching(/zero bytes.*1 record is missing/) }]);
  });

  it('skips bad JSON in one line, and says where', async () => {
    const { store, id, log } = await closedSession(SAYS);
    const lines = linesOf(log);
    writeLines(log, [...lines.slice(0, 3), '{"v":1,"seq":3,"oops', ...lines.slice(4)]);
    const reading = await store.read(id);
    expect(texts(reading.records)).toEqual(['a', 'b', 'd', 'e']);
    const start = lines.slice(0, 3).reduce((sum, one) => sum + one.length + 1, 0);
    expect(reading.damage).toEqual([
      { range: [start, start + 20], reason: 'bytes that are no record; 1 record is missing' },
    ]);
  });

  it('forgives a byte order mark, carriage returns and blank lines', async () => {
    const { store, id, log } = await closedSession(SAYS);
    const text = linesOf(log)
      .map((one) => `${one}\r\n`)
      .join('\r\n');
    writeFileSync(log, `\ufeff${text}`);
    const reading = await store.read(id);
    expect(texts(reading.records)).toEqual(SAYS);
    expect(reading.damage).toEqual([]);
  });

  it('reads two records on one line', async () => {
    const { store, id, log } = await closedSession(SAYS);
    const lines = linesOf(log);
    writeFileSync(log, `${lines[0]}\n${lines[1]}${lines[2]}\n${lines.slice(3).join('\n')}\n`);
    const reading = await store.read(id);
    expect(texts(reading.records)).toEqual(SAYS);
    expect(reading.damage).toEqual([]);
  });

  it('shows a record twice, and counts the first', async () => {
    const { store, id, log } = await closedSession(SAYS);
    const lines = linesOf(log);
    writeLines(log, [...lines.slice(0, 4), lines[3] ?? '', ...lines.slice(4)]);
    const reading = await store.read(id);
    expect(texts(reading.records)).toEqual(SAYS);
    expect(reading.damage.map(({ reason }) => reason)).toEqual(['record 3 stands here a second time']);
  });

  it('shows an altered record, and shows it as it is now', async () => {
    const { store, id, log } = await closedSession(SAYS);
    patch(log, '"text":"c"', '"text":"C"');
    const reading = await store.read(id);
    expect(texts(reading.records)).toEqual(['a', 'b', 'C', 'd', 'e']);
    expect(reading.damage.map(({ reason }) => reason)).toEqual([
      'record 3 was changed after it was written; it is shown as it is now',
    ]);
  });

  it('drops an altered record whose event no longer makes sense', async () => {
    const { store, id, log } = await closedSession(SAYS);
    patch(log, '"content":[{"type":"text","text":"c"}]', '"content":[{"type":"tixt","text":"c"}]');
    const reading = await store.read(id);
    expect(texts(reading.records)).toEqual(['a', 'b', 'd', 'e']);
    expect(reading.damage).toMatchObject([{ reason: expect.stringContaining('changed after it was written') }]);
  });

  it('shows a dropped line', async () => {
    const { store, id, log } = await closedSession(SAYS);
    const lines = linesOf(log);
    writeLines(log, [...lines.slice(0, 2), ...lines.slice(4)]);
    const reading = await store.read(id);
    expect(texts(reading.records)).toEqual(['a', 'd', 'e']);
    const at = lines.slice(0, 2).reduce((sum, one) => sum + one.length + 1, 0);
    expect(reading.damage).toEqual([{ range: [at, at], reason: '2 records are missing' }]);
  });

  it('shows lines that changed places', async () => {
    const { store, id, log } = await closedSession(SAYS);
    const lines = linesOf(log);
    writeLines(
      log,
      [0, 1, 3, 2, 4, 5].map((index) => lines[index] ?? ''),
    );
    const reading = await store.read(id);
    expect(reading.damage.length).toBeGreaterThan(0);
    expect(texts(reading.records)).toEqual(['a', 'c', 'd', 'e']);
  });

  it('shows a record that was swapped for another one with a right hash of its own', async () => {
    const { store, id, log } = await closedSession(SAYS);
    const lines = linesOf(log);
    const { hash, ...fields } = JSON.parse(lines[3] ?? '');
    fields.event.content[0].text = 'forged';
    expect(line(fields)).not.toContain(hash);
    writeLines(log, [...lines.slice(0, 3), line(fields), ...lines.slice(4)]);
    const reading = await store.read(id);
    expect(reading.damage.map(({ reason }) => reason)).toEqual(['record 4 does not follow from the one before it']);
  });

  it('keeps what is left when the first record is missing', async () => {
    const { store, id, log } = await closedSession(SAYS);
    writeLines(log, linesOf(log).slice(1));
    const reading = await store.read(id);
    expect(texts(reading.records)).toEqual(SAYS);
    expect(reading.damage).toEqual([{ range: [0, 0], reason: '1 record is missing' }]);
  });

  it('does not take the inside of a damaged record for a record', async () => {
    const { writer, store, id, log } = await newSession(['a']);
    const forged = JSON.parse(
      line({
        v: 1,
        seq: 9,
        at: 'x',
        fence: 1,
        prev: 'y',
        event: { id: 'sevt_f', type: 'agent.message', processed_at: null, content: [{ type: 'text', text: 'forged' }] },
      }),
    );
    await writer.append([draft('agent.tool_use', { name: 'write', input: { data: forged, more: 1 } }), said('b')]);
    await writer.release();
    const whole = readFileSync(log);
    patch(log, '"name":"write"', '"name":"wri\0e"');
    expect(texts((await store.read(id)).records)).toEqual(['a', 'b']);
    // Torn exactly behind the forged one, so that the line ends in a whole object.
    const end = whole.indexOf(forged.hash) + forged.hash.length + 2;
    writeFileSync(log, whole.subarray(0, end));
    expect(texts((await store.read(id)).records)).toEqual(['a']);
  });

  it('is reported in the log once, by the next holder', async () => {
    const { store, id, log } = await closedSession(SAYS);
    const lines = linesOf(log);
    writeLines(log, [...lines.slice(0, 2), 'nonsense', ...lines.slice(3)]);
    const { damage } = await store.read(id);
    for (const why of ['first', 'second']) await (await store.acquire(id, why)).release();
    const { records } = await store.read(id);
    const reports = records.filter(({ event }) => event.type === 'drover.log_damaged');
    expect(reports.map(({ event }) => event)).toMatchObject([{ range: damage[0]?.range, reason: damage[0]?.reason }]);
    expect(records.filter(({ event }) => event.type === 'drover.woke')).toHaveLength(2);
  });

  it('reports a log full of holes in a bounded number of records', async () => {
    const { store, id, log } = await closedSession(Array.from({ length: 200 }, (_, n) => `${n}`));
    writeLines(
      log,
      linesOf(log).map((one, n) => (n % 2 === 1 ? 'nonsense' : one)),
    );
    for (const why of ['first', 'second']) await (await store.acquire(id, why)).release();
    const { records } = await store.read(id);
    const reports = records.filter(({ event }) => event.type === 'drover.log_damaged');
    expect(reports).toHaveLength(51);
    expect(reports.at(-1)?.event).toMatchObject({ reason: "50 more places can't be read" });
  });
});

describe('a reader', () => {
  it('changes nothing on the disk, however broken the log is', async () => {
    const { store, id, log, folder } = await closedSession(SAYS);
    writeFileSync(log, Buffer.concat([Buffer.from('nonsense\n\0\0'), readFileSync(log), Buffer.from('{"v":1')]));
    const before = snapshot(folder);
    const { mtimeMs } = statSync(log);
    await store.read(id);
    await store.list();
    await store.holder(id);
    expect(snapshot(folder)).toEqual(before);
    expect(statSync(log).mtimeMs).toBe(mtimeMs);
  });

  it('takes a session of a newer version as read-only', async () => {
    const { store, id, log } = await closedSession(SAYS);
    addBytes(log, `${JSON.stringify({ v: 2, what: 'ever' })}\n`);
    const reading = await store.read(id);
    expect(reading).toMatchObject({ newer: true, damage: [] });
    expect(texts(reading.records)).toEqual(SAYS);
    const bytes = readFileSync(log);
    await expect(store.acquire(id, 'test')).rejects.toThrow(/newer Drover.*update Drover/);
    expect(readFileSync(log)).toEqual(bytes);
    expect(await store.holder(id)).toBeNull();
  });

  it('ignores and counts the records of a stale writer', async () => {
    const { store, id, log } = await closedSession(SAYS);
    const writer = await store.acquire(id, 'second holder');
    await writer.append([said('live')]);
    const stale = JSON.parse(linesOf(log)[5] ?? '');
    delete stale.hash;
    addBytes(log, `${line({ ...stale, seq: 6, event: { ...stale.event, id: 'sevt_stale' } })}\n`);
    await writer.append([said('live too')]);
    const reading = await writer.read();
    expect(texts(reading.records)).toEqual([...SAYS, 'live', 'live too']);
    expect(reading).toMatchObject({ stale: 1, damage: [] });
  });

  it('does not take size for damage', async () => {
    const { writer } = await newSession();
    const input = { content: 'x'.repeat(6 * 1024 * 1024) };
    for (let n = 0; n < 4; n++) await writer.append([draft('agent.tool_use', { name: 'write', input })]);
    const { records, damage } = await writer.read();
    expect(records).toHaveLength(5);
    expect(damage).toEqual([]);
  });

  it('passes over a line that is longer than any record without keeping it in memory', async () => {
    const { log } = await closedSession(SAYS);
    const lines = linesOf(log);
    const scanner = new Scanner();
    scanner.push(Buffer.from(`${lines.slice(0, 3).join('\n')}\n`));
    const piece = Buffer.alloc(1024 * 1024, 'x');
    for (let n = 0; n < 65; n++) scanner.push(piece);
    scanner.push(Buffer.from(`\n${lines.slice(3).join('\n')}\n`));
    expect(texts(scanner.take())).toEqual(SAYS);
    expect(scanner.damage).toMatchObject([{ reason: expect.stringContaining('longer than any record') }]);
  });

  it('says of a session that is not there that it is not, and lists one whose log is gone', async () => {
    const { store, id, root } = await closedSession(SAYS);
    for (const bad of ['sesn_none', '../..', '']) {
      const missing = bad as SessionId;
      await expect(store.read(missing)).rejects.toThrow(SessionMissing);
      await expect(store.acquire(missing, 'test')).rejects.toThrow(SessionMissing);
    }
    writeLines(join(root, 'sessions', id, 'log.jsonl'), []);
    expect(await store.list()).toEqual([id]);
    expect((await store.read(id)).records).toEqual([]);
    await expect(store.acquire(id, 'test')).rejects.toThrow(AppendFailed);
  });

  it('lists sessions newest first, the unreadable ones too', async () => {
    const { root } = await closedSession([]);
    let at = Date.parse('2027-01-01T00:00:00.000Z');
    const store = opened({ root, now: () => new Date(at) });
    const first = (await store.list())[0];
    const ids: SessionId[] = [];
    for (const name of ['sesn_c', 'sesn_a', 'sesn_b']) {
      at += 1000;
      const id = SessionId.parse(name);
      const thread = (await opened({ root }).read(first ?? id)).records[0];
      await store.create(id, [{ event: { ...(thread?.event ?? said('').event) } }]);
      ids.unshift(id);
    }
    writeFileSync(join(root, 'sessions', 'a-file'), 'no folder');
    expect(await opened({ root }).list()).toEqual([...ids, first]);
  });
});
