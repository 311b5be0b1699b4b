import { resultFor } from '../protocol/event.ts';
import type { EventId } from '../protocol/ids.ts';
import type { Preview } from '../protocol/panel.ts';
import type { LogRecord } from '../protocol/record.ts';

/** Previews are sent at most this often, in ms. */
const EVERY_MS = 30;
/** Output kept of a running call for a panel that is opened while it runs, in characters. */
const OUTPUT_KEPT = 64 * 1024;

type Start = Extract<Preview, { type: 'start' }>;

/**
 * What streams in one session, for its panel: pieces that come in quick succession are sent as one, and what is open is
 * kept, so that a panel that is shown in the middle of a reply has the whole of it.
 */
export class PreviewBuffer {
  readonly #send: (preview: Preview) => void;
  readonly #open = new Map<EventId, { start: Start; text: string }>();
  readonly #outputs = new Map<EventId, { thread: Start['thread']; text: string }>();
  #held: Preview[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sentAt = 0;

  constructor(send: (preview: Preview) => void) {
    this.#send = send;
  }

  add(preview: Preview): void {
    this.#keep(preview);
    const last = this.#held.at(-1);
    if (last && isPiece(last) && isPiece(preview) && last.type === preview.type && last.id === preview.id) {
      this.#held[this.#held.length - 1] = { ...last, text: last.text + preview.text };
    } else {
      this.#held.push(preview);
    }
    const wait = this.#sentAt + EVERY_MS - Date.now();
    if (wait <= 0) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), wait);
  }

  /** Sends what is held back. Before a record is sent: a preview never overtakes its truth. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sentAt = Date.now();
    const held = this.#held;
    this.#held = [];
    for (const preview of held) this.#send(preview);
  }

  /** A record is the truth: its preview goes, and so does the output of a call that has its result. */
  settled(record: LogRecord): void {
    this.#open.delete(record.event.id);
    const call = resultFor(record.event);
    if (call) this.#outputs.delete(call);
  }

  /** All that is open, for a panel that starts anew. What was held back is in it. */
  replay(): Preview[] {
    this.#held = [];
    const previews: Preview[] = [];
    for (const { start, text } of this.#open.values()) {
      previews.push(start);
      if (text) previews.push({ type: 'delta', thread: start.thread, id: start.id, text });
    }
    for (const [id, { thread, text }] of this.#outputs) previews.push({ type: 'output', thread, id, text });
    return previews;
  }

  #keep(preview: Preview): void {
    if (preview.type === 'start') this.#open.set(preview.id, { start: preview, text: '' });
    else if (preview.type === 'delta') {
      const open = this.#open.get(preview.id);
      if (open) open.text += preview.text;
    } else if (preview.type === 'output') {
      const before = this.#outputs.get(preview.id)?.text ?? '';
      this.#outputs.set(preview.id, { thread: preview.thread, text: (before + preview.text).slice(-OUTPUT_KEPT) });
    } else {
      for (const [id, { start }] of this.#open) if (start.request === preview.request) this.#open.delete(id);
    }
  }

  dispose(): void {
    clearTimeout(this.#timer);
  }
}

const isPiece = (preview: Preview): preview is Extract<Preview, { text: string }> =>
  preview.type === 'delta' || preview.type === 'output';
