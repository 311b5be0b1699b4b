import type { EventId, ThreadId } from '../protocol/ids.ts';
import { type Draft, draft } from '../protocol/record.ts';
import type { Usd } from '../protocol/usage.ts';
import type { SessionState, ThreadState } from '../session/state.ts';

/** The thread and those above it, up to the primary: all whose money a request of it is. */
function lineage(state: SessionState, thread: ThreadState): ThreadId[] {
  const ids: ThreadId[] = [];
  for (let one: ThreadState | undefined = thread; one; one = one.parent ? state.threads.get(one.parent) : undefined) {
    ids.push(one.id);
  }
  return ids;
}

/** Sets money aside for a request before it is made; as much as the thread's costliest request so far. US dollars. */
export function reserve(state: SessionState, thread: ThreadState, id: EventId): Draft {
  let most = 0;
  for (const entry of thread.entries) if (entry.type === 'request') most = Math.max(most, entry.costUsd);
  return draft(
    'drover.budget_reserved',
    { amount_usd: most, limit_usd: state.budgetUsd, thread_ids: lineage(state, thread) },
    { thread: thread.id, id },
  );
}

/** Settles all open reservations of a thread. `cost` null: nobody knows what was used, so the reserved amount stands. */
export function settle(state: SessionState, thread: ThreadState, cost: Usd | null): Draft[] {
  const drafts: Draft[] = [];
  for (const [reservation_id, { amountUsd, thread: owner }] of state.reserved) {
    if (owner !== thread.id) continue;
    const fields = { reservation_id, amount_usd: cost ?? amountUsd, estimated: cost === null };
    drafts.push(draft('drover.budget_settled', fields, { thread: thread.id }));
  }
  return drafts;
}
