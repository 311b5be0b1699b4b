import type { EventId, ThreadId } from '../src/protocol/ids.ts';
import type { Preview } from '../src/protocol/panel.ts';

/** A block of a reply that is still coming in. */
export interface LiveBlock {
  id: EventId;
  thread: ThreadId;
  request: EventId;
  block: 'message' | 'thinking' | 'tool_use';
  /** The tool's name; empty for other blocks. */
  name: string;
  text: string;
}

/** Live output kept per call, in characters; older output scrolls out, the record has it all. */
const OUTPUT_KEPT = 64 * 1024;

/** What streams. It lives only until the record with the same id is there, or its request is over. */
export class Previews {
  readonly #blocks = new Map<EventId, LiveBlock>();
  readonly #outputs = new Map<EventId, string>();

  add(preview: Preview): void {
    if (preview.type === 'start') {
      const name = preview.block === 'tool_use' ? preview.name : '';
      const { id, thread, request, block } = preview;
      this.#blocks.set(id, { id, thread, request, block, name, text: '' });
    } else if (preview.type === 'delta') {
      const block = this.#blocks.get(preview.id);
      if (block) block.text += preview.text;
    } else if (preview.type === 'output') {
      this.#outputs.set(preview.id, ((this.#outputs.get(preview.id) ?? '') + preview.text).slice(-OUTPUT_KEPT));
    } else {
      for (const block of this.#blocks.values()) if (block.request === preview.request) this.#blocks.delete(block.id);
    }
  }

  /** A record arrived: it is the truth, its preview goes. */
  replaced(id: EventId): void {
    this.#blocks.delete(id);
  }

  /** A call has its result. */
  finished(call: EventId): void {
    this.#outputs.delete(call);
  }

  clear(): void {
    this.#blocks.clear();
    this.#outputs.clear();
  }

  /** The blocks of one thread, in the order they began. */
  blocks(thread: ThreadId): LiveBlock[] {
    return [...this.#blocks.values()].filter((block) => block.thread === thread);
  }

  output(call: EventId): string {
    return this.#outputs.get(call) ?? '';
  }
}
