import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NoExport } from '../../../src/log/export/format.ts';
import { openExport } from '../../../src/log/export/read.ts';
import { exportSession } from '../../../src/log/export/write.ts';
import { BlobDamaged } from '../../../src/log/log.ts';
import { text } from '../../../src/protocol/content.ts';
import { mint } from '../../../src/protocol/ids.ts';
import { type Draft, draft, type LogRecord } from '../../../src/protocol/record.ts';
import { fold } from '../../../src/session/fold.ts';
import { closedSession, newSession, opened, type Session, temporary } from '../log/kit.ts';
import { play, World } from '../session/simulate.ts';

const AT = '2026-11-30T12:00:00.000Z';
const LONG = 'a long output, kept in a blob\n'.repeat(3000);

async function exported(session: Session, redact = false): Promise<{ path: string; bytes: Buffer }> {
  const path = join(await temporary(), 'session.drover.jsonl');
  await exportSession(session.root, session.id, path, { redact, at: AT });
  return { path, bytes: readFileSync(path) };
}

/** A session with a call, its input and output, an image, a subagent's report and a spilled value. */
async function rich(): Promise<Session> {
  const session = await newSession();
  const thread = mint.thread();
  const call = mint.event();
  const image = { type: 'base64' as const, media_type: 'image/png', data: Buffer.from('a picture').toString('base64') };
  await session.writer.append([
    draft('user.message', { content: [text('look at this'), { type: 'image', source: image }] }, { thread }),
    draft(
      'agent.tool_use',
      { name: 'bash', input: { command: 'cat secret-plan.txt', timeout: 7 } },
      { thread, id: call, local: { raw: { type: 'tool_use', input: 'secret-plan' }, why: 'it names secret-plan.txt' } },
    ),
    draft('agent.tool_result', { tool_use_id: call, content: [text(`the secret plan ${LONG}`)] }, { thread }),
    draft(
      'agent.thread_message_received',
      { from_session_thread_id: thread, content: [text('the secret report')] },
      { thread },
    ),
    draft('agent.message', { content: [text('I have read it.')] }, { thread }),
  ]);
  await session.writer.release();
  return session;
}

