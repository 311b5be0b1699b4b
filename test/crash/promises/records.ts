import { type EventOf, type EventType, isKnown } from '../../../src/protocol/event.ts';
import type { EventId } from '../../../src/protocol/ids.ts';
import type { LogRecord } from '../../../src/protocol/record.ts';
import { createToolbox } from '../../../src/tools/toolbox.ts';

/*
 * What must hold between the records of a finished log, read as plain records: without the fold.
 */

type Of<T extends EventType> = Omit<LogRecord, 'event'> & { event: EventOf<T> };

function all<T extends EventType>(records: readonly LogRecord[], type: T): Of<T>[] {
  return records.filter((record): record is LogRecord & Of<T> => isKnown(record.event) && record.event.type === type);
}

const tools = createToolbox({
  agent: { name: 'any', model: 'any', multiagent: { type: 'coordinator', agents: [] } },
  roster: [],
  depth: 0,
});

export function recordProblems(records: readonly LogRecord[]): string[] {
  return [...requestProblems(records), ...callProblems(records), ...messageProblems(records), ...restProblems(records)];
}

/** Every request has one end; a new holder's first record says that it woke. */
function requestProblems(records: readonly LogRecord[]): string[] {
  const problems: string[] = [];
  const ends = all(records, 'span.model_request_end');
  for (const { event, seq } of all(records, 'span.model_request_start')) {
    const own = ends.filter((end) => end.event.model_request_start_id === event.id);
    if (own.length !== 1) problems.push(`the request of record ${seq} has ${own.length} ends`);
  }
  const settled = all(records, 'drover.budget_settled');
  for (const { event, seq } of all(records, 'drover.budget_reserved')) {
    const own = settled.filter((one) => one.event.reservation_id === event.id);
    if (own.length !== 1) problems.push(`the reservation of record ${seq} is settled ${own.length} times`);
  }
  for (const [index, record] of records.entries()) {
    const before = records[index - 1];
    if (before && record.fence > before.fence && record.event.type !== 'drover.woke')
      problems.push(`a new holder begins with ${record.event.type} in record ${record.seq}`);
  }
  return problems;
}

/** Promise 3 and 4, and promise 2's part that a finished log can show: one result for each call that counts. */
function callProblems(records: readonly LogRecord[]): string[] {
  const problems: string[] = [];
  const counted = new Map<EventId, number>();
  for (const { event, seq } of all(records, 'span.model_request_end')) {
    if (event.is_error === false) counted.set(event.model_request_start_id, seq);
  }
  const calls = all(records, 'agent.tool_use');
  const results = all(records, 'agent.tool_result');
  const started = all(records, 'drover.tool_started');
  const confirmed = all(records, 'user.tool_confirmation');
  for (const call of calls) {
    const { id, name } = call.event;
    const span = call.local?.reply?.span;
    const end = span && counted.get(span);
    const own = results.filter((result) => result.event.tool_use_id === id);
    const starts = started.filter((start) => start.event.tool_use_id === id);
    const wrong = (what: string) => problems.push(`${name} of record ${call.seq} ${what}`);
    if (end === undefined) {
      if (own.length + starts.length > 0) wrong('belongs to no reply that counts, but was run or has a result');
      continue;
    }
    if (own.length !== 1) wrong(`has ${own.length} results`);
    if (starts.length > 1 && !tools.find(name)?.idempotent) wrong(`was started ${starts.length} times`);
    const result = own[0];
    const first = starts[0];
    if (first && first.seq < end) wrong('was started before its reply counted');
    if (first && result && result.seq < (starts.at(-1)?.seq ?? 0)) wrong('was started after it had a result');
    if (!first && result?.local?.outcome === 'ok') wrong('has a good result but was never started');
    if (first && call.event.evaluated_permission === 'ask') {
      const allowed = confirmed.find(({ event }) => event.tool_use_id === id && event.result === 'allow');
      if (!allowed || allowed.seq > first.seq) wrong('was started before a person had allowed it');
    }
    const next = all(records, 'span.model_request_start').find((one) => one.thread === call.thread && one.seq > end);
    if (result && next && next.seq < result.seq) wrong('had no result when the model was asked again');
  }
  for (const { event, seq } of [...results, ...started]) {
    if (!calls.some((call) => call.event.id === event.tool_use_id)) problems.push(`record ${seq} is of no call`);
  }
  return problems;
}

/** No message of the person's is lost or taken twice. */
function messageProblems(records: readonly LogRecord[]): string[] {
  const messages = all(records, 'user.message');
  const processed = all(records, 'drover.event_processed');
  const problems = messages.length === 2 ? [] : [`the person said ${messages.length} things, not 2`];
  for (const { event, seq } of messages) {
    const times = processed.filter((one) => one.event.event_id === event.id).length;
    if (times !== 1) problems.push(`the message of record ${seq} was taken in ${times} times`);
  }
  return problems;
}

/** Its usage stands directly before every idle, and each command ran in a sandbox that the log knows to be ready. */
function restProblems(records: readonly LogRecord[]): string[] {
  const problems: string[] = [];
  for (const { seq } of all(records, 'session.status_idle')) {
    const before = records.find((record) => record.seq === seq - 1);
    if (before?.event.type !== 'session.usage') problems.push(`no usage before the idle of record ${seq}`);
  }
  const ready = all(records, 'drover.sandbox_ready');
  for (const { event, seq } of all(records, 'drover.tool_started')) {
    const known = ready.some((one) => one.event.sandbox_id === event.sandbox_id && one.seq < seq);
    if (event.sandbox_id !== null && !known) problems.push(`record ${seq} starts a call in a sandbox nobody made`);
  }
  return problems;
}
