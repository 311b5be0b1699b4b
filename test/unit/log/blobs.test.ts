import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AppendFailed, BlobDamaged } from '../../../src/log/log.ts';
import type { ContentBlock } from '../../../src/protocol/content.ts';
import { text } from '../../../src/protocol/content.ts';
import { EventId } from '../../../src/protocol/ids.ts';
import { type Draft, draft, type LogRecord } from '../../../src/protocol/record.ts';
import { newSession, type Session } from './kit.ts';

const KIB = 1024;
const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const call = EventId.parse('sevt_call');
const result = (content: Parameters<typeof draft<'agent.tool_result'>>[1]['content']): Draft =>
  draft('agent.tool_result', { tool_use_id: call, content: content ?? [] });

async function append(session: Session, one: Draft): Promise<LogRecord> {
  await session.writer.append([one]);
  const { records, damage } = await session.writer.read();
  expect(damage).toEqual([]);
  const last = records.at(-1);
  if (!last) throw new Error('nothing was appended');
  return last;
}

const contentOf = ({ event }: LogRecord): ContentBlock[] => ('content' in event ? (event.content ?? []) : []);
const blobsOf = (session: Session) =>
  existsSync(join(session.folder, 'blobs')) ? readdirSync(join(session.folder, 'blobs')) : [];

