import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { AppendFailed, LeaseHeld, SessionMissing } from '../../../src/log/log.ts';
import { mint, SessionId } from '../../../src/protocol/ids.ts';
import { eventually } from '../../support/eventually.ts';
import { Child } from './child.ts';
import { closedSession, newSession, opened, said } from './kit.ts';

describe('deleting a session', () => {
  it('takes its folder away, blobs and all, and leaves the others alone', async () => {
    const { store, id, folder, writer, root } = await newSession(['a']);
    await writer.putBlob(Buffer.from('output'), 'text/plain');
    await writer.release();
    const other = mint.session();
    await (await store.create(other, [said('other')])).release();
    const heard = vi.fn();
    store.watch(heard);
    await store.delete(id);
    expect(existsSync(folder)).toBe(false);
    expect(readdirSync(join(root, 'sessions'))).toEqual([other]);
    expect(await store.list()).toEqual([other]);
    await eventually('the watcher to hear of it', 15_000, () => heard.mock.calls.length > 0);
    await expect(store.read(id)).rejects.toThrow(SessionMissing);
    await expect(store.delete(id)).rejects.toThrow(SessionMissing);
    await expect(store.verify(id)).rejects.toThrow(SessionMissing);
  });

  it('releases this process’s own writer first, which appends nothing any more', async () => {
    const { store, id, writer, folder } = await newSession(['a']);
    const before = writer.append([said('b')]);
    await store.delete(id);
    await before;
    expect(existsSync(folder)).toBe(false);
    await expect(writer.append([said('c')])).rejects.toThrow(AppendFailed);
  });

  it('is refused while another living process holds it, and done when that one is dead', async () => {
    const { root, id, store, folder } = await closedSession(['a']);
    const child = new Child('hold', root, id);
    await child.says('holds');
    await expect(store.delete(id)).rejects.toThrow(LeaseHeld);
    expect(existsSync(join(folder, 'log.jsonl'))).toBe(true);
    await child.kill();
    await store.delete(id);
    expect(existsSync(folder)).toBe(false);
  });

  it('takes away a session whose log can’t be read, and what a crash left of an earlier deletion', async () => {
    const { root, id, store, log } = await closedSession(['a']);
    writeFileSync(log, '\0'.repeat(100));
    const left = join(root, 'sessions', '.deleted-sesn_before');
    mkdirSync(left);
    writeFileSync(join(left, 'log.jsonl'), 'x');
    expect(await store.list()).toEqual([id]);
    await store.delete(id);
    expect(readdirSync(join(root, 'sessions'))).toEqual([]);
  });

  it('never leaves the folder of sessions, whatever the id', async () => {
    const { store, root } = await closedSession(['a']);
    writeFileSync(join(root, 'keep.txt'), 'x');
    for (const id of ['..', '../..', '.', 'a/b', '']) {
      await expect(store.delete(id as SessionId)).rejects.toThrow(SessionMissing);
    }
    expect(existsSync(join(root, 'keep.txt'))).toBe(true);
    expect(SessionId.safeParse('..').success).toBe(true);
  });

  it('is refused to a window that does not have the lease, even with its own process id on another host', async () => {
    const { root, id } = await newSession(['a'], { holder: { pid: process.pid, host: `not-${hostname()}` } });
    await expect(opened({ root }).delete(id)).rejects.toThrow(LeaseHeld);
  });
});
