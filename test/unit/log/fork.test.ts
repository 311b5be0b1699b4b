import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { forkDrafts } from '../../../src/harness/fork.ts';
import type { SessionStore } from '../../../src/log/log.ts';
import { mint, type SessionId } from '../../../src/protocol/ids.ts';
import { draft, type LogRecord, type Seq } from '../../../src/protocol/record.ts';
import { validateMessages } from '../../../src/rehearsal/validate.ts';
import { decide, nothingInHand } from '../../../src/session/decide.ts';
import { fold } from '../../../src/session/fold.ts';
import type { SessionState } from '../../../src/session/state.ts';
import { transcript } from '../../../src/session/transcript.ts';
import { newSession, opened, said, temporary } from './kit.ts';

const LOGS = join(import.meta.dirname, '../../fixtures/logs/v1');

/** Forks a session at one of its records, as the command does. */
async function fork(store: SessionStore, session: SessionId, records: LogRecord[], seq: Seq): Promise<SessionId> {
  const at = records.findIndex((record) => record.seq === seq);
  const { hash } = records[at] ?? { hash: '' };
  const from = { session, seq, hash };
  const id = mint.session();
  const state = fold(records.slice(0, at + 1));
  const actor = { type: 'person', via: 'command' } as const;
  await store.fork(from, id, forkDrafts({ state, from, id, title: 'A fork', actor, now: Date.now() }));
  return id;
}

function assertAtRest(state: SessionState): void {
  const steps = decide(state, nothingInHand);
  // What nobody has read yet is not lost; all else waits for a person.
  for (const step of steps) {
    expect(step).toMatchObject({ type: 'request_model' });
    expect(step.type === 'request_model' && step.inputs.length).toBeGreaterThan(0);
  }
  for (const id of state.threads.keys()) {
    const messages = transcript(state, id).map(({ role, blocks }) => ({
      role,
      content: blocks.map((one) => one.block),
    }));
    expect(messages.length === 0 ? undefined : validateMessages(messages)).toBeUndefined();
  }
}

describe('a fork', () => {
  it('is the other log byte for byte up to its record, with the blobs, and then says where it is from', async () => {
    const { root, store, id, writer, log, folder } = await newSession();
    const blob = await writer.putBlob(Buffer.from('a large output'), 'text/plain');
    const [first] = await writer.append([{ ...said('one'), local: { blobs: [blob] } }]);
    const late = await writer.putBlob(Buffer.from('later'), 'text/plain');
    await writer.append([{ ...said('two'), local: { blobs: [late] } }]);
    const { records } = await store.read(id);
    const forked = await fork(store, id, records, first?.seq ?? -1);
    const place = join(root, 'sessions', forked);
    const [bytes, whole] = await Promise.all([readFile(join(place, 'log.jsonl')), readFile(log)]);
    const end = whole.indexOf(`"hash":"${first?.hash}"`) + `"hash":"${first?.hash}"}\n`.length;
    expect(bytes.subarray(0, end).equals(whole.subarray(0, end))).toBe(true);
    const reading = await store.read(forked);
    const next = reading.records[(first?.seq ?? 0) + 1];
    expect(next?.event).toMatchObject({
      type: 'drover.forked_from',
      session_id: id,
      seq: first?.seq,
      hash: first?.hash,
    });
    expect(await readdir(join(place, 'blobs'))).toEqual([blob.sha256]);
    expect(Buffer.from(await store.readBlob(forked, blob)).toString()).toBe('a large output');
    expect((await store.verify(forked)).wrong.count).toBe(0);
    expect((await store.list()).sort()).toEqual([id, forked].sort());
    // The other one has not changed, and its going takes nothing from the fork.
    expect(await readFile(log)).toEqual(whole);
    await store.delete(id);
    expect((await readdir(join(folder, '..'))).filter((name) => !name.startsWith('.'))).toEqual([forked]);
    expect((await store.verify(forked)).wrong.count).toBe(0);
  });

  it('can be woken and goes on, and passes verification then too', async () => {
    const { store, id, writer } = await newSession();
    await writer.append([said('one')]);
    const { records } = await store.read(id);
    const forked = await fork(store, id, records, records.at(-1)?.seq ?? 0);
    const other = await store.acquire(forked, 'a test');
    await other.append([said('in the fork')]);
    await other.release();
    const verified = await store.verify(forked);
    expect(verified.wrong.count).toBe(0);
    const state = fold((await store.read(forked)).records);
    expect([state.id, state.title, state.forkedFrom]).toEqual([
      forked,
      'A fork',
      { session: id, seq: records.at(-1)?.seq },
    ]);
    expect(state.sandbox).toBeNull();
  });

  it('rests wherever in a turn it is made: at every record of every kind of session', async () => {
    const root = await temporary();
    const store = opened({ root });
    for (const name of await readdir(LOGS)) {
      const id = mint.session();
      await cp(join(LOGS, name), join(root, 'sessions', id), { recursive: true });
      const { records } = await store.read(id);
      for (const { seq } of records) {
        const forked = await fork(store, id, records, seq);
        const state = fold((await store.read(forked)).records);
        assertAtRest(state);
        expect(state.status, `${name} at ${seq}`).toBe('idle');
        await rm(join(root, 'sessions', forked), { recursive: true });
      }
    }
  }, 60_000);

  it('is not made of a record that is not there as it was shown', async () => {
    const { store, id } = await newSession();
    await expect(store.fork({ session: id, seq: 0, hash: 'x' }, mint.session(), [])).rejects.toThrow(
      /no fork was made/,
    );
    const none = mint.session();
    await expect(store.fork({ session: none, seq: 0, hash: 'x' }, mint.session(), [])).rejects.toThrow(/no session/);
    expect(await store.list()).toEqual([id]);
  });

  it('takes nothing that is there already, and leaves nothing half-made', async () => {
    const { root, store, id } = await newSession();
    const [record] = (await store.read(id)).records;
    const from = { session: id, seq: 0, hash: record?.hash ?? '' };
    await expect(store.fork(from, id, [])).rejects.toThrow(/There is a session/);
    const bad = draft('drover.budget_settled', {
      reservation_id: mint.event(),
      amount_usd: Number.NaN,
      estimated: false,
    });
    await expect(store.fork(from, mint.session(), [bad])).rejects.toThrow(/not valid/);
    await writeFile(join(root, 'sessions', 'not-a-folder'), '');
    expect((await readdir(join(root, 'sessions'))).sort()).toEqual([id, 'not-a-folder'].sort());
  });
});
