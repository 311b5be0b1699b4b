import type { AnyEvent, EventOf, EventType } from '../../src/protocol/event.ts';
import type { LogRecord } from '../../src/protocol/record.ts';

const isType = <T extends EventType>(event: AnyEvent, type: T): event is EventOf<T> => event.type === type;

/** The events of one type in a log, in order. */
export const eventsOf = <T extends EventType>(records: readonly LogRecord[], type: T): EventOf<T>[] =>
  records.flatMap(({ event }) => (isType(event, type) ? [event] : []));
