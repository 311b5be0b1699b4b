import type { SessionError, StopReason } from '../protocol/event.ts';
import type { EventId, ThreadId } from '../protocol/ids.ts';
import { callPhase, pendingApprovals } from './fold.ts';
import { openQuestions } from './fold-question.ts';
import { atRest } from './rest.ts';
import type { Question, SessionState, ThreadState, ToolCall } from './state.ts';

/**
 * What the live harness is doing right now. Empty after a crash: what is open in the log but in nobody's hand
 * was left by one, and is closed or recovered.
 */
export interface InHand {
  /** Threads with a model request or another step under way. */
  threads: ReadonlySet<ThreadId>;
  /** Calls that are running. */
  calls: ReadonlySet<EventId>;
}

export const nothingInHand: InHand = { threads: new Set(), calls: new Set() };

/** One thing to do next. Steps of one `decide` do not depend on each other. */
export type Step =
  /** Take the queued inputs in and ask the model. */
  | { type: 'request_model'; thread: ThreadId; inputs: EventId[] }
  /** A request has no end and nobody works on it: record that it failed. */
  | { type: 'close_request'; thread: ThreadId; request: EventId }
  | { type: 'run_tool'; thread: ThreadId; call: EventId }
  /** A call was started and has no result and nobody works on it: ask the sandbox what became of it. */
  | { type: 'recover_tool'; thread: ThreadId; call: EventId }
  /** A call that will never run gets its result. */
  | { type: 'close_call'; thread: ThreadId; call: EventId; outcome: 'denied' | 'failed' }
  /** A child has ended its turn: its answer is the result of the call that made it. */
  | { type: 'deliver'; thread: ThreadId; call: EventId; child: ThreadId }
  /** End the turn: the calls that are still open are cancelled. */
  | { type: 'apply_interrupt'; thread: ThreadId; interrupts: EventId[]; calls: EventId[] }
  | { type: 'idle_thread'; thread: ThreadId; stop_reason: StopReason; error?: SessionError }
  | { type: 'idle_session'; stop_reason: StopReason };

/** Replies in a row that may be cut off in the middle of a tool call before the turn is given up. */
const MAX_CUTS = 3;

/**
 * The heart of the program: what follows from the log. Pure; from any prefix of any log it never re-runs a call
 * that has a result, never starts one that lacks its approval, never loses a queued message.
 * An empty list means: wait, for what is in hand or for a person.
 */
export function decide(state: SessionState, inHand: InHand): Step[] {
  if (state.status === 'terminated') return [];
  const tripped = openQuestions(state).filter((question) => question.kind === 'canary');
  const steps: Step[] = [];
  for (const thread of state.threads.values()) {
    if (thread.status === 'terminated' || inHand.threads.has(thread.id)) continue;
    steps.push(...(tripped.length > 0 ? pause(state, thread, tripped, inHand) : decideThread(state, thread, inHand)));
  }
  const working = steps.length > 0 || inHand.threads.size > 0 || inHand.calls.size > 0;
  if (working || state.status === 'idle') return steps;
  return [{ type: 'idle_session', stop_reason: sessionStopReason(state) }];
}

function decideThread(state: SessionState, thread: ThreadState, inHand: InHand): Step[] {
  if (thread.open) return [{ type: 'close_request', thread: thread.id, request: thread.open.id }];
  const open = openCalls(state, thread);
  if (thread.interrupts.length > 0) {
    if (open.some((call) => inHand.calls.has(call.id))) return [];
    const calls = open.map((call) => call.id);
    return [{ type: 'apply_interrupt', thread: thread.id, interrupts: [...thread.interrupts], calls }];
  }
  if (open.length > 0) return decideCalls(state, thread, open, inHand);
  return decideTurn(state, thread);
}

/** A tripwire was touched: nothing begins, in no thread, until a person has looked. What runs is not waited for. */
function pause(state: SessionState, thread: ThreadState, tripped: readonly Question[], inHand: InHand): Step[] {
  const open = openCalls(state, thread);
  const busy = open.some((call) => inHand.calls.has(call.id));
  // What crashes leave behind is closed, and who wants it to stop is heard, all the same.
  if (thread.open || (thread.interrupts.length > 0 && !busy)) return decideThread(state, thread, inHand);
  const event_ids = tripped.map((question) => question.id);
  if (busy || atRest(thread) || sameAsk(thread, event_ids)) return [];
  return [{ type: 'idle_thread', thread: thread.id, stop_reason: { type: 'requires_action', event_ids } }];
}

