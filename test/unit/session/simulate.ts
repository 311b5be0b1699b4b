import { text } from '../../../src/protocol/content.ts';
import { type EventId, mint, type ThreadId } from '../../../src/protocol/ids.ts';
import { type Draft, draft, type LogRecord } from '../../../src/protocol/record.ts';
import { decide, type Step } from '../../../src/session/decide.ts';
import { apply, fold, pendingApprovals } from '../../../src/session/fold.ts';
import type { SessionState } from '../../../src/session/state.ts';

/*
 * Plays a session by `decide` with a random world around it: a model that says anything, tools that end in any way,
 * a person who types, interrupts and answers, and a process that dies in between. No I/O: it makes the logs that the
 * properties are checked on, ever another one.
 */

/** A source of choices, each an integer in [0, 1000). */
export type Choices = Iterator<number>;

export class World {
  readonly records: LogRecord[] = [];
  state: SessionState;
  readonly inHand = { threads: new Set<ThreadId>(), calls: new Set<EventId>() };
  choices: Choices;
  #fence = 1;

  /** Goes on from a log: a new process that has folded it. */
  static from(records: readonly LogRecord[]): World {
    const world = new World([][Symbol.iterator]());
    world.records.splice(0, world.records.length, ...records);
    world.state = fold(records);
    world.#fence = world.state.fence;
    world.crash();
    return world;
  }

  constructor(choices: Choices) {
    this.choices = choices;
    const primary = mint.thread();
    const first = draft('drover.session_created', {
      session_id: mint.session(),
      primary_thread_id: primary,
      title: 'simulated',
      agent: { name: 'Simulated', model: 'drover-rehearsal' },
      environment: {
        id: mint.environment(),
        type: 'environment',
        name: 'none',
        config: { type: 'os' },
        created_at: at(0),
        updated_at: at(0),
        archived_at: null,
      },
      vault_ids: [],
      strategy: 'everything',
    });
    this.#push(first);
    this.state = fold(this.records);
    this.say(primary);
  }

  pick(below: number): number {
    const next = this.choices.next();
    return next.done ? 0 : next.value % below;
  }

