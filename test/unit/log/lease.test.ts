import { linkSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { LeaseFile } from '../../../src/log/lease.ts';
import { AppendFailed, LeaseHeld, LeaseLost } from '../../../src/log/log.ts';
import { eventually } from '../../support/eventually.ts';
import { Child } from './child.ts';
import { closedSession, newSession, opened, said, temporary, texts } from './kit.ts';

/** A process that is alive but is not this one, and one that is not alive. */
const ALIVE = { pid: process.ppid, host: hostname() };
const DEAD = { pid: 2 ** 22 + 1, host: hostname() };
const ELSEWHERE = { pid: process.pid, host: 'another-host' };

describe('a lease', () => {
  it('is taken by the creator with fence 1, and by each new holder with one more and drover.woke first', async () => {
    const { store, id, writer } = await newSession(['a']);
    expect(writer.fence).toBe(1);
    expect(await store.holder(id)).toEqual({ pid: process.pid, host: hostname(), fence: 1, ours: true });
    await writer.release();
    expect(await store.holder(id)).toBeNull();
    const second = await store.acquire(id, 'a message came');
    expect(second.fence).toBe(2);
    const { records } = await second.read();
    expect(records.filter(({ event }) => event.type === 'drover.woke')).toHaveLength(1);
    expect(records.at(-1)).toMatchObject({
      fence: 2,
      event: { type: 'drover.woke', why: 'a message came', holder: { pid: process.pid, host: hostname() } },
    });
  });

  it('is the same for every caller of a process, also through another store', async () => {
    const { store, id, root } = await closedSession(['a']);
    const other = opened({ root });
    const [one, two, three] = await Promise.all([
      store.acquire(id, 'x'),
      store.acquire(id, 'y'),
      other.acquire(id, 'z'),
    ]);
    expect(two).toBe(one);
    expect(three).toBe(one);
    await store.dispose();
    await one.append([said('the other store still has it')]);
    await other.dispose();
    expect(await opened({ root }).holder(id)).toBeNull();
  });

  it('is refused while another process of this host lives, and taken at once when it is dead', async () => {
    for (const [holder, free] of [
      [ALIVE, false],
      [DEAD, true],
    ] as const) {
      const { root, id } = await newSession(['a'], { holder });
      const store = opened({ root });
      if (free) expect((await store.acquire(id, 'test')).fence).toBe(2);
      else {
        await expect(store.acquire(id, 'test')).rejects.toThrow(LeaseHeld);
        await expect(store.acquire(id, 'test')).rejects.toThrow(`process ${ALIVE.pid} on ${hostname()}`);
        expect(await store.holder(id)).toEqual({ ...ALIVE, fence: 1, ours: false });
      }
    }
  });

  it('of another host is taken only when its heartbeat is too old', async () => {
    const start = Date.now();
    const { root, id } = await newSession(['a'], { holder: ELSEWHERE, now: () => new Date(start) });
    const at = (ms: number) => opened({ root, now: () => new Date(start + ms) });
    await expect(at(14_000).acquire(id, 'test')).rejects.toThrow(LeaseHeld);
    expect(await at(14_000).holder(id)).toEqual({ ...ELSEWHERE, fence: 1, ours: false });
    expect(await at(16_000).holder(id)).toBeNull();
    expect((await at(16_000).acquire(id, 'test')).fence).toBe(2);
  });

  it('stays with a holder who does nothing, because it sends heartbeats', async () => {
    const { root, id } = await newSession(['a'], { holder: ELSEWHERE, leaseMs: 300 });
    const other = opened({ root, leaseMs: 300 });
    await new Promise((resolve) => setTimeout(resolve, 900));
    await expect(other.acquire(id, 'test')).rejects.toThrow(LeaseHeld);
  });

  it('that is taken over stops the former holder at its next append, and tells it before', async () => {
    const { root, id, writer } = await newSession(['a'], { holder: ALIVE });
    const lost = vi.fn();
    writer.onLost(lost);
    const store = opened({ root });
    const second = await store.takeOver(id, 'the person wants it here');
    expect(second.fence).toBe(2);
    await expect(writer.append([said('too late')])).rejects.toThrow(LeaseLost);
    await eventually('the former holder to be told', 15_000, () => lost.mock.calls.length === 1);
    await second.append([said('b')]);
    const reading = await second.read();
    expect(texts(reading.records)).toEqual(['a', 'b']);
    expect(reading).toMatchObject({ damage: [], stale: 0 });
    await expect(writer.append([said('again')])).rejects.toThrow(LeaseLost);
    expect(lost).toHaveBeenCalledTimes(1);
  });

  it('tells a holder that is idle that it was taken over', async () => {
    const { root, id, writer } = await newSession(['a'], { holder: ALIVE });
    const lost = vi.fn();
    writer.onLost(lost);
    await opened({ root }).takeOver(id, 'test');
    await eventually('the former holder to be told', 15_000, () => lost.mock.calls.length === 1);
  });

  it('gets a fence above the highest in the log even if the lease file is gone or broken', async () => {
    const { store, id, folder } = await closedSession(['a']);
    await (await store.acquire(id, 'second')).release();
    rmSync(join(folder, 'lease'));
    const third = await store.acquire(id, 'third');
    expect(third.fence).toBe(3);
    await third.release();
    writeFileSync(join(folder, 'lease'), '\0\0\0\0');
    const later = opened({ root: join(folder, '../..'), now: () => new Date(Date.now() + 60_000) });
    expect((await later.acquire(id, 'fourth')).fence).toBe(4);
  });

  it('is kept by its holder if somebody else removes or overwrites the file', async () => {
    const { writer, folder, store, id } = await newSession(['a']);
    rmSync(join(folder, 'lease'));
    await writer.append([said('b')]);
    await eventually('the lease file to be there again', 15_000, () => readFileSync(join(folder, 'lease'), 'utf8'));
    writeFileSync(join(folder, 'lease'), 'nonsense');
    await writer.append([said('c')]);
    expect(await store.holder(id)).toMatchObject({ fence: 1, ours: true });
  });

  it('refuses appends after it was given back, and honours those made before', async () => {
    const { writer, store, id } = await newSession();
    const before = writer.append([said('a')]);
    const released = writer.release();
    await expect(writer.append([said('b')])).rejects.toThrow(AppendFailed);
    await Promise.all([before, released]);
    expect(texts((await store.read(id)).records)).toEqual(['a']);
  });

  it('is let go when the store is disposed, which opens nothing any more', async () => {
    const { store, id, root, writer } = await newSession(['a']);
    const heard = vi.fn();
    await store.dispose();
    expect(await opened({ root }).holder(id)).toBeNull();
    await expect(writer.append([said('b')])).rejects.toThrow(AppendFailed);
    await expect(store.acquire(id, 'test')).rejects.toThrow(/closing/);
    store.follow(id, 0, heard);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(heard).not.toHaveBeenCalled();
  });

  it('is lost when the session folder is deleted under it', async () => {
    const { writer, folder } = await newSession(['a']);
    rmSync(folder, { recursive: true });
    await expect(writer.append([said('b')])).rejects.toThrow(LeaseLost);
  });

  it('is lost when another takes it between the look and the write of a heartbeat, which covers up what that one wrote', async () => {
    const path = join(await temporary(), 'lease');
    let meanwhile: (() => void) | undefined;
    // The time is asked for just between the two.
    const now = () => {
      meanwhile?.();
      meanwhile = undefined;
      return new Date();
    };
    const lease = await new LeaseFile(path, { now }).take();
    const lost = vi.fn();
    lease.whenLost(lost);
    meanwhile = () => {
      const heartbeat = new Date().toISOString();
      const theirs = JSON.stringify({ ...ELSEWHERE, fence: 2, space: 'elsewhere', token: 'theirs', heartbeat });
      writeFileSync(`${path}.2`, theirs);
      writeFileSync(path, theirs);
    };
    expect(await lease.renew()).toBe(false);
    expect(JSON.parse(readFileSync(path, 'utf8')).fence).toBe(1);
    expect(lost).toHaveBeenCalledTimes(1);
    expect(lease.check()).toBe(false);
    expect(new LeaseFile(path).current()).toMatchObject({ host: ELSEWHERE.host, fence: 2 });
  });

  it('is free at once when whoever was taking it died, whatever was on the disk at that moment', async () => {
    const folder = await temporary();
    const moments: Map<string, string>[] = [];
    // The time is asked for between the files.
    const now = () => {
      moments.push(new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')])));
      return new Date();
    };
    await new LeaseFile(join(folder, 'lease'), { holder: DEAD, now }).take();
    now();
    expect(moments.length).toBeGreaterThan(2);
    for (const moment of moments) {
      const left = await temporary();
      for (const [name, text] of moment) writeFileSync(join(left, name), text);
      const lease = await new LeaseFile(join(left, 'lease')).take();
      expect(lease.fence).toBeLessThanOrEqual(2);
      await lease.release();
    }
  });

  it('takes away the drafts that a crash left, when they are old', async () => {
    const folder = await temporary();
    writeFileSync(join(folder, 'lease.of-a-crash.tmp'), '');
    const lease = await new LeaseFile(join(folder, 'lease')).take();
    expect(readdirSync(folder).sort()).toEqual(['lease', 'lease.1', 'lease.of-a-crash.tmp']);
    await lease.release();
    const later = new LeaseFile(join(folder, 'lease'), { now: () => new Date(Date.now() + 60_000) });
    await (await later.take()).release();
    expect(readdirSync(folder)).toEqual(['lease']);
  });

  it('is seen to be lost also where a backup had linked its file to a second name', async () => {
    const path = join(await temporary(), 'lease');
    const lease = await new LeaseFile(path, { holder: ALIVE }).take();
    expect(lease.check()).toBe(true);
    linkSync(path, `${path}-kept-by-a-backup`);
    const other = await new LeaseFile(path).take({ force: true });
    expect(lease.check()).toBe(false);
    expect(other.check()).toBe(true);
    await other.release();
  });

  it('goes to exactly one of many that race for it in one moment', async () => {
    const path = join(await temporary(), 'lease');
    for (let round = 0; round < 20; round++) {
      const racers = Array.from(
        { length: 8 },
        (_, n) => new LeaseFile(path, { holder: { pid: 1000 + n, host: `host-${n}` } }),
      );
      const results = await Promise.allSettled(racers.map((racer) => racer.take()));
      const winners = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      expect(winners).toHaveLength(1);
      expect(winners[0]?.fence).toBe(round + 1);
      await winners[0]?.release();
    }
  });
});

/** Each starts several processes, on machines that have other things to do. */
const PATIENT = { timeout: 90_000 };

describe('two processes', PATIENT, () => {
  it('that race for a dead session have exactly one winner', async () => {
    const { root, id, store } = await closedSession(['a']);
    for (let round = 1; round <= 3; round++) {
      const dying = new Child('hold', root, id);
      await dying.says('holds');
      await expect(store.acquire(id, 'test')).rejects.toThrow(LeaseHeld);
      await dying.kill();
      const racers = [new Child('race', root, id), new Child('race', root, id)];
      await Promise.all(racers.map((racer) => racer.says('ready')));
      for (const racer of racers) racer.go();
      const lines = await Promise.all(
        racers.map(async (racer) => {
          await Promise.any([racer.says('won'), racer.says('lost')]);
          return racer.lines.at(-1);
        }),
      );
      expect(lines.filter((line) => line && 'won' in line)).toHaveLength(1);
      const winner = racers[lines.findIndex((line) => line && 'won' in line)];
      expect(lines.find((line) => line && 'lost' in line)).toEqual({ lost: winner?.pid });
      for (const racer of racers) racer.go();
      await Promise.all(racers.map((racer) => racer.ended()));
      const reading = await store.read(id);
      expect(reading).toMatchObject({ damage: [], stale: 0, tornBytes: 0 });
      expect(texts(reading.records).at(-1)).toBe(`winner ${winner?.pid}`);
    }
  });

  it('lose nothing that was acknowledged when one is killed in the middle of its appends', async () => {
    const { root, id, store } = await closedSession(['a']);
    for (let round = 0; round < 3; round++) {
      const child = new Child('append', root, id);
      await child.says('acknowledged');
      await eventually('some more records', 10_000, () => child.lines.length > 20 + 15 * round);
      await child.kill();
      const writer = await store.acquire(id, 'after the crash');
      const { records, damage } = await writer.read();
      const hashes = new Set(records.map((record) => record.hash));
      const acknowledged = child.lines.flatMap((line) => (Array.isArray(line.acknowledged) ? line.acknowledged : []));
      expect(acknowledged.filter((hash) => !hashes.has(hash))).toEqual([]);
      expect(damage).toEqual([]);
      expect(records.map((record) => record.seq)).toEqual(records.map((_, index) => index));
      await writer.release();
    }
  });

  it('keep a log whole while one takes it over from the other in full flight', async () => {
    const { root, id, store } = await closedSession(['a']);
    for (let round = 0; round < 5; round++) {
      const child = new Child('append', root, id);
      await child.says('acknowledged');
      const writer = await store.takeOver(id, 'mine now');
      await writer.append([said(`round ${round}`)]);
      await child.says('stopped');
      expect(child.lines).toContainEqual({ told: 'lost' });
      const reading = await writer.read();
      expect(reading.damage).toEqual([]);
      expect(texts(reading.records).at(-1)).toBe(`round ${round}`);
      const hashes = new Set(reading.records.map((record) => record.hash));
      const acknowledged = child.lines.flatMap((line) => (Array.isArray(line.acknowledged) ? line.acknowledged : []));
      expect(acknowledged.filter((hash) => !hashes.has(hash))).toEqual([]);
      await writer.release();
    }
  });
});
