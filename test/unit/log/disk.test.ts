import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AppendFailed } from '../../../src/log/log.ts';
import { mint } from '../../../src/protocol/ids.ts';
import { draft } from '../../../src/protocol/record.ts';
import { canMount, failingDisk, fill, makeReadOnly, smallDisk } from './disk.ts';
import { created, linesOf, opened, said, snapshot, texts } from './kit.ts';

const big = (bytes: number) => draft('agent.tool_use', { name: 'write', input: { content: 'x'.repeat(bytes) } });

async function sessionOn(place: string) {
  const root = join(place, '.drover');
  const store = opened({ root });
  const id = mint.session();
  const writer = await store.create(id, [created(id, mint.thread())]);
  const folder = join(root, 'sessions', id);
  return { root, store, id, writer, folder, log: join(folder, 'log.jsonl') };
}

describe.skipIf(!canMount)('a full disk', () => {
  it('leaves nothing of the batch, says so, and goes on when there is room again', async () => {
    const place = await smallDisk(256);
    const { writer, log } = await sessionOn(place);
    await writer.append([said('a')]);
    fill(join(place, 'filler'));
    const before = readFileSync(log);
    const failing = writer.append([said('b'), big(100_000), said('c')]);
    await expect(failing).rejects.toThrow(AppendFailed);
    await expect(failing).rejects.toThrow(/free some space/);
    expect(readFileSync(log)).toEqual(before);
    rmSync(join(place, 'filler'));
    await writer.append([said('d')]);
    const { records, damage, tornBytes } = await writer.read();
    expect(texts(records)).toEqual(['a', 'd']);
    expect({ damage, tornBytes }).toEqual({ damage: [], tornBytes: 0 });
  });

  it('takes back a write of which only a part fits', async () => {
    const place = await smallDisk(256);
    const { writer, log } = await sessionOn(place);
    await writer.append([said('a')]);
    const before = readFileSync(log);
    await expect(writer.append([big(400_000)])).rejects.toThrow(/only \d+ of \d+ bytes fitted|disk is full/);
    expect(readFileSync(log)).toEqual(before);
    await writer.append([said('b')]);
    expect(texts((await writer.read()).records)).toEqual(['a', 'b']);
  });

  it('leaves no half of a blob, and no record that names it', async () => {
    const place = await smallDisk(256);
    const { writer, log, folder } = await sessionOn(place);
    const before = linesOf(log);
    await expect(writer.putBlob(Buffer.alloc(400_000), 'x/y')).rejects.toThrow(/disk is full/);
    expect(readdirSync(join(folder, 'blobs'))).toEqual([]);
    expect(linesOf(log)).toEqual(before);
  });

  it('keeps a session from being made or taken, and leaves its lease free', async () => {
    const place = await smallDisk(256);
    const { writer, store, id } = await sessionOn(place);
    await writer.release();
    fill(join(place, 'filler'));
    const second = mint.session();
    await expect(store.create(second, [created(second, mint.thread())])).rejects.toThrow(/disk is full/);
    await expect(store.acquire(id, 'test')).rejects.toThrow(/disk is full/);
    expect(await store.list()).toEqual([id]);
    rmSync(join(place, 'filler'));
    expect(await store.holder(id)).toBeNull();
    expect((await store.acquire(id, 'test')).fence).toBeGreaterThan(1);
  });
});

describe.skipIf(!canMount)('a read-only folder', () => {
  it('can be read and followed, and is told apart when something is to be written', async () => {
    const place = await smallDisk(256);
    const { writer, store, id, folder } = await sessionOn(place);
    await writer.append([said('a')]);
    await writer.release();
    makeReadOnly(place);
    const before = snapshot(folder);
    expect(texts((await store.read(id)).records)).toEqual(['a']);
    await expect(store.acquire(id, 'test')).rejects.toThrow(/read-only/);
    const second = mint.session();
    await expect(store.create(second, [created(second, mint.thread())])).rejects.toThrow(/read-only/);
    expect(snapshot(folder)).toEqual(before);
    expect(await store.list()).toEqual([id]);
  });
});

describe.skipIf(!canMount)('a disk that can not make writes durable', () => {
  // What came before must not matter.
  it.each([1, 60])(
    'after %i syncs takes the batch back, keeps what it was told before, and loses nothing of that in a power cut',
    async (syncs) => {
      const disk = await failingDisk();
      const { root, writer, id, log } = await sessionOn(disk.place);
      const heard: string[] = [];
      writer.onAppend((records) => heard.push(...texts(records)));
      const durable = Array.from({ length: syncs }, (_, n) => `durable ${n}`);
      for (const what of durable) await writer.append([said(what)]);
      // Large enough to have pages of its own, which nothing that is written later makes dirty again.
      const written = `written ${'x'.repeat(40_000)}`;
      await writer.append([said(written)], { sync: false });
      disk.fail();
      const size = statSync(log).size;
      const failing = [writer.append([said('refused'), big(3_000_000)]), writer.append([said('refused too')])];
      for (const one of failing) await expect(one).rejects.toThrow(AppendFailed);
      expect(statSync(log).size).toBe(size);
      disk.mend();
      await writer.append([said('after')]);
      expect(heard).toEqual([...durable, written, 'after']);
      await writer.release();
      disk.powerCut();
      const reading = await opened({ root }).read(id);
      expect(texts(reading.records)).toEqual([...durable, written, 'after']);
      expect(reading).toMatchObject({ damage: [], tornBytes: 0 });
    },
  );
});
