import type { EventOf } from '../protocol/event.ts';
import type { LogRecord } from '../protocol/record.ts';
import { interruptAll } from './fold-status.ts';
import type { Question, SessionState } from './state.ts';

export function foldQuestion(state: SessionState, record: LogRecord, event: EventOf<'drover.question'>): void {
  state.questions.push({
    kind: event.kind,
    id: event.id,
    seq: record.seq,
    at: record.at,
    thread: record.thread ?? state.primary,
    name: event.kind === 'canary' ? 'tripwire' : 'network',
    input: { question: event.text },
    why: event.text,
    call: event.call,
    credential: event.credential_id ?? null,
    host: event.host ? { name: event.host, port: event.port ?? 443 } : null,
    answer: null,
  });
  const notice = { kind: 'question' as const, question: event.id };
  // The primary's conversation shows what any thread asks.
  for (const id of new Set([record.thread ?? state.primary, state.primary])) {
    state.threads.get(id)?.entries.push({ type: 'notice', id: event.id, seq: record.seq, at: record.at, notice });
  }
}

/** True if it answers a question. The first answer counts. A tripwire that is answered with a no ends every turn. */
export function foldAnswer(state: SessionState, record: LogRecord, event: EventOf<'user.tool_confirmation'>): boolean {
  const question = state.questions.find((one) => one.id === event.tool_use_id);
  if (!question) return false;
  if (question.answer) return true;
  const { actor, scope } = record.local ?? {};
  question.answer = { result: event.result, scope: scope ?? 'once', at: record.at, actor: actor ?? null };
  if (question.kind === 'canary' && event.result === 'deny') interruptAll(state, record);
  return true;
}

/** Questions without an answer, oldest first; one whose call is over meanwhile waits for nobody. */
export function openQuestions(state: SessionState): Question[] {
  return state.questions.filter((one) => {
    if (one.answer) return false;
    return one.kind === 'canary' || one.call === null || !state.calls.get(one.call)?.result;
  });
}
