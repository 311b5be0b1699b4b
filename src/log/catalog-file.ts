import {
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LowSync, type SyncAdapter } from 'lowdb';
import { z } from 'zod';
import { DroverError, messageOf } from '../protocol/errors.ts';
import { type Lease, LeaseFile, type LeaseOptions } from './lease.ts';
import { LeaseHeld } from './log.ts';
import { codeOf, makeRoot } from './paths.ts';

export class CatalogError extends DroverError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('settings', message, options);
  }
}

/** The format this version writes. */
const CATALOG_VERSION = 1;

/** What the file holds. Keys and entries this version does not understand stay in it as they are. */
const Stored = z.looseObject({
  version: z.number(),
  agents: z.array(z.unknown()),
  /** Former versions of agents, oldest first. */
  past_agents: z.array(z.unknown()).default([]),
  environments: z.array(z.unknown()),
  rules: z.array(z.unknown()).default([]),
  /** What is known of them; never a value. */
  vaults: z.array(z.unknown()).default([]),
  credentials: z.array(z.unknown()).default([]),
});
export type Stored = z.infer<typeof Stored>;

export const stored = (entries: Pick<Stored, 'agents' | 'environments'>): Stored => ({
  version: CATALOG_VERSION,
  past_agents: [],
  rules: [],
  vaults: [],
  credentials: [],
  ...entries,
});

/** How long a change waits for the change of another window, ms; each takes a few. */
const PATIENCE_MS = 10_000;

export interface CatalogFileOptions extends LeaseOptions {
  root: string;
  /** What there is while nothing has been written, or what was written can't be read. */
  initial: () => Stored;
  /** Told once for each way in which the file is broken. */
  onProblem: (message: string) => void;
}

/** `catalog.json`: read anew each time, changed under a lock that all windows share, replaced in one step. */
export class CatalogFile {
  readonly #path: string;
  readonly #lock: LeaseFile;
  readonly #options: CatalogFileOptions;
  readonly #told = new Set<string>();

  constructor(options: CatalogFileOptions) {
    this.#options = options;
    this.#path = join(options.root, 'catalog.json');
    this.#lock = new LeaseFile(join(options.root, 'catalog.lock'), options);
  }

  /** What the file says now. Never writes: a broken one is left where it is. */
  read(): Stored {
    return this.#open(() => undefined).data;
  }

  /** Changes the file and returns what `change` does. A `change` that throws leaves it as it was. */
  async update<T>(change: (data: Stored) => T): Promise<T> {
    let lock: Lease | undefined;
    try {
      await makeRoot(this.#options.root);
      lock = await this.#takeLock();
      const catalog = this.#open(() => this.#setAside());
      if (catalog.data.version > CATALOG_VERSION) throw new CatalogError(NEWER);
      const result = change(catalog.data);
      if (!lock.check()) throw new CatalogError('Another window changed the catalog at the same moment; try again.');
      catalog.write();
      return result;
    } catch (error) {
      if (error instanceof DroverError || codeOf(error) === undefined) throw error;
      throw new CatalogError(
        `The catalog ${this.#path} could not be saved (${messageOf(error)}); nothing in it was changed.`,
        { cause: error },
      );
    } finally {
      await lock?.release();
    }
  }

  tell(problem: string): void {
    if (this.#told.has(problem)) return;
    this.#told.add(problem);
    this.#options.onProblem(problem);
  }

  #open(onBroken: () => void): LowSync<Stored> {
    const adapter: SyncAdapter<Stored> = {
      read: () => this.#parse(onBroken),
      write: (data) => replaceFile(this.#path, `${JSON.stringify(data, null, 2)}\n`),
    };
    const catalog = new LowSync(adapter, this.#options.initial());
    catalog.read();
    return catalog;
  }

  #parse(onBroken: () => void): Stored | null {
    let text: string;
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null;
      throw new CatalogError(`The catalog ${this.#path} can't be read (${messageOf(error)}); check its permissions.`, {
        cause: error,
      });
    }
    try {
      const value: unknown = JSON.parse(text);
      const version = versionOf(value);
      const parsed = Stored.safeParse(value);
      if (parsed.success) return parsed.data;
      if (version <= CATALOG_VERSION) throw new Error(fieldProblem(parsed.error));
      this.tell(NEWER);
      return { ...this.#options.initial(), version };
    } catch (error) {
      this.tell(
        `The catalog ${this.#path} is broken (${messageOf(error)}), so the built-in agents and environments are used; it is set aside, not deleted, as soon as something is changed.`,
      );
      onBroken();
      return null;
    }
  }

  /** Keeps a broken file under another name, byte for byte, so that the new one does not replace it. */
  #setAside(): void {
    const time = this.#lock.now().toISOString().replace(/[:.]/g, '-');
    const name = `catalog.broken-${time}.json`;
    copyFileSync(this.#path, join(dirname(this.#path), name), constants.COPYFILE_EXCL);
    this.tell(`The broken catalog was set aside as ${name} in ${dirname(this.#path)}.`);
  }

  async #takeLock(): Promise<Lease> {
    for (const until = Date.now() + PATIENCE_MS; ; ) {
      try {
        return await this.#lock.take();
      } catch (error) {
        if (!(error instanceof LeaseHeld)) throw error;
        if (Date.now() < until) await sleep(5 + Math.random() * 20);
        else {
          throw new CatalogError(
            `Process ${error.holder.pid} on ${error.holder.host} keeps the catalog locked; close its window, then try again.`,
          );
        }
      }
    }
  }
}

const NEWER = 'The catalog was written by a newer Drover, so it can only be read here; update Drover to change it.';

const versionOf = (value: unknown): number =>
  typeof value === 'object' && value !== null && 'version' in value && typeof value.version === 'number'
    ? value.version
    : 0;

/** The first problem of a failed check, with the field it is about. */
export function fieldProblem(error: z.ZodError): string {
  const issue = error.issues[0];
  return `${issue?.path.join('.') || 'the whole'}: ${issue?.message ?? 'invalid'}`;
}

/** Replaces a file in one step, durable when it returns. The caller holds the lock, so one name for the draft is enough. */
function replaceFile(path: string, text: string): void {
  const draft = `${path}.tmp`;
  try {
    const fd = openSync(draft, 'w');
    try {
      writeFileSync(fd, text);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}
