import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { mint } from '../../../src/protocol/ids.ts';
import type { LogRecord } from '../../../src/protocol/record.ts';
import { eventually } from '../../support/eventually.ts';
import { Child } from './child.ts';
import { closedSession, created, linesOf, newSession, opened, said, temporary, texts } from './kit.ts';

/** Collects what a follower gets. */
function hearing() {
  const batches: LogRecord[][] = [];
  return {
    batches,
    listener: (records: LogRecord[]) => void batches.push(records),
    seqs: () => batches.flat().map((record) => record.seq),
    texts: () => texts(batches.flat()),
  };
}

const upTo = (end: number) => Array.from({ length: end }, (_, n) => n);

/** Starts other processes, on machines that have other things to do. */
const PATIENT = { timeout: 60_000 };

describe('a follower', () => {
  it('gets the history first, then what this process appends, in order and each once', async () => {
    const { store, id, writer } = await newSession(['a', 'b']);
    const heard = hearing();
    store.follow(id, 0, heard.listener);
    const calls = upTo(100).map((n) => writer.append([said(`${n}`)], { sync: n % 2 === 0 }));
    await Promise.all(calls);
    await eventually('all records', 15_000, () => heard.seqs().length >= 103);
    expect(heard.seqs()).toEqual(upTo(103));
    await writer.append([said('at once')]);
    expect(heard.texts().at(-1)).toBe('at once');
  });

  it('starts where it is asked to', async () => {
    const { store, id, writer } = await newSession(['a', 'b', 'c']);
    const heard = hearing();
    store.follow(id, 2, heard.listener);
    await eventually('the history', 15_000, () => heard.batches.length > 0);
    await writer.append([said('d')]);
    expect(heard.texts()).toEqual(['b', 'c', 'd']);
  });

  it('gets a large history in pieces, with room for other work in between', async () => {
    const { store, id } = await closedSession(upTo(2300).map(String));
    const heard = hearing();
    let rounds = 0;
    const done = new Promise<void>((resolve) => {
      const round = () => {
        rounds += 1;
        if (heard.seqs().length < 2301) setImmediate(round);
        else resolve();
      };
      setImmediate(round);
    });
    store.follow(id, 0, heard.listener);
    await done;
    expect(heard.seqs()).toEqual(upTo(2301));
    expect(Math.max(...heard.batches.map((batch) => batch.length))).toBeLessThanOrEqual(500);
    expect(rounds).toBeGreaterThan(4);
  });

  it('gets what another process appends, soon', PATIENT, async () => {
    const { root, store, id } = await closedSession(['a']);
    const heard = hearing();
    store.follow(id, 0, heard.listener);
    const child = new Child('some', root, id, 200);
    await child.says('ready');
    await eventually('drover.woke', 15_000, () => heard.seqs().length === 3);
    child.go();
    await child.says('done');
    await eventually('all records', 15_000, () => heard.seqs().length >= 203);
    expect(heard.seqs()).toEqual(upTo(203));
    expect(heard.texts().slice(1)).toEqual(upTo(200).map((n) => `${child.pid} ${n}`));
  });

  it('goes on across holders: this process, another, this one again', PATIENT, async () => {
    const { root, store, id, writer } = await newSession(['a']);
    const heard = hearing();
    store.follow(id, 0, heard.listener);
    await writer.append([said('b')]);
    await writer.release();
    const child = new Child('some', root, id, 3);
    await child.says('ready');
    child.go();
    await child.ended();
    const again = await store.acquire(id, 'back');
    await again.append([said('c')]);
    await eventually('all records', 15_000, () => heard.texts().at(-1) === 'c');
    expect(heard.seqs()).toEqual(upTo(9));
  });

  it('does not get a torn tail, but the record that is written in its place', async () => {
    const { store, id, log } = await closedSession(['a', 'b']);
    const whole = readFileSync(log);
    writeFileSync(log, whole.subarray(0, whole.length - 20));
    const heard = hearing();
    store.follow(id, 0, heard.listener);
    await eventually('the history', 15_000, () => heard.seqs().length === 2);
    const writer = await store.acquire(id, 'test');
    await writer.append([said('c')]);
    await eventually('the new records', 15_000, () => heard.texts().at(-1) === 'c');
    expect(heard.batches.flat().map(({ event }) => event.type)).toEqual([
      'drover.session_created',
      'agent.message',
      'drover.woke',
      // That a saved record is gone, and that bytes of it were cut off.
      'drover.log_damaged',
      'drover.log_damaged',
      'agent.message',
    ]);
  });

  it('of a session that is not there yet hears of it when it is', async () => {
    const root = join(await temporary(), 'later/.drover');
    const [here, there] = [opened({ root }), opened({ root, holder: { pid: process.ppid, host: 'elsewhere' } })];
    const id = mint.session();
    const heard = hearing();
    here.follow(id, 0, heard.listener);
    const writer = await there.create(id, [created(id, mint.thread())]);
    await writer.append([said('a')]);
    await eventually('the records', 15_000, () => heard.seqs().length === 2);
  });

  it('hears no more once it is disposed', async () => {
    const { store, id, writer } = await newSession(['a']);
    const heard = hearing();
    const follower = store.follow(id, 0, heard.listener);
    await eventually('the history', 15_000, () => heard.seqs().length === 2);
    follower.dispose();
    await writer.append([said('b')]);
    expect(heard.texts()).toEqual(['a']);
  });

  it('reads an appended file on from where it was, not from the start', async () => {
    const { store, id, log } = await closedSession(['a', 'b', 'c']);
    const lines = linesOf(log);
    const heard = hearing();
    store.follow(id, 0, heard.listener);
    await eventually('the history', 15_000, () => heard.seqs().length === 4);
    // Spoil what has been read, in place: whoever reads it again finds it broken.
    const bytes = readFileSync(log);
    bytes.fill('x', 0, (lines[0]?.length ?? 0) + 5);
    writeFileSync(log, bytes, { flag: 'r+' });
    const writer = await opened({ root: store.root, holder: { pid: process.ppid, host: 'elsewhere' } }).acquire(
      id,
      'test',
    );
    await writer.append([said('d')]);
    await eventually('the new record', 15_000, () => heard.texts().at(-1) === 'd');
    expect(heard.seqs()).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(heard.batches.flat().map(({ event }) => event.type)).toEqual([
      'drover.session_created',
      'agent.message',
      'agent.message',
      'agent.message',
      'drover.woke',
      'drover.log_damaged',
      'agent.message',
    ]);
  });
});

