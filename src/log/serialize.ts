import { hash } from 'node:crypto';
import { messageOf } from '../protocol/errors.ts';
import { type AnyEvent, eventProblem } from '../protocol/event.ts';
import type { ThreadId } from '../protocol/ids.ts';
import { type Draft, FORMAT_VERSION, type Local, type LogRecord, type Seq } from '../protocol/record.ts';
import { AppendFailed } from './log.ts';

/** The last live record of a log: what the next one follows. */
export interface Head {
  /** -1 before the first record. */
  seq: Seq;
  /** "" before the first record. */
  hash: string;
}

export const NO_HEAD: Head = { seq: -1, hash: '' };

/** What every line ends with, byte for byte: `,"hash":"` + 22 characters + `"}`. */
export const HASH_CHARS = 22;
export const HASH_MARK = ',"hash":"';
export const HASH_TAIL_BYTES = HASH_MARK.length + HASH_CHARS + 2;

/**
 * No record is longer. What grows without bound (output, images, raw blocks) has gone to a blob before;
 * what stays is a model reply or a tool's input, which the model's own output limit keeps far below this.
 */
export const MAX_RECORD_BYTES = 16 * 1024 * 1024;

/** The first 22 characters of the base64url SHA-256: 132 bits, enough to tell any two lines apart. */
export const hashOf = (bytes: string | Uint8Array): string => hash('sha256', bytes, 'base64url').slice(0, HASH_CHARS);

export interface Serialized {
  records: LogRecord[];
  /** The lines, each with its `\n`. */
  bytes: Buffer;
  head: Head;
}

/** A draft that may be written: its event is stamped, and valid. */
export interface Ready {
  thread?: ThreadId;
  event: AnyEvent;
  local?: Local;
}

/**
 * Stamps and checks a draft.
 * @param at append time, RFC 3339 with milliseconds: what an event that says nothing of `processed_at` gets
 * @throws AppendFailed naming the event and its field if the draft is not valid
 */
export function ready(draft: Draft, at: string): Ready {
  const { id, type, processed_at = at, ...fields } = draft.event;
  const event = { id, type, processed_at, ...fields } as AnyEvent;
  const problem = shapeProblem(event) ?? eventProblem(event);
  if (problem)
    throw new AppendFailed(`An event was not stored because it is not valid (${problem}); please report it.`);
  return { ...draft, event };
}

/**
 * The one serializer: drafts in, records and their bytes out. Every line is one JSON object without a raw newline,
 * its fields in fixed order, its hash last.
 * @throws AppendFailed if a record is too large
 */
export function serialize(drafts: readonly Ready[], head: Head, fence: number, at: string): Serialized {
  const records: LogRecord[] = [];
  const lines: string[] = [];
  let { seq, hash: prev } = head;
  for (const { thread, event, local } of drafts) {
    seq += 1;
    const start = { v: FORMAT_VERSION, seq, at, ...(thread === undefined ? {} : { thread }), fence, prev, event };
    const fields = local === undefined ? start : { ...start, local };
    const body = stringify(fields).slice(0, -1);
    prev = hashOf(body);
    lines.push(`${body}${HASH_MARK}${prev}"}\n`);
    records.push({ ...fields, hash: prev });
  }
  return { records, bytes: Buffer.from(lines.join('')), head: { seq, hash: prev } };
}

/** What `eventProblem` lets pass in an unknown type, but no record can be without. */
function shapeProblem(event: AnyEvent): string | undefined {
  if (typeof event.type !== 'string' || event.type.length === 0) return 'type: it has none';
  if (typeof event.id !== 'string' || event.id.length === 0) return `${event.type}: id: it has none`;
  return undefined;
}

function stringify(fields: { event: AnyEvent }): string {
  let line: string;
  try {
    line = JSON.stringify(fields);
  } catch (error) {
    // A RangeError: more than the 512 MiB one string may have. A TypeError: a cycle, a bigint.
    throw new AppendFailed(`${fields.event.type} could not be stored: ${messageOf(error)}; nothing was written.`, {
      cause: error,
    });
  }
  // A character is at most three bytes of UTF-8, so short lines need no counting.
  if (line.length * 3 > MAX_RECORD_BYTES && Buffer.byteLength(line) > MAX_RECORD_BYTES) {
    throw new AppendFailed(
      `${fields.event.type} is larger than the ${MAX_RECORD_BYTES / 1024 / 1024} MiB one record may have; nothing of it was written.`,
    );
  }
  return line;
}
