import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { EventId, SessionId, ThreadId } from '../../protocol/ids.ts';
import type { LogRecord, Seq } from '../../protocol/record.ts';
import { findRecords, parseLine } from '../line.ts';
import { LOG_FILE } from '../paths.ts';
import { readTextBlob } from './blob-text.ts';
import type { Place } from './block.ts';
import type { SessionIndex } from './session-index.ts';
import { type HitKind, searched, textBlobs } from './texts.ts';
import { normal, type Query } from './words.ts';

/** Characters of a preview before and after what was found. */
const BEFORE = 40;
const AFTER = 160;

export interface Hit {
  session: SessionId;
  /** As it is now. */
  title: string;
  event: EventId;
  seq: Seq;
  thread: ThreadId | null;
  /** The agent of the thread; "" where the record belongs to the session itself. */
  agent: string;
  kind: HitKind;
  /** One line with what was found in it; `match` says where, in characters, end exclusive. */
  preview: string;
  match: [number, number];
  /** When it was written, ms since 1970. */
  at: number;
}

/** Reads records back from their logs, each log opened once. */
export class HitReader {
  readonly #query: Query;
  readonly #files = new Map<SessionId, Promise<FileHandle>>();

  constructor(query: Query) {
    this.#query = query;
  }

  /** What is at a place, or null if it has not all that is looked for, or is not there any more. */
  async read(index: SessionIndex, place: Place): Promise<Hit | null> {
    const record = await this.#record(index, place).catch(() => null);
    const found = record && searched(record);
    if (!found) return null;
    const preview = await this.#preview(index, record, found.texts);
    if (!preview) return null;
    const thread = record.thread ?? null;
    const { title, threads } = index.indexed;
    const agent = thread ? (threads[thread] ?? '') : '';
    const { seq, at } = place;
    return { session: index.id, title, event: record.event.id, seq, thread, agent, kind: found.kind, ...preview, at };
  }

  async close(): Promise<void> {
    const files = await Promise.allSettled(this.#files.values());
    await Promise.all(files.map((file) => (file.status === 'fulfilled' ? file.value.close() : undefined)));
  }

  async #record(index: SessionIndex, { start, length, seq }: Place): Promise<LogRecord | null> {
    let file = this.#files.get(index.id);
    if (!file) {
      file = open(join(index.folder, LOG_FILE), 'r');
      this.#files.set(index.id, file);
    }
    const line = Buffer.alloc(length);
    await (await file).read(line, 0, length, start);
    // A line that was torn and written on holds several.
    const record = parseLine(line, 0, length) ?? findRecords(line).find((one) => one.record.seq === seq)?.record;
    return record?.seq === seq ? record : null;
  }

  async #preview(
    index: SessionIndex,
    record: LogRecord,
    texts: readonly string[],
  ): Promise<Pick<Hit, 'preview' | 'match'> | null> {
    const own = normal(texts.join(' '));
    const blobs = this.#query.terms.every((term) => term.test(own)) ? [] : textBlobs(record);
    const read = await Promise.all(blobs.map((blob) => readTextBlob(index.folder, blob)));
    const all = [own, ...read.filter((text) => text !== null).map(normal)];
    if (!this.#query.terms.every((term) => all.some((text) => term.test(text)))) return null;
    for (const pattern of [this.#query.phrase, ...this.#query.terms]) {
      for (const text of all) {
        const match = pattern.exec(text);
        if (match) return around(text, match.index, match[0].length);
      }
    }
    return null;
  }
}

/** One line of a text around a place in it. */
function around(text: string, at: number, length: number): Pick<Hit, 'preview' | 'match'> {
  const start = Math.max(0, at - BEFORE);
  const end = at + length + AFTER;
  const before = `${start > 0 ? '…' : ''}${oneLine(text.slice(start, at)).trimStart()}`;
  const match = oneLine(text.slice(at, at + length)).slice(0, AFTER);
  const after = oneLine(text.slice(at + length, end)).trimEnd();
  return {
    preview: `${before}${match}${after}${end < text.length ? '…' : ''}`.toWellFormed(),
    match: [before.length, before.length + match.length],
  };
}

const oneLine = (text: string): string => text.replace(/[\s\p{Cc}]+/gu, ' ');
