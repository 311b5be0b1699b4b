import { modelId } from '../protocol/agent.ts';
import type { SessionError } from '../protocol/event.ts';
import { type EventId, mint } from '../protocol/ids.ts';
import { type Draft, draft, type ErrorCause } from '../protocol/record.ts';
import { noUsage } from '../protocol/usage.ts';
import type { Step } from '../session/decide.ts';
import type { ThreadState } from '../session/state.ts';
import type { Toolbox } from '../tools/tools.ts';
import type { Awake } from './awake.ts';
import { reserve, settle } from './budget.ts';
import { assemble, withFiles } from './context.ts';
import { limitsOf } from './limits.ts';
import { lookAhead } from './look-ahead.ts';
import { type ModelCall, ModelFailure, type ModelListener, type ModelReply } from './model.ts';
import { replyDrafts } from './reply.ts';
import { sleep } from './sleep.ts';
import { rescheduled, threadRunning } from './statuses.ts';
import { tripwires } from './tripwires.ts';

/** Requests made in a row for one turn, beyond the SDK's own retries, before the turn is given up. */
const MAX_ATTEMPTS = 3;

/** Takes the queued inputs in, asks the model, and records the whole reply in one write. */
export async function askModel(
  awake: Awake,
  step: Extract<Step, { type: 'request_model' }>,
  signal: AbortSignal,
): Promise<void> {
  const { failures } = awake.thread(step.thread);
  if (failures > 0 && !(await sleep(retryDelay(awake, failures), signal))) return;
  const inputs = step.inputs.map((event_id) => draft('drover.event_processed', { event_id }, { thread: step.thread }));
  if (inputs.length > 0) await awake.append(inputs, { sync: false });
  await awake.servers.ready(step.thread, inputs.length > 0, signal);
  if (signal.aborted) return;
  const thread = awake.thread(step.thread);
  const model = modelId(thread.agent);
  const client = awake.deps.modelFor(model);
  const toolbox = awake.toolbox(thread);
  const { call, assembled } = assemble(awake, thread, toolbox, model, limitsOf(client, model));
  const span = mint.event();
  await awake.append([
    draft(
      'drover.context_assembled',
      {
        strategy: awake.state.strategy,
        messages: call.messages.length,
        estimated_tokens: assembled.estimatedTokens,
        left_out: assembled.leftOut,
      },
      { thread: thread.id },
    ),
    reserve(awake.state, thread, mint.event()),
    draft('span.model_request_start', {}, { thread: thread.id, id: span, local: { model } }),
  ]);
  const reply = new Listening(awake, thread, span, toolbox);
  try {
    const request = await guarded(awake, thread, { ...call, messages: await withFiles(awake, call.messages) });
    const got = await client.request(request, reply, signal);
    await reply.settled();
    const judges = { toolbox, policy: awake.deps.policy, guard: awake.deps.guard };
    const blocks = replyDrafts(awake.state, awake.thread(thread.id), span, got, (index) => reply.id(index), judges);
    const tripped = tripwires(awake.deps.guard, thread.agent.mcp_servers ?? [], blocks);
    // Its end comes last: of a write that the power cuts off, what comes after it would be missing from a reply that counts.
    await awake.append([...blocks, ...tripped, ...settle(awake.state, thread, got.costUsd), end(thread, span, got)]);
  } catch (error) {
    if (!(error instanceof ModelFailure)) throw error;
    await reply.settled();
    await failed(awake, thread, span, error);
  } finally {
    awake.preview({ type: 'end', thread: thread.id, request: span });
  }
}

/** The request without what no model may see; an alarm goes into the log first. */
async function guarded(awake: Awake, thread: ThreadState, call: ModelCall): Promise<ModelCall> {
  const passed = awake.deps.guard?.request(call);
  if (!passed) return call;
  if (passed.alarms.length > 0) await awake.append(passed.alarms.map((alarm) => ({ ...alarm, thread: thread.id })));
  return passed.request;
}

/** Before attempt n + 1 of the harness itself: base · 2ⁿ⁻¹, at most 30 s. The SDK has retried by then. ms. */
const retryDelay = (awake: Awake, failures: number): number =>
  Math.min((awake.deps.retryBaseMs ?? 1000) * 2 ** (failures - 1), 30_000);

