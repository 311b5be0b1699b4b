import type { LeaseHolder, Scanned } from '../log/log.ts';
import type { Disposable } from '../protocol/disposable.ts';
import { messageOf } from '../protocol/errors.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { Access } from '../protocol/panel.ts';
import type { LogRecord } from '../protocol/record.ts';
import { workFolder } from '../sandbox/work-folder.ts';
import { apply, fold, pendingApprovals } from '../session/fold.ts';
import { FOLD_VERSION, Folding } from '../session/snapshot.ts';
import type { Asking, SessionState } from '../session/state.ts';
import type { Project } from './project.ts';

/**
 * One session as this window sees it: the fold of its log, kept up with the log, and who works on it.
 * It holds nothing that is not read from the disk.
 */
export class LiveSession implements Disposable {
  readonly id: SessionId;
  readonly project: Project;
  /** null: the log can't be read as a session; `broken` says why. */
  state: SessionState | null = null;
  broken: string | null = null;
  /** A sentence on what is wrong with a log that could still be read. */
  damage: string | null = null;
  newer = false;
  /** The living lease holder, this window included. */
  holder: LeaseHolder | null = null;
  readonly #changed: (session: LiveSession, records: readonly LogRecord[]) => void;
  #follow: Disposable | undefined;
  #disposed = false;

  constructor(id: SessionId, project: Project, changed: (session: LiveSession, records: readonly LogRecord[]) => void) {
    this.id = id;
    this.project = project;
    this.#changed = changed;
  }

  /** Reads the log, then follows it. A log that can't be read is a state of the session, not an error. */
  async open(): Promise<void> {
    this.#follow?.dispose();
    try {
      await this.#read();
      this.holder = await this.project.store.holder(this.id);
    } catch (error) {
      this.broken = notShown(messageOf(error));
    }
    if (this.#disposed) return;
    const from = this.state ? this.state.head.seq + 1 : 0;
    this.#follow = this.project.store.follow(this.id, from, (records) => this.#apply(records));
  }

  async #read(): Promise<void> {
    const folding = new Folding();
    let failed: string | null = null;
    const found = await this.project.store.scan(this.id, FOLD_VERSION, {
      kept: (state) => folding.kept(state),
      take: (records) => {
        try {
          folding.take(records);
        } catch (error) {
          failed ??= messageOf(error);
        }
      },
    });
    this.newer = found.newer;
    this.damage = damageOf(found);
    this.state = failed === null ? folding.state : null;
    this.broken = this.state ? null : notShown(failed ?? 'no record in it is whole');
  }

  #apply(records: LogRecord[]): void {
    try {
      if (this.state) for (const record of records) apply(this.state, record);
      else if (records[0]?.seq === 0) this.state = fold(records);
      if (this.state) this.broken = null;
    } catch (error) {
      this.broken = notShown(messageOf(error));
    }
    this.#changed(this, records);
  }

  /** Asks again who holds the lease. True if that has changed. */
  async refreshHolder(): Promise<boolean> {
    const before = this.holder;
    this.holder = await this.project.store.holder(this.id);
    return (
      before?.pid !== this.holder?.pid || before?.fence !== this.holder?.fence || before?.host !== this.holder?.host
    );
  }

  /** The folder that its calls see as their workspace: the project's own, or a copy. */
  get folder(): string {
    const environment = this.state?.environment ?? {};
    return workFolder({ session: this.id, environment, workspaceFolder: this.project.path });
  }

  get title(): string {
    return this.state?.title ?? this.id;
  }

  /** Calls and questions that wait for a person, oldest first. */
  get pending(): Asking[] {
    return this.state && !this.state.archived ? pendingApprovals(this.state) : [];
  }

  /** The log says it works. */
  get running(): boolean {
    return this.state?.status === 'running' || this.state?.status === 'rescheduling';
  }

  get awake(): boolean {
    return this.project.running?.harness.isAwake(this.id) ?? false;
  }

  /** The log says it works, but nobody alive does: a crash, or a harness that gave up. */
  get interrupted(): boolean {
    if (!this.running) return false;
    return this.holder === null || (this.holder.ours && !this.awake);
  }

  /** Whether this window may write, and if not, why. */
  access(trusted: boolean): Access {
    if (this.newer) {
      return {
        mode: 'read_only',
        why: 'Its log was written by a newer Drover; update the extension to go on with it.',
      };
    }
    if (this.broken) return { mode: 'read_only', why: this.broken };
    if (!trusted) return { mode: 'read_only', why: 'This folder is in Restricted Mode; trust it to go on here.' };
    if (this.holder && !this.holder.ours) {
      return { mode: 'follow', holder: `process ${this.holder.pid} on ${this.holder.host}` };
    }
    return { mode: 'write' };
  }

  dispose(): void {
    this.#disposed = true;
    this.#follow?.dispose();
  }
}

const notShown = (why: string): string =>
  `Its log can't be shown as a session (${why.replace(/\.$/, '')}); nothing of it was changed or removed.`;

function damageOf(reading: Scanned): string | null {
  const parts: string[] = [];
  for (const { range, reason } of reading.damage) parts.push(`bytes ${range[0]} to ${range[1]}: ${reason}`);
  if (reading.tornBytes > 0) parts.push(`the last ${reading.tornBytes} bytes are a record that was never finished`);
  if (parts.length === 0) return null;
  return `Part of its log can't be read and is passed over (${parts.join('; ')}); the rest is shown.`;
}
