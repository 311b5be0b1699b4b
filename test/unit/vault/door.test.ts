import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { forkDrafts } from '../../../src/harness/fork.ts';
import { openStore } from '../../../src/log/store.ts';
import { text } from '../../../src/protocol/content.ts';
import { CredentialId, mint, VaultId } from '../../../src/protocol/ids.ts';
import { type Draft, draft } from '../../../src/protocol/record.ts';
import { noUsage } from '../../../src/protocol/usage.ts';
import { fold } from '../../../src/session/fold.ts';
import { Door } from '../../../src/vault/door.ts';
import { Redactor } from '../../../src/vault/redactor.ts';
import { temporaryFolder } from './kit.ts';

const SECRET = 'tok_4f8E7d6c5B4a';
const base64 = Buffer.from(`user:${SECRET}`).toString('base64');

/** A real log with the door in front of it. */
async function session(values: string[] = [SECRET]) {
  const root = join(await temporaryFolder(), '.drover');
  const redactor = new Redactor();
  const name = { credential_id: CredentialId.parse('vcrd_1'), vault_id: VaultId.parse('vlt_1'), name: 'DEPLOY' };
  redactor.know('vcrd_1', name, values);
  const told: Draft[] = [];
  const door = new Door(
    redactor,
    async () => undefined,
    (alarms) => void told.push(...alarms),
  );
  const store = openStore({ root, door });
  onTestFinished(() => store.dispose());
  const id = mint.session();
  const primary = mint.thread();
  const now = new Date().toISOString();
  const writer = await store.create(id, [
    draft('drover.session_created', {
      session_id: id,
      primary_thread_id: primary,
      title: `deploy with ${SECRET}`,
      agent: { name: 'A', model: 'm' },
      environment: {
        id: mint.environment(),
        type: 'environment',
        name: 'E',
        config: { type: 'os' },
        created_at: now,
        updated_at: now,
        archived_at: null,
      },
      vault_ids: [],
      strategy: 'elide',
    }),
  ]);
  const folder = join(root, 'sessions', id);
  /** Every byte the session has on the disk. */
  const bytes = async () => {
    const names = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = names.filter((entry) => entry.isFile());
    return Buffer.concat(await Promise.all(files.map((file) => readFile(join(file.parentPath, file.name))))).toString();
  };
  const alarms = async () =>
    (await store.read(id)).records.flatMap(({ event }) =>
      event.type === 'drover.secret_alarm' && 'where' in event ? [event] : [],
    );
  return { store, writer, primary, id, bytes, alarms, told };
}

