import { text } from '../protocol/content.ts';
import type { SessionId } from '../protocol/ids.ts';
import { type Actor, type Draft, draft, type Seq } from '../protocol/record.ts';
import { noUsage } from '../protocol/usage.ts';
import { callPhase } from '../session/fold.ts';
import { atRest } from '../session/rest.ts';
import type { SessionState, ThreadState, ToolCall } from '../session/state.ts';
import { settle } from './budget.ts';
import { resultDraft } from './result.ts';
import { sessionIdle, threadIdle } from './statuses.ts';

export interface Fork {
  /** Folded up to the record the fork goes up to. */
  state: SessionState;
  from: { session: SessionId; seq: Seq; hash: string };
  id: SessionId;
  title: string;
  actor: Actor;
  /** ms since 1970. */
  now: number;
}

/**
 * What a forked session's log has after the copied part. Whatever was under way at that moment is not under way here:
 * it is closed in words, and the session rests until somebody speaks. Only a message that was still waiting in the
 * queue is not lost: it is what the session goes on with.
 */
export function forkDrafts({ state, from, id, title, actor, now }: Fork): Draft[] {
  const drafts: Draft[] = [
    draft(
      'drover.forked_from',
      { session_id: from.session, seq: from.seq, hash: from.hash, new_session_id: id },
      { local: { actor } },
    ),
    draft('session.updated', { title }),
  ];
  for (const thread of state.threads.values()) {
    if (thread.status !== 'terminated') drafts.push(...closed(state, thread));
  }
  if (drafts.length > 2 || state.status !== 'idle') drafts.push(...sessionIdle(state, { type: 'end_turn' }, now));
  return drafts;
}

function closed(state: SessionState, thread: ThreadState): Draft[] {
  const drafts: Draft[] = [];
  if (thread.open) {
    const end = { model_request_start_id: thread.open.id, is_error: true as const, model_usage: noUsage() };
    const local = { cause: 'interrupted', estimated: true } as const;
    drafts.push(draft('span.model_request_end', end, { thread: thread.id, local }));
  }
  drafts.push(...settle(state, thread, null));
  const calls = thread.calls.flatMap((call) => state.calls.get(call) ?? []);
  const open = calls.filter((call) => !['done', 'void'].includes(callPhase(state, call)));
  drafts.push(...open.map(notHere));
  for (const event_id of thread.interrupts) {
    drafts.push(draft('drover.event_processed', { event_id }, { thread: thread.id }));
  }
  if (open.length > 0 || thread.unseenAt >= 0 || !atRest(thread)) drafts.push(threadIdle(thread, { type: 'end_turn' }));
  return drafts;
}

function notHere(call: ToolCall): Draft {
  const began = call.execution !== null && call.child === null;
  const message = began
    ? 'This session was forked while this call was running. What came of it belongs to the other session; it may have taken effect on the files, wholly or in part.'
    : 'This session was forked before this call had ended, so it has no result here. Make it again if it is still wanted.';
  return resultDraft(call, { content: [text(message)], is_error: true }, { outcome: began ? 'unknown' : 'cancelled' });
}
