import { text } from '../protocol/content.ts';
import type { EventId } from '../protocol/ids.ts';
import { type Draft, draft } from '../protocol/record.ts';
import { noUsage } from '../protocol/usage.ts';
import type { Step } from '../session/decide.ts';
import { atRest } from '../session/rest.ts';
import type { Awake } from './awake.ts';
import { settle } from './budget.ts';
import { resultDraft } from './result.ts';
import { threadIdle } from './statuses.ts';

/** Closes a request that a crash left open: its reply, if any, never counted. */
export async function closeRequest(awake: Awake, step: Extract<Step, { type: 'close_request' }>): Promise<void> {
  const end = draft(
    'span.model_request_end',
    { model_request_start_id: step.request, is_error: true, model_usage: noUsage() },
    { thread: step.thread, local: { cause: 'crashed', estimated: true } },
  );
  await awake.append([...settle(awake.state, awake.thread(step.thread), null), end], { sync: false });
}

/** Ends the turn: open calls get their result, in words that say whether they may have happened. One write. */
export async function applyInterrupt(awake: Awake, step: Extract<Step, { type: 'apply_interrupt' }>): Promise<void> {
  const thread = awake.thread(step.thread);
  const resting = atRest(thread);
  const drafts: Draft[] = step.calls.map((id) => interrupted(awake, id));
  for (const event_id of step.interrupts) {
    drafts.push(draft('drover.event_processed', { event_id }, { thread: thread.id }));
  }
  if (!resting) drafts.push(threadIdle(thread, { type: 'end_turn' }));
  await awake.append(drafts);
}

function interrupted(awake: Awake, id: EventId): Draft {
  const call = awake.call(id);
  const mayHaveRun = call.execution !== null && call.child === null;
  const message = mayHaveRun
    ? 'Interrupted by the user; this call had been started and may have taken effect.'
    : 'Tool execution was interrupted before completion. Please retry.';
  return resultDraft(
    call,
    { content: [text(message)], is_error: true },
    { outcome: mayHaveRun ? 'unknown' : 'cancelled' },
  );
}