describe('the door of the log', () => {
  it('lets no value into a record, whatever field it is in, and stores an alarm in the same write', async () => {
    const { writer, primary, bytes, alarms, told } = await session();
    const [result, alarm, ...more] = await writer.append([
      draft(
        'agent.tool_result',
        { tool_use_id: mint.event(), content: [text(`TOKEN=${SECRET}\nauth: Basic ${base64}`)] },
        { thread: primary, local: { real_path: `/work/${SECRET}` } },
      ),
    ]);
    expect(result?.event).toMatchObject({
      content: [
        text(expect.stringMatching(/^TOKEN=\[redacted: DEPLOY\]\nauth: Basic .{0,9}\[redacted: DEPLOY\].{0,2}$/)),
      ],
    });
    expect(result?.local?.real_path).toBe('/work/[redacted: DEPLOY]');
    expect(alarm).toMatchObject({
      thread: primary,
      event: {
        type: 'drover.secret_alarm',
        credential_id: 'vcrd_1',
        vault_id: 'vlt_1',
        where: 'record',
        event_id: result?.event.id,
        event_type: 'agent.tool_result',
      },
    });
    expect([alarm, ...more]).toHaveLength(2);
    const stored = await bytes();
    for (const secret of [SECRET, base64]) expect(stored).not.toContain(secret);
    const forms = (await alarms()).map(({ form, count }) => [form, count]);
    // The title of the session, the path and the text, and the base64.
    expect(forms).toEqual([
      ['plain', 1],
      ['plain', 2],
      ['base64', 1],
    ]);
    expect(told).toHaveLength(3);
  });

  it('lets no value into a blob, neither one that is put there nor one that a large text becomes', async () => {
    const { store, id, writer, bytes, alarms } = await session();
    const large = `${'x'.repeat(40_000)}${SECRET}${'y'.repeat(40_000)}`;
    const blob = await writer.putBlob(Buffer.from(large), 'text/plain');
    await writer.append([
      draft('agent.tool_result', { tool_use_id: mint.event(), content: [text(large)] }, { local: { blobs: [blob] } }),
    ]);
    expect(Buffer.from(await store.readBlob(id, blob)).toString()).toBe(large.replace(SECRET, '[redacted: DEPLOY]'));
    expect(await bytes()).not.toContain(SECRET);
    expect((await alarms()).map(({ where }) => where)).toEqual(['record', 'blob', 'record']);
  });

  it('drops a block that was to be sent back verbatim if there is a value in it', async () => {
    const { writer, primary } = await session();
    const span = mint.event();
    const raw = { type: 'thinking', thinking: `the token is ${SECRET}`, signature: 'abc' };
    const local = { reply: { span, index: 0 } };
    const clean = { type: 'thinking', thinking: 'nothing', signature: 'abc' };
    const records = await writer.append([
      draft('agent.thinking', {}, { thread: primary, local: { ...local, raw } }),
      draft('agent.thinking', {}, { thread: primary, local: { ...local, raw: clean } }),
      draft('span.model_request_end', { model_request_start_id: span, is_error: false, model_usage: noUsage() }),
    ]);
    expect(records.slice(0, 2).map((record) => record.local)).toEqual([local, { ...local, raw: clean }]);
  });

  it('leaves everything else as it is, and raises nothing', async () => {
    const { writer, alarms } = await session(['another-value-altogether']);
    const content = [text(`just ${SECRET.slice(0, 8)}`)];
    const [record, ...more] = await writer.append([draft('user.message', { content })]);
    expect(record?.event).toMatchObject({ content });
    expect(more).toEqual([]);
    expect(await alarms()).toEqual([]);
  });

  it('stands before a fork too: what is written behind the other log’s records passes it', async () => {
    const { store, id } = await session();
    const { records: given } = await store.read(id);
    const from = { session: id, seq: 0, hash: given[0]?.hash ?? '' };
    const forked = mint.session();
    const actor = { type: 'person', via: 'command' } as const;
    const title = `again with ${SECRET}`;
    const drafts = forkDrafts({ state: fold(given.slice(0, 1)), from, id: forked, title, actor, now: Date.now() });
    await store.fork(from, forked, [
      ...drafts,
      draft('user.message', { content: [text(`use ${SECRET} or ${base64}`)] }),
    ]);
    const { records } = await store.read(forked);
    expect(JSON.stringify(records)).not.toContain(SECRET);
    expect(JSON.stringify(records)).not.toContain(base64);
    const alarms = records.slice(1).filter(({ event }) => event.type === 'drover.secret_alarm');
    expect(alarms).toHaveLength(3);
    expect(records.slice(-3)).toEqual(alarms);
    expect((await store.verify(forked)).wrong.count).toBe(0);
  });

  it('keeps everybody waiting until it knows what to look for', async () => {
    const root = join(await temporaryFolder(), '.drover');
    const redactor = new Redactor();
    const known = Promise.withResolvers<void>();
    const door = new Door(
      redactor,
      () => known.promise,
      () => undefined,
    );
    const store = openStore({ root, door });
    onTestFinished(() => store.dispose());
    const creating = store.create(mint.session(), [draft('user.message', { content: [text(SECRET)] })]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    redactor.know('k', { credential_id: null, vault_id: null, name: 'LATE' }, [SECRET]);
    known.resolve();
    const writer = await creating;
    expect(JSON.stringify((await writer.read()).records)).not.toContain(SECRET);
  });
});