  append(...drafts: Draft[]): void {
    for (const one of drafts) apply(this.state, this.#push(one));
  }

  say(thread = this.state.primary): void {
    const content = [text(`message ${this.records.length}`)];
    this.append(draft('user.message', { content }, { thread, queued: true }));
  }

  /** The process dies: nothing is in hand any more, and a new holder wakes. */
  crash(): void {
    this.inHand.threads.clear();
    this.inHand.calls.clear();
    this.#fence += 1;
    this.append(draft('drover.woke', { why: 'crash', holder: { pid: this.#fence, host: 'here' } }));
  }

  #push(one: Draft): LogRecord {
    const seq = this.records.length;
    const event = { ...one.event, processed_at: one.event.processed_at === undefined ? at(seq) : null };
    const record = { v: 1, seq, at: at(seq), fence: this.#fence, prev: '', hash: String(seq), ...one, event };
    this.records.push(record as LogRecord);
    return record as LogRecord;
  }
}

const at = (seq: number): string => new Date(Date.UTC(2026, 0, 1) + seq * 1000).toISOString();

/** Plays `rounds` rounds. */
export function play(world: World, rounds: number): void {
  for (let round = 0; round < rounds; round += 1) {
    const chance = world.pick(20);
    if (chance === 0) world.say();
    else if (chance === 1) world.crash();
    else if (chance === 2) interrupt(world);
    else if (chance <= 6) answer(world);
    else if (chance === 7) question(world);
    else step(world);
  }
}

function interrupt(world: World): void {
  const threads = [...world.state.threads.keys()];
  const one = threads[world.pick(threads.length)];
  const fields = world.pick(2) === 0 || !one ? {} : { session_thread_id: one };
  world.append(draft('user.interrupt', fields, { queued: true }));
  letGo(world);
}

/** The live harness lets go of what the interrupted threads have in hand. */
function letGo(world: World): void {
  for (const thread of world.state.threads.values()) {
    if (thread.interrupts.length === 0) continue;
    if (world.inHand.threads.delete(thread.id) && thread.open) endRequest(world, thread.id, thread.open.id, true);
    for (const id of thread.calls) if (world.inHand.calls.delete(id)) result(world, id, 'cancelled');
  }
}

function answer(world: World): void {
  const asking = pendingApprovals(world.state);
  const call = asking[world.pick(Math.max(asking.length, 1))];
  if (!call) return;
  const verdict = world.pick(3) === 0 ? 'deny' : 'allow';
  world.append(draft('user.tool_confirmation', { tool_use_id: call.id, result: verdict }, { thread: call.thread }));
  letGo(world);
}

/** Something touches a tripwire, or wants a host, in a thread or in none. */
function question(world: World): void {
  const calls = [...world.inHand.calls];
  const call = calls[world.pick(Math.max(calls.length, 1))] ?? null;
  const thread = call ? world.state.calls.get(call)?.thread : undefined;
  const kind = world.pick(3) === 0 ? ('canary' as const) : ('host' as const);
  world.append(draft('drover.question', { kind, text: 'look', call }, thread ? { thread } : {}));
}

function step(world: World): void {
  const steps = decide(world.state, world.inHand);
  const one = steps[world.pick(Math.max(steps.length, 1))];
  if (one) take(world, one);
  else finishSomething(world);
}

/** Something in hand comes to an end. */
function finishSomething(world: World): void {
  const [thread] = world.inHand.threads;
  if (thread) {
    world.inHand.threads.delete(thread);
    const open = world.state.threads.get(thread)?.open;
    if (open) reply(world, thread, open.id);
    return;
  }
  const [call] = world.inHand.calls;
  if (!call) return;
  world.inHand.calls.delete(call);
  result(world, call, world.pick(4) === 0 ? 'failed' : 'ok');
}

export function take(world: World, step: Step): void {
  switch (step.type) {
    case 'request_model': {
      const span = mint.event();
      world.append(
        draft('session.status_running', {}),
        draft(
          'session.thread_status_running',
          { session_thread_id: step.thread, agent_name: 'x' },
          { thread: step.thread },
        ),
        ...step.inputs.map((event_id) => draft('drover.event_processed', { event_id }, { thread: step.thread })),
        ...servers(world, step.thread),
        draft('span.model_request_start', {}, { thread: step.thread, id: span, local: { model: 'm' } }),
      );
      world.inHand.threads.add(step.thread);
      return;
    }
    case 'close_request':
      endRequest(world, step.thread, step.request, true);
      return;
    case 'run_tool':
      start(world, step.call);
      return;
    case 'recover_tool':
      result(world, step.call, 'unknown');
      return;
    case 'close_call':
      result(world, step.call, step.outcome);
      return;
    case 'deliver':
      result(world, step.call, 'ok');
      return;
    case 'apply_interrupt':
      for (const id of step.calls) result(world, id, 'cancelled');
      for (const event_id of step.interrupts) {
        world.append(draft('drover.event_processed', { event_id }, { thread: step.thread }));
      }
      idleThread(world, step.thread, { type: 'end_turn' });
      return;
    case 'idle_thread':
      idleThread(world, step.thread, step.stop_reason);
      return;
    case 'idle_session':
      world.append(draft('session.status_idle', { stop_reason: step.stop_reason }));
  }
}

/** Before some requests an MCP server lists its tools, or can't be reached. */
function servers(world: World, thread: ThreadId): Draft[] {
  const server = { mcp_server_name: ['wiki', 'files'][world.pick(2)] ?? 'wiki' };
  const chance = world.pick(8);
  if (chance > 1) return [];
  const retry_status = { type: 'retrying' as const };
  const error = { type: 'mcp_connection_failed_error', message: 'gone', retry_status, ...server };
  if (chance === 1) return [draft('session.error', { error }, { thread })];
  const tools = [{ name: 'look', shown_as: 'look', description: '', input_schema: { type: 'object' as const } }];
  return [draft('drover.mcp_tools_listed', { ...server, server: null, tools, left_out: [] }, { thread })];
}

const idleThread = (
  world: World,
  thread: ThreadId,
  stop_reason: Extract<Step, { type: 'idle_thread' }>['stop_reason'],
) =>
  world.append(
    draft('session.thread_status_idle', { session_thread_id: thread, agent_name: 'x', stop_reason }, { thread }),
  );

function start(world: World, id: EventId): void {
  const call = world.state.calls.get(id);
  if (!call) return;
  const started = { tool_use_id: id, execution_id: mint.execution(), sandbox_id: null, input_sha256: '' };
  world.append(draft('drover.tool_started', started, { thread: call.thread }));
  if (call.name !== 'create_agent') {
    world.inHand.calls.add(id);
    return;
  }
  const child = mint.thread();
  world.append(
    draft(
      'session.thread_created',
      { session_thread_id: child, agent_name: 'child' },
      { thread: call.thread, local: { created_by: id } },
    ),
    draft(
      'agent.thread_message_received',
      { from_session_thread_id: call.thread, content: [text('task')] },
      { thread: child },
    ),
  );
}

export function result(world: World, id: EventId, outcome: 'ok' | 'failed' | 'denied' | 'cancelled' | 'unknown'): void {
  const call = world.state.calls.get(id);
  const content = world.pick(5) === 0 ? [] : [text(outcome)];
  const fields = { content, is_error: outcome !== 'ok' };
  const more = { ...(call ? { thread: call.thread } : {}), local: { outcome } };
  world.append(
    call?.mcp
      ? draft('agent.mcp_tool_result', { mcp_tool_use_id: id, ...fields }, more)
      : draft('agent.tool_result', { tool_use_id: id, ...fields }, more),
  );
}

function endRequest(world: World, thread: ThreadId, span: EventId, isError: boolean, stopReason = 'end_turn'): void {
  world.append(
    draft(
      'span.model_request_end',
      {
        model_request_start_id: span,
        is_error: isError,
        model_usage: { input_tokens: 7, output_tokens: 5, cache_creation_input_tokens: 3, cache_read_input_tokens: 2 },
      },
      { thread, local: { stop_reason: stopReason, cost_usd: 0.25 } },
    ),
  );
}

/** A reply of any shape: whole, torn by a crash before its end, or failed. */
export function reply(world: World, thread: ThreadId, span: EventId): void {
  const kind = world.pick(10);
  if (kind === 0) {
    const retry_status = { type: world.pick(2) === 0 ? ('retrying' as const) : ('exhausted' as const) };
    endRequest(world, thread, span, true);
    const error = { type: 'model_overloaded_error', message: 'overloaded', retry_status };
    world.append(draft('session.error', { error }, { thread }));
    return;
  }
  const calls = world.pick(4);
  const blocks = [thinking, message, ...Array.from({ length: calls }, () => toolUse)];
  const kept = kind === 1 ? world.pick(blocks.length + 1) : blocks.length;
  blocks.slice(0, kept).forEach((block, index) => {
    world.append(block(world, thread, { span, index }));
  });
  if (kind === 1) {
    world.crash();
    return;
  }
  endRequest(world, thread, span, false, calls > 0 ? 'tool_use' : world.pick(8) === 0 ? 'pause_turn' : 'end_turn');
}

type Place = { span: EventId; index: number };

const thinking = (_world: World, thread: ThreadId, place: Place): Draft =>
  draft(
    'agent.thinking',
    {},
    { thread, local: { reply: place, raw: { type: 'thinking', thinking: `t${place.index}`, signature: place.span } } },
  );

const message = (world: World, thread: ThreadId, place: Place): Draft =>
  draft('agent.message', { content: [text(world.pick(9) === 0 ? '' : 'words')] }, { thread, local: { reply: place } });

function toolUse(world: World, thread: ThreadId, place: Place): Draft {
  const child = world.state.threads.get(thread)?.parent === null && world.pick(6) === 0;
  const permission = (['allow', 'ask', 'deny'] as const)[world.pick(3)] ?? 'ask';
  const id = mint.event();
  const local = { reply: place, model_tool_use_id: `toolu_${id}`, ...(world.pick(9) === 0 ? { refused: 'no' } : {}) };
  if (!child && world.pick(4) === 0) {
    const fields = { mcp_server_name: 'wiki', name: 'look', input: {}, evaluated_permission: permission };
    return draft('agent.mcp_tool_use', fields, { thread, id, local: { ...local, shown_as: 'mcp__wiki__look' } });
  }
  const fields = { name: child ? 'create_agent' : 'bash', input: {}, evaluated_permission: permission };
  return draft('agent.tool_use', fields, { thread, id, local });
}
