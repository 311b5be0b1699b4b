import { isDeepStrictEqual } from 'node:util';
import { text } from '../../../src/protocol/content.ts';
import type { ThreadId } from '../../../src/protocol/ids.ts';
import type { LogRecord } from '../../../src/protocol/record.ts';
import { validateMessages } from '../../../src/rehearsal/validate.ts';
import { decide, nothingInHand } from '../../../src/session/decide.ts';
import { apply, callPhase, fold, pendingApprovals } from '../../../src/session/fold.ts';
import type { SessionState } from '../../../src/session/state.ts';
import { transcript } from '../../../src/session/transcript.ts';

/** Promises 1 to 3, from every prefix of the log. */
export function prefixProblems(records: readonly LogRecord[]): string[] {
  const whole = fold(records);
  const problems: string[] = [];
  for (let length = 1; length <= records.length; length += 1) {
    const state = fold(records.slice(0, length));
    for (const thread of state.threads.keys()) {
      const refusal = refusalOf(state, thread);
      if (refusal) problems.push(`the first ${length} records give messages the API refuses: ${refusal}`);
    }
    problems.push(...stepProblems(state).map((problem) => `after ${length} records ${problem}`));
    for (const record of records.slice(length)) apply(state, record);
    if (!isDeepStrictEqual(state, whole)) problems.push(`folding on from record ${length} gives another state`);
  }
  return problems;
}

function refusalOf(state: SessionState, thread: ThreadId): string | undefined {
  const messages = transcript(state, thread).map(({ role, blocks }) => ({
    role,
    content: blocks.map(({ block }): unknown => block),
  }));
  // A turn that is over is followed by what the person says next; nothing is sent before.
  if (messages.at(-1)?.role !== 'user') messages.push({ role: 'user', content: [text('go on')] });
  return validateMessages(messages);
}

/** What a host that wakes here would do must not repeat, or presume, anything. */
function stepProblems(state: SessionState): string[] {
  const problems: string[] = [];
  for (const step of decide(state, nothingInHand)) {
    if (step.type !== 'run_tool') continue;
    const call = state.calls.get(step.call);
    if (!call || callPhase(state, call) !== 'approved' || call.execution || call.result)
      problems.push(`a waker would run the call ${step.call}, which it must not`);
  }
  return problems;
}

/** The session rests, and nothing is open in it. */
export function endProblems(records: readonly LogRecord[]): string[] {
  const state = fold(records);
  const problems: string[] = [];
  const { status, stopReason } = state;
  if (status !== 'idle' || stopReason?.type !== 'end_turn')
    problems.push(`it ended ${status} (${stopReason?.type ?? 'no reason'})`);
  if (decide(state, nothingInHand).length > 0) problems.push('there is still something to do');
  if (pendingApprovals(state).length > 0) problems.push('something still waits for a person');
  if (state.reserved.size > 0) problems.push('money is still reserved');
  for (const thread of state.threads.values()) {
    const rests = thread.status === 'idle' && thread.stopReason?.type === 'end_turn' && thread.queue.length === 0;
    if (!rests) problems.push(`the thread ${thread.agentName} is ${thread.status}, with ${thread.queue.length} queued`);
  }
  return problems;
}
