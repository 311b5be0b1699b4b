import { text } from '../../src/protocol/content.ts';
import type { EnvironmentConfig } from '../../src/protocol/environment.ts';
import { type EventId, mint } from '../../src/protocol/ids.ts';
import { type Draft, draft } from '../../src/protocol/record.ts';
import { figure, quantile } from './figure.ts';
import type { Bench } from './given.ts';
import { type Process, Rig, type Turn } from './rig.ts';

const EVENTS = 10_000;
const ROUNDS = 9;

/**
 * A dead session of 10,000 events at work again: its lease taken, its log folded, its living sandbox found and a command
 * under way in it, by a process that knew nothing of it; over making a new container for an empty session.
 */
export const logWake: Bench = async ({ have }, say) => {
  if (!have.engine || !have.image) return [];
  const config: EnvironmentConfig = { type: 'image', image: have.image };
  await using rig = await Rig.open();
  const turn = await rig.session(config);
  await fill(rig, turn);
  const wakes: number[] = [];
  const makes: number[] = [];
  // The first round makes the sandbox and is not counted.
  for (let round = 0; round <= ROUNDS; round++) {
    const call = await approvedCall(rig, turn);
    const took = await rig.afresh((other) => untilStarted(other, turn, call));
    const empty = await rig.session(config);
    const made = await rig.afresh((other) => provision(rig, other, empty));
    if (round === 0) continue;
    wakes.push(took);
    makes.push(made);
  }
  say(
    `  woken ${wakes.map((ms) => ms.toFixed(0)).join(' ')} ms; made ${makes.map((ms) => ms.toFixed(0)).join(' ')} ms`,
  );
  return [figure('log.wake', 'ms', quantile(wakes, 0.5), quantile(makes, 0.5), 0.5)];
};

/** Turns of talk, written as the harness writes them. */
async function fill(rig: Rig, { session, primary }: Turn): Promise<void> {
  const writer = await rig.store.acquire(session, 'a benchmark');
  for (let written = 1; written < EVENTS; ) {
    const batch = talk(primary);
    await writer.append(batch, { sync: false });
    written += batch.length;
  }
  await writer.release();
}

function talk(thread: Turn['primary']): Draft[] {
  const said = mint.event();
  const span = mint.event();
  return [
    draft(
      'user.message',
      { content: [text('What does this function do, and who calls it?')] },
      { thread, id: said, queued: true },
    ),
    draft('drover.event_processed', { event_id: said }, { thread }),
    draft('span.model_request_start', {}, { thread, id: span, local: { model: 'claude-sonnet-5-5' } }),
    draft(
      'agent.message',
      { content: [text('It sorts the teas. '.repeat(20))] },
      { thread, local: { reply: { span, index: 0 } } },
    ),
    end(thread, span, 'end_turn'),
  ];
}

const end = (thread: Turn['primary'], span: EventId, stop_reason: string): Draft =>
  draft(
    'span.model_request_end',
    {
      model_request_start_id: span,
      is_error: false,
      model_usage: { input_tokens: 9, output_tokens: 90, cache_creation_input_tokens: 0, cache_read_input_tokens: 900 },
    },
    { thread, local: { stop_reason } },
  );

/** What a crash leaves that came between a reply and its call's start; nobody holds the session. */
async function approvedCall(rig: Rig, { session, primary: thread }: Turn): Promise<EventId> {
  const writer = await rig.store.acquire(session, 'a benchmark');
  const said = mint.event();
  const span = mint.event();
  const call = mint.event();
  await writer.append([
    draft('user.message', { content: [text('[rehearsal:say] Done.')] }, { thread, id: said, queued: true }),
    draft('session.status_running', {}),
    draft('session.thread_status_running', { session_thread_id: thread, agent_name: 'Bench' }, { thread }),
    draft('drover.event_processed', { event_id: said }, { thread }),
    draft('span.model_request_start', {}, { thread, id: span }),
    draft(
      'agent.tool_use',
      { name: 'bash', input: { command: 'true' }, evaluated_permission: 'allow' },
      { thread, id: call, local: { reply: { span, index: 0 }, model_tool_use_id: `toolu_${call}` } },
    ),
    end(thread, span, 'tool_use'),
  ]);
  await writer.release();
  return call;
}

/** ms from waking to the command's being under way. Waits for the session to rest, uncounted. */
async function untilStarted({ store, engine }: Process, turn: Turn, call: EventId): Promise<number> {
  const started = performance.now();
  const rest = engine.harness.wake(turn.session, 'nobody worked on it any more');
  const writer = await store.acquire(turn.session, 'a benchmark');
  const { promise, resolve } = Promise.withResolvers<number>();
  const listening = writer.onAppend((records) => {
    const found = records.some(
      ({ event }) => event.type === 'drover.tool_started' && 'tool_use_id' in event && event.tool_use_id === call,
    );
    if (found) resolve(performance.now());
  });
  const seen = await Promise.race([promise, rest.then(() => promise)]);
  await rest;
  listening.dispose();
  return seen - started;
}

/** ms to make a container for a session that has none. Its removal is not counted. */
async function provision(rig: Rig, other: Process, turn: Turn): Promise<number> {
  const { make, remove } = await rig.provisioner(turn, other);
  const started = performance.now();
  await make();
  const took = performance.now() - started;
  await remove();
  return took;
}