describe('a watcher of the list', () => {
  it('hears of sessions that appear and go away, in this process and in another, and of nothing else', async () => {
    const root = join(await temporary(), '.drover');
    const [here, there] = [opened({ root }), opened({ root, holder: { pid: process.ppid, host: 'elsewhere' } })];
    const heard = vi.fn();
    here.watch(heard);
    expect(existsSync(root)).toBe(false);
    const one = mint.session();
    const writer = await there.create(one, [created(one, mint.thread())]);
    await eventually('the new session', 15_000, () => heard.mock.calls.length === 1);
    await writer.append([said('a')]);
    const two = mint.session();
    await here.create(two, [created(two, mint.thread())]);
    await eventually('the second session', 15_000, () => heard.mock.calls.length === 2);
    await writer.release();
    rmSync(join(root, 'sessions', one), { recursive: true });
    await eventually('the deletion', 15_000, () => heard.mock.calls.length === 3);
    expect(await here.list()).toEqual([two]);
  });

  it('survives that .drover is deleted and made again', async () => {
    const { root, store } = await closedSession(['a']);
    const heard = vi.fn();
    store.watch(heard);
    await new Promise((resolve) => setTimeout(resolve, 100));
    rmSync(root, { recursive: true });
    await eventually('the list to be empty', 15_000, () => heard.mock.calls.length === 1);
    expect(await store.list()).toEqual([]);
    const id = mint.session();
    const other = opened({ root, holder: { pid: process.ppid, host: 'elsewhere' } });
    await other.create(id, [created(id, mint.thread())]);
    await eventually('the new session', 15_000, () => heard.mock.calls.length === 2);
    expect(await store.list()).toEqual([id]);
  });
});