/** Streams previews of a reply, under the ids its events will have. */
class Listening implements ModelListener {
  readonly #awake: Awake;
  readonly #thread: ThreadState;
  readonly #span: EventId;
  readonly #toolbox: Toolbox;
  readonly #ids: EventId[] = [];
  #waits = false;
  #written: Promise<unknown> = Promise.resolve();

  constructor(awake: Awake, thread: ThreadState, span: EventId, toolbox: Toolbox) {
    this.#awake = awake;
    this.#thread = thread;
    this.#span = span;
    this.#toolbox = toolbox;
  }

  id(index: number): EventId {
    this.#ids[index] ??= mint.event();
    return this.#ids[index];
  }

  onStart(index: number, block: { type: string; name?: string }): void {
    this.#resume();
    const of = { type: 'start', thread: this.#thread.id, request: this.#span, id: this.id(index) } as const;
    if (block.type === 'tool_use') {
      this.#awake.preview({ ...of, block: 'tool_use', name: block.name ?? '' });
      lookAhead(this.#awake, this.#thread.id, this.#toolbox, block.name ?? '');
    } else this.#awake.preview({ ...of, block: block.type === 'text' ? 'message' : 'thinking' });
  }

  onDelta(index: number, text: string): void {
    this.#awake.preview({ type: 'delta', thread: this.#thread.id, id: this.id(index), text });
  }

  onRetry(error: SessionError, cause: ErrorCause, retryInMs: number): void {
    const said = draft(
      'session.error',
      { error },
      { thread: this.#thread.id, local: { cause, retry_in_ms: retryInMs } },
    );
    const first = !this.#waits;
    this.#waits = true;
    this.#write(() => [said, ...(first ? rescheduled(this.#awake.state, this.#thread) : [])]);
  }

  /** All that was to be written has been. */
  async settled(): Promise<void> {
    this.#resume();
    await this.#written;
  }

  /** The model answers again: what was rescheduled runs. */
  #resume(): void {
    if (!this.#waits) return;
    this.#waits = false;
    this.#write(() => [
      ...(this.#awake.state.status === 'running' ? [] : [draft('session.status_running', {})]),
      threadRunning(this.#thread),
    ]);
  }

  #write(drafts: () => Draft[]): void {
    this.#written = this.#written.then(() => this.#awake.append(drafts(), { sync: false }));
    // Told to whoever awaits `settled`; until then nobody listens.
    this.#written.catch(() => undefined);
  }
}

const end = (thread: ThreadState, span: EventId, reply: ModelReply): Draft =>
  draft(
    'span.model_request_end',
    { model_request_start_id: span, is_error: false, model_usage: reply.usage },
    {
      thread: thread.id,
      local: {
        request_id: reply.requestId,
        stop_reason: reply.stopReason,
        cost_usd: reply.costUsd,
        price_table: reply.priceTable,
        ...(reply.ttftMs === null ? {} : { ttft_ms: reply.ttftMs }),
        ...(reply.stopDetails ? { stop_details: reply.stopDetails } : {}),
      },
    },
  );

/** Records a request that brought no reply, and whether it will be made again. */
async function failed(awake: Awake, thread: ThreadState, span: EventId, failure: ModelFailure): Promise<void> {
  const closed = draft(
    'span.model_request_end',
    { model_request_start_id: span, is_error: true, model_usage: failure.usage ?? noUsage() },
    { thread: thread.id, local: { cause: failure.reason, cost_usd: failure.costUsd } },
  );
  const drafts = [...settle(awake.state, thread, failure.costUsd), closed];
  if (failure.reason !== 'interrupted') drafts.push(...afterFailure(awake, thread, failure));
  await awake.append(drafts);
}

function afterFailure(awake: Awake, thread: ThreadState, failure: ModelFailure): Draft[] {
  const failures = thread.failures + 1;
  const again = failure.error.retry_status.type === 'retrying' && failures < MAX_ATTEMPTS;
  const error: SessionError = { ...failure.error, retry_status: { type: again ? 'retrying' : 'exhausted' } };
  const wait = again ? { retry_in_ms: retryDelay(awake, failures) } : {};
  const said = draft('session.error', { error }, { thread: thread.id, local: { cause: failure.reason, ...wait } });
  return again ? [said, ...rescheduled(awake.state, thread)] : [said];
}
