import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../../scripts/machine.mjs';
import { createEngine, type Engine } from '../../src/engine.ts';
import type { SessionStore } from '../../src/log/log.ts';
import { openStore } from '../../src/log/store.ts';
import { text } from '../../src/protocol/content.ts';
import type { Environment, EnvironmentConfig } from '../../src/protocol/environment.ts';
import { EnvironmentId, mint, type SessionId, type ThreadId } from '../../src/protocol/ids.ts';
import { draft } from '../../src/protocol/record.ts';
import { type Rehearsal, type RehearsalOptions, startRehearsal } from '../../src/rehearsal/server.ts';
import type { SandboxOwner } from '../../src/sandbox/sandbox.ts';
import { fold } from '../../src/session/fold.ts';
import { makeFolder } from '../support/temp.ts';

/** What a model takes for its first token here, ms: a common value of the real ones, at the quick end. */
export const FIRST_TOKEN_MS = 150;
export const MODEL = 'claude-sonnet-5-5';

export interface Turn {
  session: SessionId;
  primary: ThreadId;
}

export type Process = { store: SessionStore; engine: Engine };

/** Drover without an editor: the same engine that the extension starts, on a folder and a model server of its own. */
export class Rig {
  /** The workspace. */
  readonly folder: string;
  readonly #home: string;
  readonly server: Rehearsal;
  readonly store: SessionStore;
  readonly engine: Engine;

  private constructor(home: string, server: Rehearsal) {
    const folder = join(home, 'workspace');
    this.#home = home;
    this.folder = folder;
    this.server = server;
    const { store, engine } = this.#process();
    this.store = store;
    this.engine = engine;
  }

  /** What one process holds: a store and an engine over the same folder and server. */
  #process(): Process {
    const store = openStore({ root: join(this.folder, '.drover') });
    const engine = createEngine({
      store,
      workspaceFolder: this.folder,
      apiKey: async () => 'bench',
      baseUrl: () => this.server.url,
      dockerHost: '',
      cacheFolder: join(this.#home, 'cache'),
      rehearsalUrl: async () => this.server.url,
      devcontainerCli: join(root, 'dist/devcontainers-cli/devcontainer.js'),
      onProgress: () => {},
    });
    return { store, engine };
  }

  /** Measures as a process that has just started and knows nothing would. */
  async afresh(measure: (process: Process) => Promise<number>): Promise<number> {
    const { store, engine } = this.#process();
    try {
      return await measure({ store, engine });
    } finally {
      await engine.dispose();
      await store.dispose();
    }
  }

  /** Whose sandboxes are made, as the harness would say it. */
  async owner({ session }: Turn, { store }: Pick<Process, 'store'> = this): Promise<SandboxOwner> {
    const writer = await store.acquire(session, 'a benchmark');
    const { environment } = fold((await writer.read()).records);
    const record = async (drafts: Parameters<typeof writer.append>[0]) => void (await writer.append(drafts));
    return { session, environment, workspaceFolder: this.folder, record };
  }

  /** Makes a sandbox for a session that has none, measured by the caller; `remove` takes it away again. */
  async provisioner(turn: Turn, { store, engine }: Process = this) {
    const owner = await this.owner(turn, { store });
    return {
      make: () => engine.sandboxes.acquire(owner),
      remove: () => engine.sandboxes.remove(owner, 'measured'),
    };
  }

  /** @param server what the model server does other than answer at once with a few words */
  static async open(server: RehearsalOptions = {}): Promise<Rig> {
    const home = await makeFolder('drover-bench-');
    await mkdir(join(home, 'workspace'));
    const delays = { firstTokenMs: FIRST_TOKEN_MS, perChunkMs: 0 };
    return new Rig(home, await startRehearsal({ delays, models: [MODEL], scenario: 'say', ...server }));
  }

  async session(config: EnvironmentConfig): Promise<Turn> {
    const session = mint.session();
    const primary = mint.thread();
    const created = draft('drover.session_created', {
      session_id: session,
      primary_thread_id: primary,
      title: 'bench',
      agent: { name: 'Bench', model: MODEL, tools: [{ type: 'agent_toolset_20260401' }] },
      environment: environment(config),
      vault_ids: [],
      strategy: 'elide',
    });
    const writer = await this.store.create(session, [created]);
    await writer.release();
    return { session, primary };
  }

  /** Says something and resolves to the ms from the message's being in the log to the first streamed text. */
  async firstText({ session, primary }: Turn, said: string): Promise<number> {
    const writer = await this.store.acquire(session, 'a message was sent');
    const message = draft('user.message', { content: [text(said)] }, { thread: primary, queued: true });
    const { promise, resolve } = Promise.withResolvers<number>();
    const listening = this.engine.harness.onPreview((id, preview) => {
      if (id === session && preview.type === 'delta') resolve(performance.now());
    });
    try {
      await writer.append([message]);
      const started = performance.now();
      const rest = this.engine.harness.wake(session, 'a message was sent');
      const seen = await Promise.race([promise, rest.then(() => promise)]);
      await rest;
      return seen - started;
    } finally {
      listening.dispose();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine.sandboxes.reap(this.folder, new Set());
    await this.engine.dispose();
    await this.store.dispose();
    await this.server.close();
    await rm(this.#home, { recursive: true, force: true, maxRetries: 5 });
  }
}

function environment(config: EnvironmentConfig): Environment {
  const at = new Date().toISOString();
  const id = EnvironmentId.parse('env_bench');
  return { id, type: 'environment', name: 'bench', config, created_at: at, updated_at: at, archived_at: null };
}
