import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { SessionReading, SessionStore, SessionWriter } from '../../../src/log/log.ts';
import { verifySession } from '../../../src/log/verify.ts';
import type { SessionId } from '../../../src/protocol/ids.ts';
import type { LogRecord } from '../../../src/protocol/record.ts';
import { eventually } from '../../support/eventually.ts';
import { closedSession, linesOf, newSession, opened, said, texts, writeLines } from './kit.ts';

/** What a session is to these tests: the texts that were said. A page for each. */
async function scanned(of: { scan: SessionWriter['scan'] }, fold = 1) {
  const said: string[] = [];
  const read: LogRecord[] = [];
  let pages = 0;
  const found = await of.scan(fold, {
    kept({ first, rest, replay }) {
      const others = rest();
      if (others) {
        const all = [first, ...others];
        pages = all.length;
        said.push(...all.map((page) => JSON.parse(Buffer.from(page).toString())));
      } else replay((records) => said.push(...texts(records)));
      return true;
    },
    take(records) {
      read.push(...records);
      said.push(...texts(records));
    },
  });
  return { said, read, pages, found };
}

const by = (store: SessionStore, id: SessionId) => ({
  scan: (fold: number, sink: Parameters<SessionWriter['scan']>[1]) => store.scan(id, fold, sink),
});

const headOf = ({ records }: SessionReading) => {
  const last = records.at(-1);
  return { seq: last?.seq ?? -1, hash: last?.hash ?? '' };
};

async function keep(writer: SessionWriter, fold = 1): Promise<boolean> {
  const reading = await writer.read();
  return writer.keep(
    headOf(reading),
    fold,
    texts(reading.records).map((one) => JSON.stringify(one)),
  );
}

