import { appendFileSync, copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Verification, verifySession } from '../../../src/log/verify.ts';
import { verifyReport } from '../../../src/log/verify-report.ts';
import { text } from '../../../src/protocol/content.ts';
import { EventId, mint } from '../../../src/protocol/ids.ts';
import { draft } from '../../../src/protocol/record.ts';
import { closedSession, line, linesOf, newSession, opened, said, temporary, writeLines } from './kit.ts';

const result = (output: string) =>
  draft('agent.tool_result', { tool_use_id: mint.event(), content: [text(output)], is_error: false });

/** A session with text, two blobs, and two holders, given back. */
async function session(says: readonly string[] = ['one', 'two \u2028 é']) {
  const made = await newSession(says);
  await made.writer.append([result('x'.repeat(40 * 1024)), said('and then')]);
  await made.writer.putBlob(Buffer.from('named by no record'), 'text/plain');
  await made.writer.release();
  await (await made.store.acquire(made.id, 'a second time')).release();
  return made;
}

const listed = ({ wrong }: Verification) => wrong.listed.map(({ line: n, seq, reason }) => `${n} ${seq} ${reason}`);

describe('verifying a session', () => {
  it('finds nothing in what a writer has written, and says what it has looked at', async () => {
    const { folder, log } = await session();
    const found = await verifySession(folder);
    const last = JSON.parse(linesOf(log).at(-1) ?? '');
    expect(found).toMatchObject({
      bytes: readFileSync(log).length,
      records: linesOf(log).length,
      head: { seq: last.seq, hash: last.hash },
      kept: { seq: last.seq, hash: last.hash },
      wrong: { count: 0, listed: [] },
      stale: { count: 0 },
      newer: false,
      blobs: { whole: 2, unnamed: 1 },
    });
  });

  it('finds any one byte of the log that was changed, wherever it is, and names its line', async () => {
    const { folder, log, writer } = await newSession(['a é']);
    const blobs = [await writer.putBlob(Buffer.from('some output'), 'text/plain')];
    await writer.append([{ ...said('b'), local: { blobs } }]);
    await writer.release();
    const bytes = readFileSync(log);
    let lineNumber = 1;
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      // Another value each time, so that all kinds of bytes come up.
      changed[at] = ((bytes[at] ?? 0) + 1 + (at % 255)) % 256;
      writeFileSync(log, changed);
      const { wrong } = await verifySession(folder);
      expect(wrong.count, `byte ${at}`).toBeGreaterThan(0);
      expect(wrong.listed[0]?.line, `byte ${at}`).toBe(lineNumber);
      if (bytes[at] === 0x0a) lineNumber += 1;
    }
  }, 120_000);

  it('finds any one byte of the log that was added or taken out', async () => {
    const { folder, log } = await session(['a']);
    const bytes = readFileSync(log);
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.nat(255), fc.boolean(), async (at, byte, adds) => {
        const rest = bytes.subarray(adds ? at : at + 1);
        writeFileSync(log, Buffer.concat([bytes.subarray(0, at), adds ? Buffer.of(byte) : Buffer.of(), rest]));
        expect((await verifySession(folder)).wrong.count).toBeGreaterThan(0);
      }),
      { numRuns: 300 },
    );
  }, 60_000);

  it('finds any one byte that was changed in a large log', async () => {
    const says = Array.from({ length: 2000 }, (_, n) => `${n} ${'word '.repeat(n % 40)}`);
    const { folder, log } = await closedSession(says);
    const bytes = readFileSync(log);
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, by) => {
        const changed = Buffer.from(bytes);
        changed[at] = ((bytes[at] ?? 0) + by) % 256;
        writeFileSync(log, changed);
        const { wrong } = await verifySession(folder);
        expect(wrong.listed[0]?.line).toBe(bytes.subarray(0, at).toString('latin1').split('\n').length);
      }),
      { numRuns: 60 },
    );
  }, 120_000);

  it('finds any one byte of a blob that was changed, added or taken out, and a blob that is gone', async () => {
    const { folder } = await session();
    const place = join(folder, 'blobs');
    for (const name of readdirSync(place)) {
      const path = join(place, name);
      const bytes = readFileSync(path);
      await fc.assert(
        fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, by) => {
          const changed = Buffer.from(bytes);
          changed[at] = ((bytes[at] ?? 0) + by) % 256;
          writeFileSync(path, changed);
          const { wrong } = await verifySession(folder);
          expect(wrong.listed.map(({ reason }) => reason)).toEqual([expect.stringContaining(`${name} was changed`)]);
        }),
        { numRuns: 40 },
      );
      for (const other of [bytes.subarray(1), Buffer.concat([bytes, Buffer.of(0)])]) {
        writeFileSync(path, other);
        expect((await verifySession(folder)).wrong.count).toBe(1);
      }
      writeFileSync(path, bytes);
    }
    rmSync(place, { recursive: true });
    const found = await verifySession(folder);
    expect(listed(found)).toEqual([expect.stringMatching(/^4 3 the blob [0-9a-f]{64} that it names is not there/)]);
  }, 60_000);

  it('finds an end that was cut off at any line or byte after it was given back', async () => {
    const { folder, log } = await session();
    const bytes = readFileSync(log);
    const lines = linesOf(log);
    for (let keep = 1; keep < lines.length; keep++) {
      writeLines(log, lines.slice(0, keep));
      const found = await verifySession(folder);
      const cut = lines.length - keep;
      expect(listed(found).at(-1)).toBe(
        `null ${lines.length - 1} the end was cut off: the log ends at record ${keep - 1}, and record ${lines.length - 1} had been saved (${cut} missing)`,
      );
    }
    for (let keep = 0; keep < bytes.length; keep += 301) {
      writeFileSync(log, bytes.subarray(0, keep));
      expect((await verifySession(folder)).wrong.count).toBeGreaterThan(0);
    }
    rmSync(log);
    expect(listed(await verifySession(folder))[0]).toContain('the log file is missing');
  });

  it('finds, in a session that was not given back, an end cut off behind the last heartbeat', async () => {
    const { folder, log, writer } = await newSession([], {
      holder: { pid: 2 ** 22 + 1, host: 'a-dead-host' },
      leaseMs: 60,
    });
    await writer.append([said('a'), said('b'), said('c')]);
    await expect.poll(() => JSON.parse(readFileSync(join(folder, 'lease'), 'utf8')).head?.seq).toBe(3);
    writeLines(log, linesOf(log).slice(0, 2));
    expect(listed(await verifySession(folder))).toEqual([expect.stringContaining('the end was cut off')]);
  });

  it('finds a log that was written anew from some record on, chain and all', async () => {
    const { folder, log } = await session();
    const lines = linesOf(log);
    const last = JSON.parse(lines.at(-1) ?? '');
    const { hash: _, ...fields } = { ...last, event: { ...last.event, why: 'a good reason' } };
    writeLines(log, [...lines.slice(0, -1), line(fields)]);
    expect(listed(await verifySession(folder))).toEqual([
      expect.stringContaining(`record ${last.seq} is not the one that had been saved`),
    ]);
  });

  it('names the first bad line, and every other one', async () => {
    const { folder, log } = await closedSession(['a', 'b', 'c', 'd', 'e']);
    const lines = linesOf(log);
    const offset = Buffer.byteLength(lines.slice(0, 2).join('\n')) + 1;
    lines[2] = lines[2]?.replace('"b"', '"B"') ?? '';
    lines[4] = '\0\0\0\0';
    writeLines(log, lines);
    const found = await verifySession(folder);
    expect(found.wrong.listed[0]).toEqual({
      line: 3,
      offset,
      seq: 2,
      reason: 'it was changed after it was written: its hash is not that of its bytes',
    });
    expect(listed(found).slice(1)).toEqual([
      '5 null a run of zero bytes, as a power cut leaves them',
      '6 5 1 record is missing before this line',
    ]);
    expect(found).toMatchObject({ records: 4, head: { seq: 5 } });
  });

  it('tells lines dropped, doubled, moved, joined, and an event that does not fit its type', async () => {
    const { folder, log } = await closedSession(['a', 'b', 'c', 'd']);
    const lines = linesOf(log);
    const [zero = '', one = '', two = '', three = '', four = ''] = lines;
    const first = async (...changed: string[]) => {
      writeLines(log, changed);
      return listed(await verifySession(folder))[0];
    };
    expect(await first(zero, two, three, four)).toBe('2 2 1 record is missing before this line, without a trace');
    expect(await first(zero, one, one, two, three, four)).toBe('3 1 record 1 stands here a second time');
    expect(await first(zero, two, one, three, four)).toMatch(/^2 2 1 record is missing/);
    expect(await first(zero, one + two, three, four)).toMatch(/^2 1 no clean line: .* 2 whole ones$/);
    expect(await first(zero, `${one}\r`, two, three, four)).toMatch(/^2 1 no clean line/);
    expect(await first(zero, '', one, two, three, four)).toBe('2 null an empty line');
    const { hash: _, ...fields } = JSON.parse(four);
    const odd = line({ ...fields, event: { ...fields.event, content: 'not blocks' } });
    expect(await first(zero, one, two, three, odd)).toMatch(
      /^5 4 its event does not fit its type \(agent.message: content/,
    );
    expect(await first(zero, one, two, three, line({ ...fields, fence: 2 }))).toMatch(
      /^5 4 its fence rises from 1 to 2/,
    );
    expect(await first(zero, one, two, three, line({ ...fields, prev: 'x' }))).toMatch(/^5 4 it does not follow/);
  });

  it('names what a writer wrote that had lost the session, and does not call it damage', async () => {
    const { folder, log, store, id } = await closedSession(['a']);
    const writer = await store.acquire(id, 'mine now');
    const { hash: _, ...fields } = JSON.parse(linesOf(log).at(-1) ?? '');
    const late = line({ ...fields, seq: 2, fence: 1, event: { ...fields.event, id: EventId.parse('sevt_late') } });
    appendFileSync(log, `${late}\n`);
    await writer.append([said('goes on')]);
    await writer.release();
    const found = await verifySession(folder);
    expect(found.wrong.listed).toEqual([]);
    expect(found.stale).toMatchObject({
      count: 1,
      listed: [{ line: 4, seq: 2, reason: 'drover.woke, written with fence 1' }],
    });
    expect(verifyReport({ title: 'A session', path: log, at: new Date() }, found)).toContain('line 4');
  });

  it('lists a bounded number of findings, and counts the others', async () => {
    const { folder, log } = await closedSession(['a']);
    appendFileSync(log, 'x\n'.repeat(5000));
    const found = await verifySession(folder);
    expect(found.wrong.count).toBe(5000);
    expect(found.wrong.listed).toHaveLength(200);
    const report = verifyReport({ title: 'A session', path: log, at: new Date() }, found);
    expect(report).toContain('NOT AS IT WAS WRITTEN: 5,000 findings');
    expect(report).toContain('… and 4800 more');
  });

  it('reads a whole log while its writer goes on, and finds nothing', async () => {
    const { folder, writer } = await newSession(['a'], { leaseMs: 90 });
    let done = false;
    const writing = (async () => {
      while (!done) await writer.append([said('on and on '.repeat(50))]);
    })();
    for (let round = 0; round < 15; round++) expect((await verifySession(folder)).wrong.listed).toEqual([]);
    done = true;
    await writing;
  });

  it('calls the logs of every version whole', async () => {
    const root = await temporary();
    const folder = join(root, 'sesn_golden');
    mkdirSync(folder);
    copyFileSync(join(import.meta.dirname, 'fixtures/v1/log.jsonl'), join(folder, 'log.jsonl'));
    expect(await verifySession(folder)).toMatchObject({ records: 5, kept: null, wrong: { count: 0 } });
  });
});

describe('an end that was cut off', () => {
  it('is told in the log itself by who goes on with the session', async () => {
    const { folder, log, root, id } = await closedSession(['a', 'b', 'c']);
    writeLines(log, linesOf(log).slice(0, 2));
    const store = opened({ root });
    await (await store.acquire(id, 'after the cut')).release();
    const { records } = await store.read(id);
    expect(records.slice(2).map(({ event }) => event)).toMatchObject([
      { type: 'drover.woke' },
      { type: 'drover.log_damaged', reason: 'the end was cut off: 2 saved records are gone' },
    ]);
    expect((await verifySession(folder)).wrong.listed).toEqual([]);
    await (await store.acquire(id, 'again')).release();
    const types = (await store.read(id)).records.map(({ event }) => event.type);
    expect(types.filter((type) => type === 'drover.log_damaged')).toHaveLength(1);
  });
});
