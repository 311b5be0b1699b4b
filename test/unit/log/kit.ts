import { createHash } from 'node:crypto';
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { SessionStore, SessionWriter } from '../../../src/log/log.ts';
import { openStore, type StoreOptions } from '../../../src/log/store.ts';
import { text } from '../../../src/protocol/content.ts';
import { EnvironmentId, mint, type SessionId, type ThreadId } from '../../../src/protocol/ids.ts';
import { type Draft, draft } from '../../../src/protocol/record.ts';
import { makeFolder } from '../../support/temp.ts';

const AT = '2026-11-30T12:00:00.000Z';

/** The first record of a session. */
export const created = (id: SessionId, thread: ThreadId): Draft =>
  draft('drover.session_created', {
    session_id: id,
    primary_thread_id: thread,
    title: 'A session',
    agent: { name: 'Developer', model: 'drover-rehearsal' },
    environment: {
      id: EnvironmentId.parse('env_os'),
      type: 'environment',
      name: 'OS sandbox',
      config: { type: 'os' },
      created_at: AT,
      updated_at: AT,
      archived_at: null,
    },
    vault_ids: [],
    strategy: 'everything',
  });

/** Something the agent says; `what` tells it from others. */
export const said = (what: string): Draft => draft('agent.message', { content: [text(what)] });

/** A folder that goes when the test is over. */
export async function temporary(): Promise<string> {
  const folder = await makeFolder('drover-log-');
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A store that is let go when the test is over. */
export function opened(options: StoreOptions): SessionStore {
  const store = openStore(options);
  onTestFinished(() => store.dispose());
  return store;
}

export interface Session {
  root: string;
  store: SessionStore;
  id: SessionId;
  writer: SessionWriter;
  folder: string;
  /** Path of the log. */
  log: string;
}

/** A session in a store of its own with one record, and one more for each text. */
export async function newSession(says: readonly string[] = [], options: Partial<StoreOptions> = {}): Promise<Session> {
  const root = join(await temporary(), '.drover');
  const store = opened({ root, ...options });
  const id = mint.session();
  const writer = await store.create(id, [created(id, mint.thread())]);
  for (const what of says) await writer.append([said(what)], { sync: false });
  const folder = join(root, 'sessions', id);
  return { root, store, id, writer, folder, log: join(folder, 'log.jsonl') };
}

/** The same, given back, so that its bytes can be changed. */
export async function closedSession(says: readonly string[], options: Partial<StoreOptions> = {}): Promise<Session> {
  const session = await newSession(says, options);
  await session.writer.release();
  return session;
}

/** Lines of a log without their newlines. */
export const linesOf = (log: string): string[] => readFileSync(log, 'utf8').split('\n').slice(0, -1);

export const writeLines = (log: string, lines: readonly string[]): void =>
  writeFileSync(log, lines.map((line) => `${line}\n`).join(''));

export const addBytes = (log: string, bytes: string | Uint8Array): void => appendFileSync(log, bytes);

/** What the texts of a reading are, in order: shows which records are there. */
export const texts = (records: readonly { event: object }[]): string[] =>
  records.flatMap(({ event }) => {
    if (!('content' in event) || !Array.isArray(event.content)) return [];
    return event.content.map((block: { text: string }) => block.text);
  });

/** A line as a writer makes it, by other means than the writer's. `fields` are those before the hash. */
export function line(fields: object): string {
  const body = JSON.stringify(fields).slice(0, -1);
  return `${body},"hash":"${independentHash(body)}"}`;
}

export const independentHash = (body: string | Uint8Array): string =>
  createHash('sha256').update(body).digest().toString('base64url').slice(0, 22);

/** Every file of a session's folder with its bytes, to show that nothing has changed. */
export const snapshot = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => [entry.name, readFileSync(join(folder, entry.name)).toString('latin1')]),
  );
