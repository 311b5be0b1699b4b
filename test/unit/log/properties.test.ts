import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readLog } from '../../../src/log/read.ts';
import { Scanner } from '../../../src/log/scan.ts';
import type { LogRecord } from '../../../src/protocol/record.ts';
import { closedSession, opened, texts } from './kit.ts';

const SAYS = Array.from({ length: 24 }, (_, n) => `${n} ${'é\u2028"{[,'.repeat(n % 5)}`);

/** What can happen to the bytes of a file. Places are fractions of its length. */
const damage = fc.oneof(
  fc.record({
    kind: fc.constant('overwrite' as const),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    bytes: fc.uint8Array({ minLength: 1, maxLength: 600 }),
  }),
  fc.record({
    kind: fc.constant('zero' as const),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    length: fc.integer({ min: 1, max: 2000 }),
  }),
  fc.record({
    kind: fc.constant('insert' as const),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    bytes: fc.uint8Array({ minLength: 1, maxLength: 300 }),
  }),
  fc.record({
    kind: fc.constant('remove' as const),
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    length: fc.integer({ min: 1, max: 900 }),
  }),
);
type Change = typeof damage extends fc.Arbitrary<infer T> ? T : never;

function changed(bytes: Buffer, change: Change): Buffer {
  const at = Math.floor(change.at * bytes.length);
  const rest = (length: number) => bytes.subarray(Math.min(bytes.length, at + length));
  const before = bytes.subarray(0, at);
  switch (change.kind) {
    case 'overwrite':
      return Buffer.concat([before, change.bytes, rest(change.bytes.length)]);
    case 'zero':
      return Buffer.concat([before, Buffer.alloc(Math.min(change.length, bytes.length - at)), rest(change.length)]);
    case 'insert':
      return Buffer.concat([before, change.bytes, rest(0)]);
    case 'remove':
      return Buffer.concat([before, rest(change.length)]);
  }
}

function scan(bytes: Buffer, pieces: readonly number[] = [bytes.length]) {
  const scanner = new Scanner();
  const records: LogRecord[] = [];
  let start = 0;
  for (let n = 0; start < bytes.length; n++) {
    const length = Math.max(1, pieces[n % pieces.length] ?? bytes.length);
    scanner.push(Buffer.from(bytes.subarray(start, start + length)));
    records.push(...scanner.take());
    start += length;
  }
  scanner.settle();
  return { records: [...records, ...scanner.take()], scanner };
}

/** Hundreds of made-up logs each, on machines that have other things to do. */
const PATIENT = { timeout: 120_000 };

describe('whatever happens to the bytes of a log', PATIENT, () => {
  it('reading it never throws and never loses a record whose line is intact', async () => {
    const { log } = await closedSession(SAYS);
    const bytes = readFileSync(log);
    const lines = bytes.toString().split('\n').slice(0, -1);
    fc.assert(
      fc.property(fc.array(damage, { minLength: 1, maxLength: 4 }), (changes) => {
        const broken = changes.reduce(changed, bytes);
        const { records, scanner } = scan(broken);
        const found = new Set(records.map((record) => record.hash));
        for (const line of lines) {
          if (!broken.includes(`${line}\n`)) continue;
          expect(found.has(JSON.parse(line).hash), `lost ${line}`).toBe(true);
        }
        const seqs = records.map((record) => record.seq);
        expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
        for (const { range } of scanner.damage) {
          expect(range[0]).toBeLessThanOrEqual(range[1]);
          expect(range[1]).toBeLessThanOrEqual(broken.length);
        }
        if (!broken.equals(bytes) && records.length < lines.length) {
          expect(scanner.damage.length + (scanner.offset - scanner.wholeEnd)).toBeGreaterThan(0);
        }
      }),
      { numRuns: 400 },
    );
  });

  it('cut off anywhere, it keeps every whole record before the cut, and reports no damage', async () => {
    const { log } = await closedSession(SAYS);
    const bytes = readFileSync(log);
    for (let end = 0; end <= bytes.length; end += 7) {
      const { records, scanner } = scan(bytes.subarray(0, end));
      // A record that lacks only its newline is whole.
      const whole =
        bytes
          .subarray(0, end + 1)
          .toString('latin1')
          .split('\n').length - 1;
      expect(records).toHaveLength(whole);
      expect(scanner.damage).toEqual([]);
    }
  });

  it('read in pieces of any size, it says the same as read at once', async () => {
    const { log } = await closedSession(SAYS);
    const bytes = readFileSync(log);
    const sizes = fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(fc.array(damage, { maxLength: 3 }), sizes, (changes, pieces) => {
        const broken = changes.reduce(changed, bytes);
        const [once, pieced] = [scan(broken), scan(broken, pieces)];
        expect(pieced.records).toEqual(once.records);
        expect(pieced.scanner.damage).toEqual(once.scanner.damage);
        expect(pieced.scanner.wholeEnd).toBe(once.scanner.wholeEnd);
      }),
      { numRuns: 200 },
    );
  });

  it('a new holder can go on, after which nothing new is torn and what was readable still is', async () => {
    const { root, id, log, folder } = await closedSession(SAYS);
    const lease = join(folder, 'lease');
    const [bytes, given] = [readFileSync(log), readFileSync(lease)];
    const last = SAYS.length;
    await fc.assert(
      fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 3 }), async (changes) => {
        writeFileSync(log, changes.reduce(changed, bytes));
        writeFileSync(lease, given);
        const before = await readLog(log);
        if (before.records.length === 0 || before.newer) return;
        const store = opened({ root });
        const writer = await store.acquire(id, 'after the damage');
        const after = await writer.read();
        await store.dispose();
        expect(after.records.slice(0, before.records.length)).toEqual(before.records);
        expect(after).toMatchObject({ tornBytes: 0, damage: before.damage });
        const news = after.records.slice(before.records.length).map(({ event }) => event);
        expect(news[0]).toMatchObject({ type: 'drover.woke' });
        const torn = before.tornBytes > 0 ? 1 : 0;
        const cut = (before.records.at(-1)?.seq ?? -1) < last ? 1 : 0;
        const told = news.filter(({ type }) => type === 'drover.log_damaged');
        expect(told).toHaveLength(before.damage.length + torn + cut);
        expect(texts(after.records)).toEqual(texts(before.records));
      }),
      { numRuns: 40 },
    );
  });
});
