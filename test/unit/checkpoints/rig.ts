import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import type { Environment } from '../../../src/protocol/environment.ts';
import type { EventOf } from '../../../src/protocol/event.ts';
import { type EventId, mint, type SessionId } from '../../../src/protocol/ids.ts';
import type { Draft, Seq } from '../../../src/protocol/record.ts';
import { CheckpointStore } from '../../../src/sandbox/checkpoints/checkpoints.ts';
import type { CheckpointKeeper, CheckpointOwner } from '../../../src/sandbox/sandbox.ts';

const exec = promisify(execFile);

export type Checkpoint = EventOf<'drover.checkpoint'>;

const environment = (workspace: 'bind' | 'isolated'): Environment => ({
  id: mint.environment(),
  type: 'environment',
  name: 'Here',
  config: { type: 'os' },
  workspace,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
  archived_at: null,
});

/** A workspace folder on the disk, a session's keeper over it, and what the keeper told the log. */
export class Place {
  readonly folder: string;
  readonly session: SessionId = mint.session();
  readonly drafts: Draft[] = [];
  readonly started: { call: EventId; seq: Seq }[] = [];
  store: CheckpointStore;
  keeper: CheckpointKeeper;
  readonly #privateFolder: string;
  #seq = 0;

  private constructor(folder: string, privateFolder: string) {
    this.folder = folder;
    this.#privateFolder = privateFolder;
    this.store = this.open();
    this.keeper = this.store.follow(this.owner());
  }

  static async open(files: Record<string, string | Buffer> = {}): Promise<Place> {
    const base = await realpath(await mkdtemp(join(tmpdir(), 'drover-checkpoints-')));
    const place = new Place(join(base, 'work'), join(base, 'private'));
    onTestFinished(async () => {
      await place.keeper.close();
      await rm(base, { recursive: true, force: true, maxRetries: 5 });
    });
    await mkdir(join(place.folder, '.drover', 'sessions', place.session), { recursive: true });
    await writeFile(join(place.folder, '.drover', '.gitignore'), '*\n');
    for (const [path, content] of Object.entries(files)) await place.write(path, content);
    return place;
  }

  open(env?: NodeJS.ProcessEnv): CheckpointStore {
    const root = join(this.folder, '.drover');
    return new CheckpointStore({ root, privateFolder: this.#privateFolder, ...(env ? { env } : {}) });
  }

  owner(workspace: 'bind' | 'isolated' = 'bind'): CheckpointOwner {
    return {
      session: this.session,
      environment: environment(workspace),
      workspaceFolder: this.folder,
      record: async (drafts) => {
        this.drafts.push(...drafts);
        this.#seq += drafts.length;
      },
      log: () => {
        const last = this.checkpoints.at(-1);
        return {
          head: this.#seq - 1,
          forkedAt: -1,
          checkpoint: last ? { commit: last.commit, seq: -1 } : null,
          problem: this.problems.at(-1) ?? null,
          startedAfter: (seq) => this.started.filter((one) => one.seq > seq).map((one) => one.call),
        };
      },
    };
  }

  /** The same folder and log, as another process finds them. */
  restart(env?: NodeJS.ProcessEnv, workspace: 'bind' | 'isolated' = 'bind'): void {
    this.store = this.open(env);
    this.keeper = this.store.follow(this.owner(workspace));
  }

  get checkpoints(): Checkpoint[] {
    return this.drafts.flatMap(({ event }) => (event.type === 'drover.checkpoint' ? [event as Checkpoint] : []));
  }

  get problems(): string[] {
    return this.drafts.flatMap(({ event }) =>
      event.type === 'drover.checkpoint_failed' && 'message' in event ? [String(event.message)] : [],
    );
  }

  path(path: string): string {
    return join(this.folder, path);
  }

  async write(path: string, content: string | Buffer): Promise<void> {
    await mkdir(dirname(this.path(path)), { recursive: true });
    await writeFile(this.path(path), content);
  }

  /** A call that starts, does this, and is over; resolves when its checkpoint, if any, is in the log. */
  async call(act: () => Promise<unknown>): Promise<EventId> {
    const call = await this.begin();
    await act();
    await this.end(call);
    return call;
  }

  async begin(): Promise<EventId> {
    const call = mint.event();
    await this.keeper.before(call);
    this.started.push({ call, seq: this.#seq++ });
    return call;
  }

  async end(call: EventId): Promise<void> {
    this.keeper.after(call);
    await this.keeper.close();
  }

  /** Git as a user runs it in the folder, with no configuration but the repository's own. */
  async git(...args: string[]): Promise<string> {
    const env = {
      PATH: process.env.PATH,
      HOME: this.folder,
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_AUTHOR_NAME: 'User',
      GIT_AUTHOR_EMAIL: 'user@localhost',
      GIT_COMMITTER_NAME: 'User',
      GIT_COMMITTER_EMAIL: 'user@localhost',
    };
    return (await exec('git', args, { cwd: this.folder, env })).stdout;
  }

  /** Puts the files back to a checkpoint, as the command does once a person has agreed. */
  restore(commit: string, since: Checkpoint[] = []) {
    return this.store.restore({
      session: this.session,
      folder: this.folder,
      shared: true,
      commit,
      last: this.checkpoints.at(-1)?.commit ?? null,
      since: since.map((one) => ({ commit: one.commit, calls: one.tool_use_ids })),
    });
  }
}

/** What a checkpoint says became of each file. */
export const changesOf = (checkpoint: Checkpoint | undefined): Record<string, string> =>
  Object.fromEntries((checkpoint?.files ?? []).map(({ path, change }) => [path, change]));
