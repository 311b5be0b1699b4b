import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { SessionId } from '../../protocol/ids.ts';
import type { CheckpointKeeper, CheckpointOwner, Checkpoints } from '../sandbox.ts';
import { GitFailed } from './git.ts';
import { Keeper } from './keeper.ts';
import { type FileChange, parseRawDiffs } from './raw-diff.ts';
import { Repository, type RepositoryOptions } from './repository.ts';
import { CheckpointGone, Restore, type RestoreOf } from './restore.ts';

/** The checkpoints of one workspace folder: the files of every session's work as they were after its calls. */
export class CheckpointStore implements Checkpoints {
  readonly #repository: Repository;

  constructor(options: RepositoryOptions) {
    this.#repository = new Repository(options);
  }

  follow(owner: CheckpointOwner): CheckpointKeeper {
    return new Keeper(this.#repository, owner);
  }

  /** What each checkpoint changed against the one before it, in the order given. Throws `CheckpointGone`, `GitMissing`. */
  async changes(commits: readonly string[]): Promise<FileChange[][]> {
    if (commits.length === 0) return [];
    const args = ['diff-tree', '--stdin', '-r', '-z', '--raw', '--root', '--no-renames'];
    const printed = await this.#read(args, `${commits.join('\n')}\n`);
    const byCommit = parseRawDiffs(printed.toString('latin1'));
    return commits.map((commit) => byCommit.get(commit) ?? []);
  }

  /** The content of a file, by the id of its blob. Throws `CheckpointGone`. */
  blob(id: string): Promise<Buffer> {
    return this.#read(['cat-file', 'blob', id]);
  }

  /** Bytes of a blob. Throws `CheckpointGone`. */
  async size(id: string): Promise<number> {
    return Number((await this.#read(['cat-file', '-s', id])).toString());
  }

  restore(of: RestoreOf): Restore {
    return new Restore(this.#repository, of);
  }

  /** Lets a session keep a checkpoint that another made: it was forked there. */
  async keep(session: SessionId, commit: string): Promise<void> {
    // Opens the repository.
    await this.#read(['cat-file', '-e', `${commit}^{commit}`]);
    await this.#repository.keep(session, commit);
  }

  /** Writes all files of a checkpoint into a folder, which is made if missing. */
  async writeTo(folder: string, commit: string): Promise<void> {
    await mkdir(folder, { recursive: true });
    const index = join(this.#repository.indexes, `export.${randomUUID()}.tmp`);
    try {
      await this.#repository.run({ index }, ['read-tree', commit]);
      await this.#repository.run({ index, workTree: folder }, ['checkout-index', '-a', '-f', '-q']);
    } finally {
      await rm(index, { force: true });
    }
  }

  /** Lets go of a deleted session's checkpoints. Never throws: what stays is found by the next `tidy`. */
  async forget(session: SessionId): Promise<void> {
    await this.#repository.forget(session).catch(() => undefined);
    void this.tidy().catch(() => undefined);
  }

  /** Packs what has gathered, and removes what no session leads to. */
  tidy(options: { always?: boolean; grace?: string } = {}): Promise<void> {
    return this.#repository.tidy(options);
  }

  async #read(args: readonly string[], stdin = ''): Promise<Buffer> {
    try {
      return await this.#repository.run({}, args, { stdin });
    } catch (error) {
      if (error instanceof GitFailed) throw new CheckpointGone(error);
      throw error;
    }
  }
}
