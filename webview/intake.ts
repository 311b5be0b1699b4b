import type { HostMessage } from '../src/protocol/panel.ts';
import type { LogRecord } from '../src/protocol/record.ts';

/** Work in one go, in ms: below a frame, so that a long history does not freeze the panel while it is read. */
const SLICE_MS = 10;

/** Who is handed the messages, one record at a time. */
export interface Receiver {
  record(record: LogRecord): void;
  /** Every message but `records`. */
  message(message: Exclude<HostMessage, { type: 'records' }>): void;
  /** A batch is folded; `more` says that another one follows at once. */
  batchDone(more: boolean): void;
}

/** Takes the host's messages in their order and folds long histories in slices. */
export class Intake {
  readonly #receiver: Receiver;
  readonly #queue: HostMessage[] = [];
  #position = 0;
  #scheduled = false;
  /** A message to oneself comes back at once; a timer would be held back in a hidden panel. */
  readonly #again = new MessageChannel();

  constructor(receiver: Receiver) {
    this.#receiver = receiver;
    this.#again.port1.onmessage = () => this.#run();
  }

  push(message: HostMessage): void {
    this.#queue.push(message);
    if (!this.#scheduled) this.#run();
  }

  #run(): void {
    this.#scheduled = false;
    const until = performance.now() + SLICE_MS;
    while (this.#queue.length > 0) {
      if (performance.now() >= until) {
        this.#scheduled = true;
        this.#again.port2.postMessage(null);
        return;
      }
      this.#step(until);
    }
  }

  #step(until: number): void {
    const message = this.#queue[0];
    if (!message) return;
    if (message.type !== 'records') {
      this.#queue.shift();
      this.#receiver.message(message);
      return;
    }
    while (this.#position < message.records.length && performance.now() < until) {
      const record = message.records[this.#position++];
      if (record) this.#receiver.record(record);
    }
    if (this.#position < message.records.length) return;
    this.#position = 0;
    this.#queue.shift();
    this.#receiver.batchDone(message.more);
  }
}
