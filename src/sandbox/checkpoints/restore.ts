import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DroverError } from '../../protocol/errors.ts';
import type { EventId, SessionId } from '../../protocol/ids.ts';
import { type Draft, draft } from '../../protocol/record.ts';
import { type BytePath, joinPaths, shown } from './byte-path.ts';
import { changesBetween, commit, skippedOf, treeOf } from './commit.ts';
import { checkpointDraft, namedFiles } from './draft.ts';
import type { FileChange } from './raw-diff.ts';
import type { Repository } from './repository.ts';
import { type Snapshot, WorkTree } from './work-tree.ts';

export class FilesMoved extends DroverError {
  constructor(cause?: unknown) {
    super(
      'tool',
      'Files changed in the meantime, so nothing was put back; look at what would change now, and decide again.',
      { cause },
    );
  }
}

export class CheckpointGone extends DroverError {
  constructor(cause: unknown) {
    super('tool', 'The files of that moment are not kept any more, so they can’t be put back or shown.', { cause });
  }
}

/** What putting files back would do, as the folder is now. */
export interface RestorePlan {
  /** What would become of each file: `added` are those that are not there now. */
  changes: FileChange[];
  /** Of them, those that no call of the session changed last: a person, or another program did. */
  byOthers: ReadonlySet<BytePath>;
  /** Files that are left as they are because the checkpoint, or the one taken now, does not have them. */
  leftAlone: BytePath[];
  /** @internal */
  now: Snapshot;
  /** @internal The tree the folder will have. */
  wanted: string;
}

export interface RestoreOf {
  session: SessionId;
  /** Absolute path of the work folder. */
  folder: string;
  shared: boolean;
  /** The checkpoint to go back to. */
  commit: string;
  /** The session's last checkpoint, or null. */
  last: string | null;
  /** Checkpoints since the one to go back to, oldest first, and whether calls of the session made them. */
  since: readonly { commit: string; calls: readonly EventId[] }[];
}

/** Puts a work folder's files back. For a session that is not at work: its keeper and this must not meet. */
export class Restore {
  readonly #repository: Repository;
  readonly #of: RestoreOf;
  readonly #work: WorkTree;

  constructor(repository: Repository, of: RestoreOf) {
    this.#repository = repository;
    this.#of = of;
    this.#work = new WorkTree(repository, of);
  }

  /** Looks, and changes nothing. Throws `CheckpointGone`, `GitMissing`, `GitFailed`. */
  async plan(): Promise<RestorePlan> {
    const target = await treeOf(this.#repository, this.#of.commit).catch((error: unknown) => {
      throw new CheckpointGone(error);
    });
    const now = await this.#work.snapshot();
    const before = await skippedOf(this.#repository, this.#of.commit);
    const alone = new Set<BytePath>([...before, ...now.skipped.map(({ path }) => path)]);
    const wanted = await this.#without(alone, now.tree, target);
    const changes = await this.#diff(now.tree, wanted);
    const all = await this.#diff(now.tree, target);
    return {
      changes,
      byOthers: await this.#byOthers(changes, now),
      leftAlone: all.map(({ path }) => path).filter((path) => alone.has(path)),
      now,
      wanted,
    };
  }

  /**
   * Does what was planned: keeps the files as they are now, puts the others back, and returns what the log is to say.
   * Git changes nothing if a file is not as it was when the plan was made. Throws `FilesMoved`, `GitFailed`.
   */
  async apply(plan: RestorePlan): Promise<Draft[]> {
    const again = await this.#work.snapshot();
    if (again.tree !== plan.now.tree) throw new FilesMoved();
    const { session, last, commit: target } = this.#of;
    const drafts: Draft[] = [];
    let before = last;
    const lastTree = last === null ? null : await treeOf(this.#repository, last).catch(() => null);
    if (before === null || lastTree !== again.tree) {
      before = await commit(this.#repository, session, again, last);
      const changes = lastTree === null ? [] : await this.#diff(lastTree, again.tree);
      const of = { commit: before, parent: last, calls: [], changes, skipped: again.skipped };
      drafts.push(checkpointDraft({ ...of, why: 'person' }));
    }
    const place = await this.#work.place();
    try {
      await this.#repository.run(place, ['read-tree', '-m', '-u', again.tree, plan.wanted]);
    } catch (error) {
      throw new FilesMoved(error);
    } finally {
      this.#work.moved();
    }
    const after = await this.#work.snapshot();
    const made = await commit(this.#repository, session, after, before);
    const { changes } = plan;
    const restored = { commit: target, before, files_changed: changes.length, files: namedFiles(changes) };
    const of = { commit: made, parent: before, calls: [], changes, skipped: after.skipped };
    return [...drafts, draft('drover.files_restored', restored), checkpointDraft({ ...of, why: 'restore' })];
  }

  #diff(from: string, to: string): Promise<FileChange[]> {
    return changesBetween(this.#repository, from, to);
  }

  /** The tree `target`, but with the paths in `alone` as they are in `now`. */
  async #without(alone: ReadonlySet<BytePath>, now: string, target: string): Promise<string> {
    if (alone.size === 0) return target;
    const index = join(this.#repository.indexes, `${this.#of.session}.plan.${randomUUID()}.tmp`);
    try {
      await this.#repository.run({ index }, ['read-tree', target]);
      await this.#repository.run({ index }, ['update-index', '-z', '--force-remove', '--stdin'], {
        stdin: joinPaths([...alone]),
      });
      const kept = (await this.#entries(now)).filter(([path]) => alone.has(path));
      const entries = kept.map(([path, entry]) => `${entry}\t${path}\0`).join('');
      await this.#repository.run({ index }, ['update-index', '-z', '--index-info'], {
        stdin: Buffer.from(entries, 'latin1'),
      });
      return (await this.#repository.run({ index }, ['write-tree'])).toString().trim();
    } finally {
      await rm(index, { force: true });
    }
  }

  /** Each file of a tree with `<mode> blob <id>`. */
  async #entries(tree: string): Promise<[BytePath, string][]> {
    const printed = await this.#repository.run({}, ['ls-tree', '-r', '-z', '--full-tree', tree]);
    return printed
      .toString('latin1')
      .split('\0')
      .filter((line) => line !== '')
      .map((line) => [line.slice(line.indexOf('\t') + 1), line.slice(0, line.indexOf('\t'))]);
  }

  /** Those of the files whose last change, since the checkpoint to go back to, was nobody's of the session. */
  async #byOthers(changes: readonly FileChange[], now: Snapshot): Promise<Set<BytePath>> {
    const { since, last } = this.#of;
    const others = new Set<BytePath>();
    for (const one of since) {
      for (const { path } of await this.#diff(`${one.commit}^`, one.commit)) {
        if (one.calls.length === 0) others.add(path);
        else others.delete(path);
      }
    }
    if (last !== null) for (const { path } of await this.#diff(last, now.tree)) others.add(path);
    return new Set(changes.map(({ path }) => path).filter((path) => others.has(path)));
  }
}

/** For people: the files of a plan, with what becomes of each. */
export function planned(plan: RestorePlan): { path: string; change: FileChange['change']; byOthers: boolean }[] {
  return plan.changes.map(({ path, change }) => ({ path: shown(path), change, byOthers: plan.byOthers.has(path) }));
}
