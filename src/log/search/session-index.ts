import { type FileHandle, open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isKnown } from '../../protocol/event.ts';
import type { SessionId } from '../../protocol/ids.ts';
import type { BlobRef, LogRecord } from '../../protocol/record.ts';
import { LOG_FILE } from '../paths.ts';
import { Scanner } from '../scan.ts';
import type { Head } from '../serialize.ts';
import type { Slices } from '../slices.ts';
import { readTextBlob } from './blob-text.ts';
import { type Block, BlockBuilder, type Place } from './block.ts';
import { searched, textBlobs } from './texts.ts';
import { eachWord } from './words.ts';

const CHUNK_BYTES = 256 * 1024;
/** Text is taken apart in pieces of so many characters; other work gets its turn in between. */
const PIECE_CHARS = 32 * 1024;
/** Different words that one record is found by; only a list of numbers, or the like, has more. */
const MOST_WORDS = 50_000;
const NEWLINE = 0x0a;

/** What a session's index is of, as the cache keeps it: everything up to a record of the log. */
export interface Indexed {
  head: Head;
  fence: number;
  /** Bytes of the log that are indexed. */
  offset: number;
  /** The line of the record `head`: if the log still has its hash there, the index fits. */
  last: { start: number; length: number };
  title: string;
  /** Names of the agents, by the id of their thread. */
  threads: Record<string, string>;
  blocks: Block[];
}

const nothing = (): Indexed => ({
  head: { seq: -1, hash: '' },
  fence: 0,
  offset: 0,
  last: { start: 0, length: 0 },
  title: '',
  threads: {},
  blocks: [],
});

/** The index of one session. It reads the log forward, each byte once, and never writes to it. */
export class SessionIndex {
  readonly id: SessionId;
  readonly folder: string;
  #of = nothing();
  #scanner = new Scanner();
  #builder: BlockBuilder | null = null;
  /** The size of the log when it was last read, in bytes. */
  #size = -1;

  constructor(id: SessionId, folder: string) {
    this.id = id;
    this.folder = folder;
  }

  /** Begins where a cache ends. Whether it fits the log is seen at the next refresh. */
  begin(from: Indexed | null): void {
    if (!from) return;
    this.#of = from;
    this.#scanner = new Scanner(from);
  }

  get indexed(): Indexed {
    return this.#of;
  }

  /** True if the log is not as long as it was when it was last read. Throws if there is none. */
  async isBehind(): Promise<boolean> {
    const { size } = await stat(join(this.folder, LOG_FILE));
    return size !== this.#size;
  }

  /** Takes in what the log has got since the last time. True if that was anything. Throws if it can't be read. */
  async refresh(slices: Slices): Promise<boolean> {
    const file = await open(join(this.folder, LOG_FILE), 'r');
    try {
      const { size } = await file.stat();
      const before = this.#of.head;
      if (!(await this.#fits(file, size))) this.#reset();
      this.#scanner.rewind();
      await this.#read(file, slices);
      this.#size = size;
      return this.#of.head.hash !== before.hash;
    } finally {
      await file.close();
    }
  }

  /** False if what was read is no longer what the file begins with. */
  async #fits(file: FileHandle, size: number): Promise<boolean> {
    const { offset, head, last } = this.#of;
    if (offset === 0) return true;
    if (size < offset) return false;
    const line = Buffer.alloc(last.length);
    await file.read(line, 0, last.length, last.start);
    return line.includes(`"hash":"${head.hash}"`);
  }

  #reset(): void {
    this.#of = nothing();
    this.#scanner = new Scanner();
  }

  async #read(file: FileHandle, slices: Slices): Promise<void> {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, chunk.length, this.#scanner.offset);
      if (bytesRead === 0) break;
      let start = 0;
      while (start < bytesRead) {
        const newline = chunk.subarray(0, bytesRead).indexOf(NEWLINE, start);
        const end = newline === -1 ? bytesRead : newline + 1;
        const from = this.#scanner.wholeEnd;
        this.#scanner.push(chunk.subarray(start, end));
        for (const record of this.#scanner.take()) await this.#take(record, from, newline !== -1, slices);
        if (slices.due) await slices.pause();
        start = end;
      }
    }
    const from = this.#scanner.wholeEnd;
    this.#scanner.settle();
    for (const record of this.#scanner.take()) await this.#take(record, from, false, slices);
    this.#close();
    this.#of.offset = this.#scanner.wholeEnd;
    this.#of.head = this.#scanner.head;
    this.#of.fence = this.#scanner.fence;
  }

  async #take(record: LogRecord, start: number, ended: boolean, slices: Slices): Promise<void> {
    const length = this.#scanner.wholeEnd - start - (ended ? 1 : 0);
    this.#of.last = { start, length };
    this.#names(record);
    const found = searched(record);
    if (!found) return;
    await this.#add({ seq: record.seq, start, length, at: Date.parse(record.at) || 0 }, found.texts, slices);
    for (const blob of textBlobs(record)) await this.#addBlob(blob, slices);
  }

  #names({ event }: LogRecord): void {
    if (!isKnown(event)) return;
    if (event.type === 'drover.session_created') {
      this.#of.title = event.title;
      this.#of.threads[event.primary_thread_id] = event.agent.name;
    } else if (event.type === 'session.thread_created') this.#of.threads[event.session_thread_id] = event.agent_name;
    else if (event.type === 'session.updated' && event.title) this.#of.title = event.title;
  }

  async #add(place: Place, texts: readonly string[], slices: Slices): Promise<void> {
    if (this.#builder?.isFull) this.#close();
    this.#builder ??= this.#lastBlock();
    this.#builder.add(place);
    for (const text of texts) await this.#addText(text, slices);
  }

  async #addText(text: string, slices: Slices): Promise<void> {
    const builder = this.#builder;
    if (!builder) return;
    let words = 0;
    for (const piece of piecesOf(text)) {
      eachWord(piece, (word) => {
        if (words < MOST_WORDS && builder.word(word)) words += 1;
      });
      if (slices.due) await slices.pause();
    }
  }

  async #addBlob(blob: BlobRef, slices: Slices): Promise<void> {
    const text = await readTextBlob(this.folder, blob);
    if (text !== null) await this.#addText(text, slices);
  }

  /** The last block, if it takes more, to go on with it. */
  #lastBlock(): BlockBuilder {
    const last = this.#of.blocks.at(-1);
    if (!last || last.isFull) return new BlockBuilder();
    this.#of.blocks = this.#of.blocks.slice(0, -1);
    return BlockBuilder.from(last);
  }

  #close(): void {
    if (this.#builder && !this.#builder.isEmpty) this.#of.blocks = [...this.#of.blocks, this.#builder.build()];
    this.#builder = null;
  }
}

/** A long text in pieces that end where no word is. */
function* piecesOf(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + PIECE_CHARS, text.length);
    for (let back = 0; back < 256 && end < text.length && /[\p{L}\p{M}\p{N}_]/u.test(text[end] ?? ''); back++) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
}
