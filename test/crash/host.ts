/*
 * One host process: the log, the harness with the SDK, the toolbox and the sandboxes, all real, put together as the
 * extension does it, without an editor. It plays the person too, works until the session's turn is over, and is struck
 * where its plan says. Usage: node host.ts PLAN
 */
import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAnthropicClient } from '../../src/harness/anthropic.ts';
import { createHarness } from '../../src/harness/harness.ts';
import { AppendFailed, LeaseHeld, LeaseLost, type SessionWriter } from '../../src/log/log.ts';
import { createPolicy } from '../../src/policy/policy.ts';
import { messageOf } from '../../src/protocol/errors.ts';
import { mint, type SessionId } from '../../src/protocol/ids.ts';
import type { LogRecord } from '../../src/protocol/record.ts';
import { CheckpointStore } from '../../src/sandbox/checkpoints/checkpoints.ts';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import { fold } from '../../src/session/fold.ts';
import { createToolbox } from '../../src/tools/toolbox.ts';
import { answer, beginning, interjection } from './person.ts';
import { FILLER, Plan } from './plan.ts';
import { Striker, tell } from './striker.ts';
import { watchedStore } from './watched-store.ts';

/** A host that is stopped keeps the session until its lease has run out; one that was killed not for a moment. */
const HELD_LEASES = 8;
/** ms. What was on its way to the engine arrives in a fraction of it. */
const LINGER_MS = 3000;
/** Answers a person gives, and times a full disk is emptied: more means that the session goes round in circles. */
const MOST_ROUNDS = 60;

const plan = Plan.parse(JSON.parse(process.argv[2] ?? ''));
const striker = new Striker(plan);
const store = watchedStore(join(plan.workspace, '.drover'), plan.leaseMs, striker);
const client = createAnthropicClient({ apiKey: async () => 'rehearsal', baseUrl: () => plan.url });
const sandboxes = createSandboxProvider({
  nodePath: process.execPath,
  devcontainerCli: '',
  cacheFolder: plan.cache,
});
const harness = createHarness({
  store,
  checkpoints: new CheckpointStore({
    root: join(plan.workspace, '.drover'),
    privateFolder: join(plan.cache, 'checkpoints'),
  }),
  workspaceFolder: plan.workspace,
  modelFor: () => client,
  toolbox: createToolbox,
  sandboxes,
  policy: createPolicy(),
  ...(plan.retryBaseMs === undefined ? {} : { retryBaseMs: plan.retryBaseMs }),
});

// The parent holds our standard input: when it goes, so do we.
process.stdin.on('end', () => process.exit(1)).resume();

// The world's part: a container whose command says so goes down.
harness.onPreview((_session, preview) => {
  if (preview.type !== 'output' || !preview.text.includes('the container goes down')) return;
  const label = `label=drover.workspace=${plan.workspace}`;
  execFile('sh', ['-c', 'docker kill $(docker ps --quiet --filter "$0")', label], { timeout: 30_000 }, () => undefined);
});

try {
  await live(await open());
  await harness.dispose();
  await sandboxes.dispose();
  await store.dispose();
  tell({ said: 'done' });
  process.exit(0);
} catch (error) {
  if (error instanceof LeaseLost) {
    tell({ said: 'lost' });
    // A window that lost its session stays open: what it had begun must not happen now.
    await sleep(LINGER_MS);
  } else tell({ said: 'failed', message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  process.exit(error instanceof LeaseLost ? 0 : 1);
}

/** The folder's session that can be read, or a new one. */
async function open(): Promise<SessionId> {
  for (const id of await store.list()) if ((await store.read(id)).records.length > 0) return id;
  const id = mint.session();
  await unlessFull(() => store.create(id, beginning(id, plan.image)));
  return id;
}

/** Wakes the session, and answers, until its turn is over. */
async function live(id: SessionId): Promise<void> {
  const writer = await acquired(id);
  watchAndSay(writer);
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    await unlessFull(() => harness.wake(id, 'a person looks after it'));
    const { records } = await writer.read();
    const said = answer(fold(records)) ?? interjection(records)[0];
    if (said) await unlessFull(() => writer.append([said]));
    else if (isOver(records)) return;
  }
  throw new Error(`The session did not come to its end in ${MOST_ROUNDS} rounds.`);
}

function isOver(records: readonly LogRecord[]): boolean {
  const { status, stopReason, threads, primary } = fold(records);
  return status === 'idle' && stopReason?.type === 'end_turn' && threads.get(primary)?.queue.length === 0;
}

async function acquired(id: SessionId): Promise<SessionWriter> {
  const until = Date.now() + HELD_LEASES * (plan.leaseMs ?? 0);
  for (;;) {
    try {
      return await unlessFull(() => store.acquire(id, 'a window was opened'));
    } catch (error) {
      if (!(error instanceof LeaseHeld) || Date.now() > until) throw error;
      await sleep(100);
    }
  }
}

/** Says something more as soon as the first command runs, while the session works. */
function watchAndSay(writer: SessionWriter): void {
  const look = writer.onAppend((records) => {
    if (!records.some(({ event }) => event.type === 'drover.tool_started')) return;
    look.dispose();
    void writer
      .read()
      .then((reading) => writer.append(interjection(reading.records)))
      // What went wrong here goes wrong for the harness too, and is told there.
      .catch(() => undefined);
  });
}

/** Does it; where the disk is full, says what a person reads, makes room and does it again. */
async function unlessFull<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof AppendFailed)) throw error;
    tell({ said: 'paused', message: messageOf(error) });
    rmSync(join(plan.workspace, '.drover', FILLER), { force: true });
    return await act();
  }
}