function openCalls(state: SessionState, thread: ThreadState): ToolCall[] {
  const open: ToolCall[] = [];
  for (const id of thread.calls) {
    const call = state.calls.get(id);
    if (call && !call.result) open.push(call);
  }
  return open;
}

function decideCalls(state: SessionState, thread: ThreadState, open: ToolCall[], inHand: InHand): Step[] {
  const steps: Step[] = [];
  const asking: EventId[] = [];
  let busy = false;
  for (const call of open) {
    if (inHand.calls.has(call.id)) busy = true;
    else if (callPhase(state, call) === 'asking') asking.push(call.id);
    else {
      const step = decideCall(state, thread, call);
      if (step) steps.push(step);
      else busy = true;
    }
  }
  if (steps.length > 0 || asking.length === 0) return steps;
  if (busy || sameAsk(thread, asking)) return [];
  return [{ type: 'idle_thread', thread: thread.id, stop_reason: { type: 'requires_action', event_ids: asking } }];
}

const sameAsk = (thread: ThreadState, asking: EventId[]): boolean =>
  thread.status === 'idle' &&
  thread.stopReason?.type === 'requires_action' &&
  thread.stopReason.event_ids.join() === asking.join();

/** The step for a call that neither asks nor is in hand; undefined while its child works. */
function decideCall(state: SessionState, thread: ThreadState, call: ToolCall): Step | undefined {
  const of = { thread: thread.id, call: call.id };
  switch (callPhase(state, call)) {
    case 'refused':
      return { type: 'close_call', ...of, outcome: 'failed' };
    case 'denied':
      return { type: 'close_call', ...of, outcome: 'denied' };
    case 'approved':
      return { type: 'run_tool', ...of };
    case 'running': {
      const child = call.child ? state.threads.get(call.child) : undefined;
      // The power may have failed before its task was on the disk.
      if (!child?.entries.some(({ type }) => type === 'input')) return { type: 'recover_tool', ...of };
      return atRest(child) && child.queue.length === 0 && child.unseenAt < 0
        ? { type: 'deliver', ...of, child: child.id }
        : undefined;
    }
    default:
      return undefined;
  }
}

/** All calls are closed: ask the model, or end the turn. */
function decideTurn(state: SessionState, thread: ThreadState): Step[] {
  const news = thread.unseenAt >= 0 || thread.queue.length > 0;
  if (!news) {
    if (atRest(thread)) return [];
    const refused = thread.last?.stopReason === 'refusal';
    return [{ type: 'idle_thread', thread: thread.id, stop_reason: { type: refused ? 'refusal' : 'end_turn' } }];
  }
  if (overBudget(state)) {
    if (thread.status === 'idle' && thread.stopReason?.type === 'budget_reached') return [];
    return [{ type: 'idle_thread', thread: thread.id, stop_reason: { type: 'budget_reached' } }];
  }
  const retry = thread.failure === null || thread.failure.error.retry_status.type === 'retrying';
  if (!retry && thread.queue.length === 0) {
    return [{ type: 'idle_thread', thread: thread.id, stop_reason: { type: 'retries_exhausted' } }];
  }
  if (thread.cuts >= MAX_CUTS && thread.queue.length === 0) {
    return [
      {
        type: 'idle_thread',
        thread: thread.id,
        stop_reason: { type: 'retries_exhausted' },
        error: cutTooOften(thread),
      },
    ];
  }
  return [{ type: 'request_model', thread: thread.id, inputs: [...thread.queue] }];
}

const cutTooOften = (thread: ThreadState): SessionError => ({
  type: 'tool_use_limit_reached_error',
  message: `The model's tool call was cut off by its output limit ${thread.cuts} times in a row, so the turn was stopped; ask for smaller steps.`,
  retry_status: { type: 'exhausted' },
});

const overBudget = (state: SessionState): boolean => state.budgetUsd !== null && state.costUsd >= state.budgetUsd;

function sessionStopReason(state: SessionState): StopReason {
  const asking = pendingApprovals(state);
  if (asking.length > 0) return { type: 'requires_action', event_ids: asking.map((call) => call.id) };
  return state.threads.get(state.primary)?.stopReason ?? { type: 'end_turn' };
}