describe('An exported session', () => {
  it('is its header, its log byte for byte, and its blobs', async () => {
    const session = await rich();
    const { path, bytes } = await exported(session);
    const log = readFileSync(session.log);
    const { head } = await openExport(path).then(({ header }) => header);
    const last: LogRecord = JSON.parse(log.toString().split('\n').at(-2) ?? '');
    expect(head).toEqual({ seq: last.seq, hash: last.hash });

    const start = bytes.indexOf('\n') + 1;
    expect(bytes.subarray(start, start + log.length).equals(log)).toBe(true);
    const blobs = bytes
      .subarray(start + log.length)
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).blob);
    const stored = readdirSync(join(session.folder, 'blobs')).sort();
    expect(blobs.map(({ sha256 }) => sha256).sort()).toEqual(stored);
    for (const { sha256, base64, bytes: size } of blobs) {
      const whole = Buffer.from(base64, 'base64');
      expect(createHash('sha256').update(whole).digest('hex')).toBe(sha256);
      expect(whole.length).toBe(size);
    }
  });

  it('opens with the same records and blobs, whatever happened in the session', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(999), { minLength: 20, maxLength: 120 }),
        fc.array(fc.string({ unit: 'binary', maxLength: 60 }), { maxLength: 4 }),
        fc.boolean(),
        async (choices, texts, redact) => {
          const world = new World(choices.values());
          play(world, 30);
          const [first, ...rest] = world.records.map(asDraft);
          if (!first) throw new Error('A world has a record.');
          const root = join(await temporary(), '.drover');
          const store = opened({ root });
          const id = mint.session();
          const writer = await store.create(id, [first]);
          for (const one of rest) await writer.append([one], { sync: false });
          for (const long of texts) {
            const content = [text(long.repeat(1000))];
            await writer.append([draft('agent.tool_result', { tool_use_id: mint.event(), content })]);
          }
          await writer.release();
          const before = await store.read(id);

          const path = join(root, 'out.jsonl');
          await exportSession(root, id, path, { redact, at: AT });
          const file = await openExport(path);
          expect(file.problems).toEqual([]);
          const kept = (records: LogRecord[]) => records.map(({ event, local, ...record }) => [record, event.id]);
          expect(kept(file.reading.records)).toEqual(kept(before.records));
          if (redact) {
            expect(() => fold(file.reading.records)).not.toThrow();
            return;
          }
          expect(file.reading).toEqual(before);
          for (const { local } of before.records) {
            for (const ref of local?.blobs ?? []) {
              expect(Buffer.from(await file.readBlob(ref))).toEqual(Buffer.from(await store.readBlob(id, ref)));
            }
          }
          rmSync(root, { recursive: true });
        },
      ),
      { numRuns: 15 },
    );
  }, 60_000);

  it('has every change of one byte named, wherever it is', async () => {
    const session = await rich();
    const { path, bytes } = await exported(session);
    const start = bytes.indexOf('\n') + 1;
    for (let at = start; at < bytes.length; at += 997) {
      const bad = Buffer.from(bytes);
      // Another letter of the same kind: the file stays one that can be read.
      bad[at] = bad[at] === 0x61 ? 0x62 : 0x61;
      if (bad.equals(bytes)) continue;
      writeFileSync(path, bad);
      const file = await openExport(path);
      expect(file.problems.length, `byte ${at}`).toBeGreaterThan(0);
    }
  });

  it('has what is wrong said in words: a changed record, a cut end, a blob that is another', async () => {
    const session = await closedSession(['one', 'two', 'three']);
    const { path, bytes } = await exported(session);
    const lines = bytes.toString().split('\n');
    const write = (changed: readonly string[]) => writeFileSync(path, changed.join('\n'));

    write(lines.map((line) => line.replace('"two"', '"TWO"')));
    expect((await openExport(path)).problems[0]).toBe(
      'line 4, record 2: it was changed after it was written: its hash is not that of its bytes',
    );
    // The last line goes, and the header is made to fit: the head tells.
    const shorter = lines.slice(0, -2);
    const gone = Buffer.byteLength(`${lines.at(-2)}\n`);
    shorter[0] = (shorter[0] ?? '').replace(/"log_bytes":(\d+)/, (_, size) => `"log_bytes":${Number(size) - gone}`);
    write([...shorter, '']);
    expect((await openExport(path)).problems[0]).toMatch(/^the last record should be 3, .{22}, and is record 2/);

    const withBlob = await rich();
    const two = await exported(withBlob);
    writeFileSync(two.path, two.bytes.toString().replace(/"base64":"..../, '"base64":"AAAA'));
    const { problems, readBlob, reading } = await openExport(two.path);
    expect(problems[0]).toMatch(/^the blob [0-9a-f]{64} was changed/);
    const [ref] = reading.records.flatMap(({ local }) => local?.blobs ?? []);
    if (!ref) throw new Error('A blob is named.');
    await expect(readBlob(ref)).rejects.toBeInstanceOf(BlobDamaged);
  });

  it('is refused in a sentence where it is none, or is of a newer version', async () => {
    const path = join(await temporary(), 'x.jsonl');
    await expect(openExport(path)).rejects.toBeInstanceOf(NoExport);
    for (const content of ['', 'hello\n', '{}\n', '[1]\n', '{"drover_export":1}\n', 'x'.repeat(100_000)]) {
      writeFileSync(path, content);
      await expect(openExport(path), content.slice(0, 20)).rejects.toThrow(/is no exported session/);
    }
    writeFileSync(path, '{"drover_export":2}\n');
    await expect(openExport(path)).rejects.toThrow(/newer Drover/);
  });

  it('carries a damaged log as it is, and says what is wrong with it when it is opened', async () => {
    const session = await closedSession(['one', 'two', 'three']);
    const log = readFileSync(session.log);
    const hurt = Buffer.concat([
      log.subarray(0, log.length - 300),
      Buffer.alloc(40),
      log.subarray(log.length - 250, -30),
    ]);
    writeFileSync(session.log, hurt);
    const { path, bytes } = await exported(session);
    const start = bytes.indexOf('\n') + 1;
    expect(bytes.subarray(start, start + hurt.length).equals(hurt)).toBe(true);
    const file = await openExport(path);
    const before = await session.store.read(session.id);
    expect(file.reading).toEqual(before);
    expect(file.problems.length).toBeGreaterThan(0);
  });

  it('names blobs that were gone already', async () => {
    const session = await rich();
    const blobs = join(session.folder, 'blobs');
    for (const name of readdirSync(blobs)) rmSync(join(blobs, name));
    const path = join(await temporary(), 'session.drover.jsonl');
    const result = await exportSession(session.root, session.id, path, { redact: false, at: AT });
    expect(result.missing).toHaveLength(2);
    expect((await openExport(path)).problems).toHaveLength(2);
  });

  it('is there as a whole or not at all', async () => {
    const session = await rich();
    const folder = await temporary();
    const target = join(folder, 'not', 'there.jsonl');
    await expect(exportSession(session.root, session.id, target, { redact: false, at: AT })).rejects.toThrow(
      /could not be exported to/,
    );
    expect(existsSync(join(folder, 'not'))).toBe(false);
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('A redacted export', () => {
  it('has nothing of what tools were given and gave, and says so', async () => {
    const session = await rich();
    const { path, bytes } = await exported(session, true);
    const file = bytes.toString();
    expect(file).not.toMatch(/secret|a long output/);
    expect(file).toContain('I have read it.');
    expect(file).toContain('look at this');
    const { header, problems, reading } = await openExport(path);
    expect(problems).toEqual([]);
    expect(header.redaction).toMatchObject({ what: 'tool inputs and outputs', records: 3 });
    expect(header.redaction?.chain).toMatch(/hash of its own/);
    // The picture a person sent is no tool's.
    expect(header.blobs).toBe(1);
    const use = reading.records.find(({ event }) => event.type === 'agent.tool_use');
    const sha256 = createHash('sha256').update('cat secret-plan.txt').digest('hex');
    expect(use?.event).toMatchObject({ name: 'bash', input: { command: `[redacted: 19 bytes, SHA-256 ${sha256}]` } });
  });

  it('keeps the hashes that the records were written with, so that the head is the one of the log', async () => {
    const session = await rich();
    const { path } = await exported(session, true);
    const { header, reading } = await openExport(path);
    const before = await session.store.read(session.id);
    expect(reading.records.map(({ hash }) => hash)).toEqual(before.records.map(({ hash }) => hash));
    expect(header.head.hash).toBe(before.records.at(-1)?.hash);
  });

  it('has a changed, dropped or exchanged line named', async () => {
    const { path, bytes } = await exported(await rich(), true);
    const lines = bytes.toString().split('\n');
    const problems = async (changed: string[]) => {
      writeFileSync(path, changed.join('\n'));
      return (await openExport(path)).problems.join('; ');
    };
    expect(await problems(lines.map((line) => line.replace('"timeout":"[r', '"timeout":"[R')))).toMatch(
      /line 4: it was changed after it was exported/,
    );
    expect(await problems(lines.toSpliced(3, 1))).toMatch(/stands where record 2 should/);
    expect(await problems(lines.toSpliced(3, 2, lines[4] ?? '', lines[3] ?? ''))).toMatch(
      /stands where record 2 should/,
    );
  });
});

/** A simulated record as it would be appended. */
const asDraft = ({ thread, event, local }: LogRecord): Draft =>
  ({ ...(thread ? { thread } : {}), event, ...(local ? { local } : {}) }) as Draft;
