import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AppendFailed } from '../../../src/log/log.ts';
import { text } from '../../../src/protocol/content.ts';
import { EventId, mint } from '../../../src/protocol/ids.ts';
import { type Draft, draft, type LogRecord } from '../../../src/protocol/record.ts';
import { created, linesOf, newSession, said, texts } from './kit.ts';

const call = EventId.parse('sevt_call');
const result = (words: string): Draft => draft('agent.tool_result', { tool_use_id: call, content: [text(words)] });

describe('append', () => {
  it('makes .drover with a .gitignore that keeps it out of version control', async () => {
    const { root } = await newSession();
    expect(readFileSync(join(root, '.gitignore'), 'utf8')).toBe('*\n');
  });

  it('writes a batch together and in order', async () => {
    const { writer, log } = await newSession();
    const before = statSync(log).size;
    const records = await writer.append([said('a'), said('b'), said('c')]);
    expect(records.map((record) => record.seq)).toEqual([1, 2, 3]);
    expect(new Set(records.map((record) => record.at)).size).toBe(1);
    expect(statSync(log).size).toBe(before + linesOf(log).slice(1).join('\n').length + 1);
    expect(await writer.append([])).toEqual([]);
  });

  it('keeps the order of the calls when many append at once, whether they wait for the disk or not', async () => {
    const { writer } = await newSession();
    const heard: LogRecord[] = [];
    writer.onAppend((records) => heard.push(...records));
    const calls = Array.from({ length: 200 }, (_, n) => writer.append([said(`${n}`)], { sync: n % 3 !== 0 }));
    const returned = (await Promise.all(calls)).flat();
    expect(texts(returned)).toEqual(calls.map((_, n) => `${n}`));
    expect(returned.map((record) => record.seq)).toEqual(calls.map((_, n) => n + 1));
    expect(heard).toEqual(returned);
    const { records, damage } = await writer.read();
    expect(damage).toEqual([]);
    expect(texts(records)).toEqual(texts(returned));
  });

  it('keeps the order also when an earlier one has a blob to write first', async () => {
    const { writer } = await newSession();
    const [big, small] = await Promise.all([
      writer.append([result('x'.repeat(200_000))]),
      writer.append([said('small')]),
    ]);
    expect(small[0]?.seq).toBe((big[0]?.seq ?? 0) + 1);
  });

  it('tells listeners before the caller, in log order', async () => {
    const { writer } = await newSession();
    const order: string[] = [];
    writer.onAppend((records) => order.push(`heard ${texts(records)}`));
    await Promise.all(['a', 'b'].map((what) => writer.append([said(what)]).then(() => order.push(`returned ${what}`))));
    expect(order).toEqual(['heard a', 'heard b', 'returned a', 'returned b']);
  });

  it('refuses an event that is not valid, names its field, and writes nothing of the batch', async () => {
    const { writer, log } = await newSession(['a']);
    const before = readFileSync(log);
    const bad: [object, RegExp][] = [
      [{ ...said('x').event, content: [{ type: 'text' }] }, /agent\.message: content/],
      [{ ...said('x').event, id: '' }, /agent\.message: id/],
      [{ ...result('x').event, tool_use_id: undefined }, /agent\.tool_result: tool_use_id/],
      [{ id: 'sevt_1', type: '' }, /type/],
      [{ ...said('x').event, content: null }, /agent\.message: content/],
    ];
    for (const [event, field] of bad) {
      const failing = writer.append([said('good'), { event: event as Draft['event'] }]);
      await expect(failing).rejects.toThrow(AppendFailed);
      await expect(failing).rejects.toThrow(field);
    }
    expect(readFileSync(log)).toEqual(before);
    await writer.append([said('b')]);
    expect(texts((await writer.read()).records)).toEqual(['a', 'b']);
  });

  it('passes an event of an unknown type through untouched', async () => {
    const { writer } = await newSession();
    const event = { id: mint.event(), type: 'future.thing' as const, content: [{ type: 'hologram', data: [1, null] }] };
    await writer.append([{ event }]);
    const { records } = await writer.read();
    expect(records[1]?.event).toMatchObject(event);
  });

  it('refuses a record that is too large, and one that is no JSON', async () => {
    const { writer, log } = await newSession(['a']);
    const before = readFileSync(log);
    const input: Record<string, unknown> = { content: 'x'.repeat(17 * 1024 * 1024) };
    await expect(writer.append([draft('agent.tool_use', { name: 'write', input })])).rejects.toThrow(
      /larger than the 16 MiB/,
    );
    input.content = input;
    await expect(writer.append([draft('agent.tool_use', { name: 'write', input })])).rejects.toThrow(AppendFailed);
    expect(readFileSync(log)).toEqual(before);
  });

  it('refuses to make a session twice, and leaves the first one alone', async () => {
    const { store, id, log } = await newSession(['a']);
    const before = readFileSync(log);
    await expect(store.create(id, [created(id, mint.thread())])).rejects.toThrow(AppendFailed);
    expect(readFileSync(log)).toEqual(before);
  });

  it('leaves no folder behind when the first records are not valid', async () => {
    const { store } = await newSession();
    const id = mint.session();
    const bad = { event: { ...said('x').event, content: 1 } };
    await expect(store.create(id, [bad])).rejects.toThrow(/content/);
    expect(await store.list()).not.toContain(id);
  });
});