describe('a kept state', () => {
  it('is where reading begins: of the log only what came after it is read', async () => {
    const { writer, store, id } = await newSession(['a', 'b']);
    expect(writer.sinceKept).toBe(3);
    await writer.append([said('c')]);
    expect(await keep(writer)).toBe(true);
    expect(writer.sinceKept).toBe(0);
    await writer.append([said('d')]);
    expect(writer.sinceKept).toBe(1);
    for (const of of [writer, by(store, id)]) {
      const { said: all, read, pages } = await scanned(of);
      expect(all).toEqual(['a', 'b', 'c', 'd']);
      expect(texts(read)).toEqual(['d']);
      expect(pages).toBe(3);
    }
  });

  it('is where the next holder begins too, whose records follow in the chain', async () => {
    const { writer, store, id, folder } = await newSession(['a', 'b']);
    await keep(writer);
    await writer.release();
    const next = await store.acquire(id, 'again');
    expect(next.sinceKept).toBe(1);
    await next.append([said('c')]);
    expect(await keep(next)).toBe(true);
    await next.append([said('d')]);
    await next.release();
    expect((await scanned(by(store, id))).said).toEqual(['a', 'b', 'c', 'd']);
    expect((await verifySession(folder)).wrong.listed).toEqual([]);
    expect(texts((await store.read(id)).records)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('of another version of the fold is passed over', async () => {
    const { writer } = await newSession(['a']);
    await keep(writer, 1);
    expect(await scanned(writer, 2)).toMatchObject({ said: ['a'], pages: 0 });
    await keep(writer, 2);
    expect(await scanned(writer, 2)).toMatchObject({ said: ['a'], pages: 1 });
    expect(await scanned(writer, 1)).toMatchObject({ said: ['a'], pages: 0 });
  });

  it('that its reader has no use for is passed over', async () => {
    const { writer } = await newSession(['a']);
    await keep(writer);
    const read: LogRecord[] = [];
    await writer.scan(1, { kept: () => false, take: (records) => read.push(...records) });
    expect(texts(read)).toEqual(['a']);
  });

  it('is passed over when the log ends before it, or has another record there', async () => {
    const { writer, store, id, log, folder } = await newSession(['a', 'b', 'c']);
    await keep(writer);
    await writer.release();
    const lines = linesOf(log);
    writeLines(log, lines.slice(0, 3));
    expect(await scanned(by(store, id))).toMatchObject({ said: ['a', 'b'], pages: 0 });
    writeLines(log, [...lines.slice(0, 3), (lines[3] ?? '').replace('"c"', '"x"')]);
    // What was changed before it, Verify finds; who begins behind it does not read that part.
    expect(await scanned(by(store, id))).toMatchObject({ said: ['a', 'b', 'c'], pages: 3 });
    expect((await verifySession(folder)).wrong.listed).toMatchObject([{ line: 4, seq: 3 }]);
    const other = await newSession(['a', 'b', 'y']);
    await other.writer.release();
    writeFileSync(log, readFileSync(other.log));
    expect(await scanned(by(store, id))).toMatchObject({ said: ['a', 'b', 'y'], pages: 0 });
  });

  it('with any byte changed, or cut off anywhere, changes nothing of what is read', async () => {
    const { writer, store, id, folder } = await newSession(['a', 'b \u2028 é', 'c']);
    await keep(writer);
    await writer.append([said('d')]);
    await writer.release();
    const path = join(folder, 'snapshot.jsonl');
    const bytes = readFileSync(path);
    const expected = ['a', 'b \u2028 é', 'c', 'd'];
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at] = ((bytes[at] ?? 0) + 1 + (at % 255)) % 256;
      writeFileSync(path, changed);
      expect((await scanned(by(store, id))).said, `byte ${at}`).toEqual(expected);
    }
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), async (length) => {
        writeFileSync(path, bytes.subarray(0, length));
        const { said: all, pages } = await scanned(by(store, id));
        expect({ all, pages }).toEqual({ all: expected, pages: 0 });
      }),
      { numRuns: 50 },
    );
    writeFileSync(path, Buffer.concat([bytes, bytes]));
    expect((await scanned(by(store, id))).said).toEqual(expected);
    const next = await store.acquire(id, 'whatever it is');
    expect(await keep(next)).toBe(true);
    expect(await scanned(next)).toMatchObject({ said: expected, pages: 4 });
  });

  it('is not made of a state that is not the log’s last, or while the log moves on', async () => {
    const { writer, folder } = await newSession(['a']);
    const old = headOf(await writer.read());
    await writer.append([said('b')]);
    expect(await writer.keep(old, 1, ['"a"'])).toBe(false);
    const now = headOf(await writer.read());
    function* pages() {
      yield '"a"';
      void writer.append([said('c')], { sync: false });
      yield '"b"';
      yield '"and on"';
    }
    expect(await writer.keep(now, 1, pages())).toBe(false);
    expect(readdirSync(folder).filter((name) => name.startsWith('snapshot'))).toEqual([]);
  });

  it('is not made by who has lost the session, or has given it back', async () => {
    const lost = await newSession(['a'], { holder: { pid: process.ppid, host: 'elsewhere' } });
    const head = headOf(await lost.writer.read());
    await opened({ root: lost.root }).takeOver(lost.id, 'mine');
    expect(await lost.writer.keep(head, 1, ['"a"'])).toBe(false);
    const { writer, folder } = await newSession(['a']);
    const last = headOf(await writer.read());
    await writer.release();
    expect(await writer.keep(last, 1, ['"a"'])).toBe(false);
    expect(existsSync(join(folder, 'snapshot.jsonl'))).toBe(false);
  });

  it('is not made of a damaged log, which says at every opening that it is', async () => {
    const { store, id, log } = await closedSession(['a', 'b', 'c']);
    writeLines(log, linesOf(log).with(2, 'gone'));
    const writer = await store.acquire(id, 'after the damage');
    expect(await keep(writer)).toBe(false);
    expect((await scanned(writer)).found.damage).toHaveLength(1);
  });

  it('does not hide what a stale writer adds behind it', async () => {
    const { store, id, log, writer } = await newSession(['a']);
    await writer.release();
    const first = linesOf(log)[1] ?? '';
    const next = await store.acquire(id, 'mine');
    await keep(next);
    appendFileSync(log, `${first}\n`);
    await next.append([said('b')]);
    const { said: all, found } = await scanned(next);
    expect(all).toEqual(['a', 'b']);
    expect(found).toMatchObject({ stale: 1, damage: [] });
  });

  it('shows in Verify that the end was cut off, even without the lease', async () => {
    const { writer, log, folder, store, id } = await newSession(['a', 'b']);
    await keep(writer);
    await writer.release();
    writeFileSync(join(folder, 'lease'), '');
    writeLines(log, linesOf(log).slice(0, 2));
    const { wrong } = await verifySession(folder);
    expect(wrong.listed.map(({ reason }) => reason)).toEqual([expect.stringContaining('the end was cut off')]);
    const later = opened({ root: join(folder, '../..'), now: () => new Date(Date.now() + 60_000) });
    await (await later.acquire(id, 'after the cut')).release();
    const { records } = await store.read(id);
    expect(records.at(-1)?.event).toMatchObject({ type: 'drover.log_damaged', reason: /cut off/ });
  });
});

describe('following', () => {
  it('after a reading goes on from there, and hears each record once', async () => {
    const { store, id, writer, root } = await newSession(['a', 'b']);
    await keep(writer);
    const other = opened({ root });
    const { read } = await scanned(by(other, id));
    expect(read).toEqual([]);
    const heard = vi.fn((_records: LogRecord[]) => undefined);
    other.follow(id, 3, heard);
    await writer.append([said('c')]);
    await (await store.acquire(id, 'the same')).append([said('d')]);
    const all = () => heard.mock.calls.flatMap(([records]) => records);
    await eventually('both', 15_000, () => all().length >= 2);
    expect(texts(all())).toEqual(['c', 'd']);
  });

  it('from before the reading still gets all that is wanted', async () => {
    const { store, id, writer } = await newSession(['a', 'b']);
    await keep(writer);
    await scanned(by(store, id));
    const heard = vi.fn((_records: LogRecord[]) => undefined);
    store.follow(id, 1, heard);
    await eventually('the history', 15_000, () => heard.mock.calls.flatMap(([records]) => records).length >= 2);
    expect(texts(heard.mock.calls.flatMap(([records]) => records))).toEqual(['a', 'b']);
  });
});
