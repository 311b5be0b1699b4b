import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../protocol/errors.ts';
import type { EventId } from '../../protocol/ids.ts';
import { draft, type Seq } from '../../protocol/record.ts';
import type { CheckpointKeeper, CheckpointOwner } from '../sandbox.ts';
import { workFolder } from '../work-folder.ts';
import { changesBetween, commit, treeOf } from './commit.ts';
import { checkpointDraft } from './draft.ts';
import { GitFailed } from './git.ts';
import { GitMissing, type Repository } from './repository.ts';
import { TooManyFiles, WorkTree } from './work-tree.ts';

/**
 * Takes a session's checkpoints while it is at work. One after the other, never on the path of a result: what a call
 * brought is in the log and shown before its checkpoint is begun. But the next call that may change files waits for it,
 * so that one call's changes are not another's.
 */
export class Keeper implements CheckpointKeeper {
  readonly #repository: Repository;
  readonly #owner: CheckpointOwner;
  readonly #work: WorkTree;
  /** Calls that may be changing files right now. */
  readonly #active = new Set<EventId>();
  /** Calls that have ended and whose changes may be in no checkpoint yet. */
  #ended = new Set<EventId>();
  #turn: Promise<void> = Promise.resolve();
  /** The last checkpoint and its tree; undefined until the log and the disk were asked. */
  #last: { commit: string; tree: string } | null | undefined;
  /** Nothing more is tried. */
  #off = false;
  #made = false;

  constructor(repository: Repository, owner: CheckpointOwner) {
    this.#repository = repository;
    this.#owner = owner;
    this.#work = new WorkTree(repository, {
      session: owner.session,
      folder: workFolder(owner),
      shared: owner.environment.workspace !== 'isolated',
    });
  }

  warm(): void {
    if (this.#last === undefined) void this.#queue(() => this.#check());
  }

  before(call: EventId): Promise<void> {
    return this.#queue(async () => {
      // Beside others, nobody can tell whose a change is: it is named with all of them.
      if (this.#active.size === 0) await this.#check();
      this.#active.add(call);
    });
  }

  after(call: EventId): void {
    void this.#queue(async () => {
      this.#active.delete(call);
      this.#ended.add(call);
      await this.#check();
    });
  }

  async close(): Promise<void> {
    await this.#turn;
    if (this.#made) this.#repository.tidy().catch(() => undefined);
  }

  /** Whatever fails is told once, and never in the way of the session. */
  #queue(act: () => Promise<void>): Promise<void> {
    this.#turn = this.#turn.then(act).catch((error: unknown) => this.#failed(error));
    return this.#turn;
  }

  async #check(): Promise<void> {
    if (this.#off || !(await this.#work.exists())) return;
    const last = await this.#begin();
    const snapshot = await this.#work.snapshot(last?.tree);
    if (last?.tree !== snapshot.tree) {
      const calls = [...new Set([...this.#ended, ...this.#active])];
      const [made, changes] = await Promise.all([
        commit(this.#repository, this.#owner.session, snapshot, last?.commit ?? null),
        last ? (snapshot.changes ?? changesBetween(this.#repository, last.tree, snapshot.tree)) : [],
      ]);
      const why = calls.length > 0 ? 'calls' : last ? 'person' : 'start';
      await this.#owner.record([
        checkpointDraft({ commit: made, parent: last?.commit ?? null, why, calls, changes, skipped: snapshot.skipped }),
      ]);
      this.#last = { commit: made, tree: snapshot.tree };
      this.#made = true;
    }
    this.#ended = new Set();
    await this.#settled();
  }

  /** What the log says of the last checkpoint, and which calls a crash left without one. */
  async #begin(): Promise<{ commit: string; tree: string } | null> {
    if (this.#last !== undefined) return this.#last;
    const { checkpoint, startedAfter } = this.#owner.log();
    const settled = await this.#settledAt();
    const found = checkpoint && {
      commit: checkpoint.commit,
      tree: await treeOf(this.#repository, checkpoint.commit).catch((error: unknown) => {
        if (error instanceof GitMissing) throw error;
        // The repository was removed, or the disk lost it: checkpoints begin anew.
        return null;
      }),
    };
    this.#last = found?.tree ? { commit: found.commit, tree: found.tree } : null;
    if (this.#last) {
      for (const call of startedAfter(Math.max(settled, checkpoint?.seq ?? -1))) {
        if (!this.#active.has(call)) this.#ended.add(call);
      }
    }
    return this.#last;
  }

  /** Up to which record every call's changes are in a checkpoint; only a hint: after a crash it tells calls from a person. */
  async #settled(): Promise<void> {
    if (this.#active.size > 0) return;
    await writeFile(this.#settledPath, String(this.#owner.log().head)).catch(() => undefined);
  }

  async #settledAt(): Promise<Seq> {
    const text = await readFile(this.#settledPath, 'utf8').catch(() => '');
    const { forkedAt } = this.#owner.log();
    return Math.max(forkedAt, /^\d+$/.test(text) ? Number(text) : -1);
  }

  get #settledPath(): string {
    return join(this.#repository.indexes, `${this.#owner.session}.settled`);
  }

  async #failed(error: unknown): Promise<void> {
    this.#work.moved();
    // The folder would be looked through for nothing before and after each call.
    const hopeless = error instanceof GitFailed && error.hopeless;
    if (hopeless || error instanceof GitMissing || error instanceof TooManyFiles) this.#off = true;
    const message = messageOf(error);
    if (this.#owner.log().problem === message) return;
    // A session that is being stopped takes no records any more; then nobody needs to be told.
    await this.#owner.record([draft('drover.checkpoint_failed', { message })]).catch(() => undefined);
  }
}
