import { plainText } from '../../protocol/content.ts';
import type { EventOf } from '../../protocol/event.ts';
import { isCall, isKnown } from '../../protocol/event.ts';
import type { EventId } from '../../protocol/ids.ts';
import type { LogRecord, Seq } from '../../protocol/record.ts';
import type { SessionState } from '../../session/state.ts';
import { summary } from '../describe.ts';
import { Refusal } from '../refusal.ts';

export type Checkpoint = EventOf<'drover.checkpoint'>;

/** A checkpoint and where its record stands. */
export interface Taken {
  seq: Seq;
  checkpoint: Checkpoint;
}

/** A moment of a session that a person can go back to. */
export interface Point {
  /** For people, after "to how they were" or "from". */
  words: string;
  /** The last record that a fork from here has. */
  at: LogRecord;
  /** The files as they were; null if none were kept by then. */
  taken: Taken | null;
}

export function checkpointsIn(records: readonly LogRecord[]): Taken[] {
  return records.flatMap(({ seq, event }) =>
    isKnown(event) && event.type === 'drover.checkpoint' ? [{ seq, checkpoint: event }] : [],
  );
}

/**
 * The moment an event stands for. A call: when it had ended, with what it did to the files. A message of a person:
 * before it was said, with the files as the agent found them when it began to work on it. Throws `Refusal`.
 */
export function pointOf(state: SessionState, records: readonly LogRecord[], id: EventId): Point {
  const call = state.calls.get(id);
  const taken = checkpointsIn(records);
  if (call) {
    const { result } = call;
    if (!result) throw new Refusal('This call has not ended, so there is no moment after it to go back to.');
    const own = taken.findLast(({ checkpoint }) => checkpoint.tool_use_ids.includes(id));
    const before = taken.findLast(({ seq }) => seq <= result.seq) ?? taken[0];
    return {
      words: `after “${short(summary(call))}”`,
      at: recordAt(records, result.seq),
      taken: own ?? before ?? null,
    };
  }
  const record = records.find(({ event }) => event.id === id);
  if (record && isKnown(record.event) && record.event.type === 'user.message') {
    const { seq } = record;
    const next = taken.find((one) => one.seq > seq);
    const found = next && next.checkpoint.why !== 'calls' && next.checkpoint.why !== 'restore' ? next : undefined;
    return {
      words: `before “${short(plainText(record.event.content))}”`,
      at: recordAt(records, seq - 1),
      taken: found ?? taken.findLast((one) => one.seq < seq) ?? null,
    };
  }
  const own = taken.find(({ checkpoint }) => checkpoint.id === id);
  if (record && own) {
    return { words: `at ${new Date(record.at).toLocaleTimeString()}`, at: record, taken: own };
  }
  throw new Refusal('There is no moment of this event to go back to; choose a call or a message of yours.');
}

/** Moments to choose from, the newest first: messages of the person, and calls that changed files. */
export function pointsToChoose(state: SessionState, records: readonly LogRecord[]): EventId[] {
  const ids: EventId[] = [];
  for (const { event, thread } of records) {
    if (!isKnown(event)) continue;
    if (event.type === 'user.message' && thread === state.primary) ids.push(event.id);
    const call = isCall(event) ? state.calls.get(event.id) : undefined;
    if (call?.result && call.checkpoints.length > 0) ids.push(event.id);
  }
  return ids.reverse();
}

function recordAt(records: readonly LogRecord[], seq: Seq): LogRecord {
  const record = records.findLast((one) => one.seq <= seq);
  if (!record) throw new Refusal('The log has no record before this one, so there is nothing to go back to.');
  return record;
}

/** The start of a text, in one line. */
export function short(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}
