import type { Disposable } from '../protocol/disposable.ts';
import { messageOf } from '../protocol/errors.ts';
import type { HostMessage } from '../protocol/panel.ts';
import type { LogRecord } from '../protocol/record.ts';
import type { LiveSession } from './live-session.ts';

/** Records in one message: a long log neither blocks the host nor the panel. */
const CHUNK = 400;

/** Sends one session's records to a panel: the history in pieces, then each record as it comes. */
export class RecordStream implements Disposable {
  readonly #session: LiveSession;
  readonly #post: (message: HostMessage) => Thenable<boolean>;
  readonly #before: (records: readonly LogRecord[]) => void;
  #follow: Disposable | undefined;
  #disposed = false;

  /** @param before is told of records just before they are sent. */
  constructor(
    session: LiveSession,
    post: (message: HostMessage) => Thenable<boolean>,
    before: (records: readonly LogRecord[]) => void,
  ) {
    this.#session = session;
    this.#post = post;
    this.#before = before;
  }

  async start(): Promise<void> {
    const { project, id } = this.#session;
    let next = 0;
    try {
      const { records } = await project.store.read(id);
      next = (records.at(-1)?.seq ?? -1) + 1;
      await this.#history(records);
    } catch (error) {
      await this.#post({ type: 'problem', message: `The session's log can't be read: ${messageOf(error)}` });
    }
    if (this.#disposed) return;
    this.#follow = project.store.follow(id, next, (records) => {
      this.#before(records);
      void this.#post({ type: 'records', records, more: false });
    });
  }

  async #history(records: LogRecord[]): Promise<void> {
    this.#before(records);
    for (let from = 0; from < records.length || from === 0; from += CHUNK) {
      if (this.#disposed) return;
      const more = from + CHUNK < records.length;
      await this.#post({ type: 'records', records: records.slice(from, from + CHUNK), more });
    }
  }

  dispose(): void {
    this.#disposed = true;
    this.#follow?.dispose();
  }
}