describe('what is too large for a record', () => {
  it('leaves a preview of both ends, and is kept whole under its hash', async () => {
    const session = await newSession();
    const whole = `START ${'é'.repeat(30 * KIB)} END`;
    const record = await append(session, result([text('small'), text(whole)]));
    const [small, preview] = contentOf(record);
    expect(small).toEqual(text('small'));
    const shown = preview?.type === 'text' ? preview.text : '';
    expect(Buffer.byteLength(shown)).toBeLessThan(32 * KIB);
    expect(shown).toMatch(
      /^START é+\n\[… \d+ of 61450 bytes are left out here; blobs\/[0-9a-f]{64} has all of them …\]\né+ END$/,
    );
    const ref = {
      path: `blobs/${sha256(whole)}`,
      sha256: sha256(whole),
      bytes: Buffer.byteLength(whole),
      media_type: 'text/plain',
    };
    expect(record.local?.blobs).toEqual([ref]);
    expect(Buffer.from(await session.store.readBlob(session.id, ref)).toString()).toBe(whole);
    expect(readFileSync(join(session.folder, ref.path), 'utf8')).toBe(whole);
  });

  it('stays in the record up to 32 KiB exactly', async () => {
    const session = await newSession();
    const fits = 'x'.repeat(32 * KIB);
    expect(contentOf(await append(session, result([text(fits)])))).toEqual([text(fits)]);
    expect(blobsOf(session)).toEqual([]);
    await append(session, result([text(`${fits}x`)]));
    expect(blobsOf(session)).toEqual([sha256(`${fits}x`)]);
  });

  it('stays whole in a message, which the model is sent again, up to 1 MiB', async () => {
    const session = await newSession();
    const pasted = 'x'.repeat(1024 * KIB);
    const message = (words: string) => draft('user.message', { content: [text(words)] });
    expect(contentOf(await append(session, message(pasted)))).toEqual([text(pasted)]);
    const record = await append(session, message(`${pasted}x`));
    expect(record.local?.blobs).toHaveLength(1);
  });

  it('is a file reference for images and documents, whatever their size', async () => {
    const session = await newSession();
    const image = randomBytes(100);
    const pdf = randomBytes(50_000);
    const source = (media_type: string, bytes: Buffer) => ({
      type: 'base64' as const,
      media_type,
      data: bytes.toString('base64'),
    });
    const record = await append(
      session,
      result([
        { type: 'image', source: source('image/png', image) },
        { type: 'document', source: source('application/pdf', pdf), title: 'A document' },
        { type: 'image', source: { type: 'url', url: 'https://example.com/x.png' } },
      ]),
    );
    expect(contentOf(record)).toEqual([
      { type: 'image', source: { type: 'file', file_id: `file_${sha256(image)}` } },
      { type: 'document', source: { type: 'file', file_id: `file_${sha256(pdf)}` }, title: 'A document' },
      { type: 'image', source: { type: 'url', url: 'https://example.com/x.png' } },
    ]);
    expect(record.local?.blobs?.map(({ media_type, bytes }) => [media_type, bytes])).toEqual([
      ['image/png', 100],
      ['application/pdf', 50_000],
    ]);
    const [ref] = record.local?.blobs ?? [];
    if (!ref) throw new Error('no blob');
    expect(Buffer.from(await session.store.readBlob(session.id, ref))).toEqual(image);
  });

  it('is refused where an image is no base64, which would be stored as something else', async () => {
    const { writer } = await newSession();
    const image = {
      type: 'image' as const,
      source: { type: 'base64' as const, media_type: 'image/png', data: 'not base64!' },
    };
    await expect(writer.append([result([image])])).rejects.toThrow(/content\.0\.source\.data is not base64/);
  });

  it('keeps a raw model block in the record up to 1 MiB, and by its hash above', async () => {
    const session = await newSession();
    const raw = (size: number) => ({ type: 'thinking', thinking: 'x'.repeat(size), signature: 's' });
    const thought = (size: number) => draft('agent.thinking', {}, { local: { raw: raw(size) } });
    expect((await append(session, thought(1000))).local?.raw).toEqual(raw(1000));
    const record = await append(session, thought(1024 * KIB));
    const json = JSON.stringify(raw(1024 * KIB));
    expect(record.local?.raw).toEqual({ blob: sha256(json) });
    const [ref] = record.local?.blobs ?? [];
    if (!ref) throw new Error('no blob');
    expect(Buffer.from(await session.store.readBlob(session.id, ref)).toString()).toBe(json);
  });

  it('is kept beside what the caller has stored itself, and once if it is the same', async () => {
    const session = await newSession();
    const whole = randomBytes(300_000);
    const ref = await session.writer.putBlob(whole, 'application/octet-stream');
    expect(ref).toEqual({
      path: `blobs/${sha256(whole)}`,
      sha256: sha256(whole),
      bytes: 300_000,
      media_type: 'application/octet-stream',
    });
    expect(await session.writer.putBlob(whole, 'application/octet-stream')).toEqual(ref);
    const long = 'y'.repeat(40 * KIB);
    const one = result([text(long), text(long)]);
    const record = await append(session, { ...one, local: { blobs: [ref], exit_code: 0 } });
    expect(record.local?.exit_code).toBe(0);
    expect(record.local?.blobs?.map((blob) => blob.sha256)).toEqual([ref.sha256, sha256(long)]);
    expect(blobsOf(session).sort()).toEqual([ref.sha256, sha256(long)].sort());
  });

  it('does not change the draft it was given', async () => {
    const session = await newSession();
    const one = result([text('z'.repeat(40 * KIB))]);
    const before = structuredClone(one);
    await session.writer.append([one]);
    expect(one).toEqual(before);
  });
});

describe('a blob', () => {
  it('that is damaged or gone is not given out, and is written anew with the next same value', async () => {
    const session = await newSession();
    const ref = await session.writer.putBlob(Buffer.from('precious'), 'text/plain');
    const path = join(session.folder, ref.path);
    writeFileSync(path, 'precioux');
    await expect(session.store.readBlob(session.id, ref)).rejects.toThrow(BlobDamaged);
    await session.writer.putBlob(Buffer.from('precious'), 'text/plain');
    expect(readFileSync(path, 'utf8')).toBe('precious');
    const gone = { ...ref, sha256: 'a'.repeat(64) };
    await expect(session.store.readBlob(session.id, gone)).rejects.toThrow(BlobDamaged);
  });

  it('is never read from another path than its hash names', async () => {
    const session = await newSession(['secret']);
    const ref = { path: '../log.jsonl', sha256: '../log.jsonl', bytes: 1, media_type: 'text/plain' };
    await expect(session.store.readBlob(session.id, ref)).rejects.toThrow(BlobDamaged);
  });

  it('is refused after the session was given back', async () => {
    const { writer } = await newSession();
    await writer.release();
    await expect(writer.putBlob(Buffer.from('x'), 'text/plain')).rejects.toThrow(AppendFailed);
  });
});
