import { type Disposable, disposable } from '../../protocol/disposable.ts';
import { DroverError } from '../../protocol/errors.ts';
import type { SessionId } from '../../protocol/ids.ts';
import type { BlobRef, LogRecord } from '../../protocol/record.ts';
import { SessionMissing, type SessionReading, type SessionStore } from '../log.ts';
import type { ExportFile } from './read.ts';

export class ReadOnlyExport extends DroverError {
  constructor() {
    super('log', 'This session is shown from an exported file, so it can be read here and nothing more.');
  }
}

/** The one session of an exported file, as a store that can only be read. */
export class ExportStore implements SessionStore {
  /** The file; there is no `.drover` folder. */
  readonly root: string;
  readonly #id: SessionId;
  readonly #file: ExportFile;

  /** @param id what the session is called here: the window may have the real one, too */
  constructor(path: string, id: SessionId, file: ExportFile) {
    this.root = path;
    this.#id = id;
    this.#file = file;
  }

  async list(): Promise<SessionId[]> {
    return [this.#id];
  }

  async read(id: SessionId): Promise<SessionReading> {
    if (id !== this.#id) throw new SessionMissing(id);
    return this.#file.reading;
  }

  async scan(id: SessionId, _fold: number, sink: { take(records: LogRecord[]): void }): Promise<SessionReading> {
    const reading = await this.read(id);
    sink.take(reading.records);
    return reading;
  }

  readBlob(_id: SessionId, blob: BlobRef): Promise<Uint8Array> {
    return this.#file.readBlob(blob);
  }

  async holder(): Promise<null> {
    return null;
  }

  /** The file does not change while it is shown; nothing comes. */
  follow(): Disposable {
    return disposable(() => undefined);
  }

  watch(): Disposable {
    return disposable(() => undefined);
  }

  async create(): Promise<never> {
    throw new ReadOnlyExport();
  }

  async fork(): Promise<never> {
    throw new ReadOnlyExport();
  }

  async acquire(): Promise<never> {
    throw new ReadOnlyExport();
  }

  async takeOver(): Promise<never> {
    throw new ReadOnlyExport();
  }

  async verify(): Promise<never> {
    throw new ReadOnlyExport();
  }

  async delete(): Promise<never> {
    throw new ReadOnlyExport();
  }

  async dispose(): Promise<void> {}
}
