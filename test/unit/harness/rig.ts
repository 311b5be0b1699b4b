import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createAnthropicClient } from '../../../src/harness/anthropic.ts';
import { createHarness, type Harness, type HarnessDeps } from '../../../src/harness/harness.ts';
import type { SessionStore } from '../../../src/log/log.ts';
import { openStore } from '../../../src/log/store.ts';
import { createPolicy } from '../../../src/policy/policy.ts';
import { text } from '../../../src/protocol/content.ts';
import type { AgentSnapshot } from '../../../src/protocol/drover-event.ts';
import type { EnvironmentConfig } from '../../../src/protocol/environment.ts';
import type { EventId, SessionId, VaultId } from '../../../src/protocol/ids.ts';
import { mint } from '../../../src/protocol/ids.ts';
import { type Draft, draft, type LogRecord } from '../../../src/protocol/record.ts';
import type { Rule } from '../../../src/protocol/rule.ts';
import { type Rehearsal, type RehearsalOptions, startRehearsal } from '../../../src/rehearsal/server.ts';
import type { SandboxProvider } from '../../../src/sandbox/sandbox.ts';
import { fold, pendingApprovals } from '../../../src/session/fold.ts';
import type { SessionState } from '../../../src/session/state.ts';
import { createMcp, type HubOptions } from '../../../src/tools/mcp/hub.ts';
import type { Mcp } from '../../../src/tools/mcp.ts';
import { createToolbox } from '../../../src/tools/toolbox.ts';
import { eventually } from '../../support/eventually.ts';
import { ProcessSandboxes } from '../../support/process-sandbox.ts';

export interface RigOptions {
  rehearsal?: RehearsalOptions;
  agent?: Partial<AgentSnapshot>;
  deps?: Partial<HarnessDeps>;
  apiKey?: string | undefined;
  budgetUsd?: number;
  rules?: Rule[];
  /** MCP servers can be used, through a client that dies with the harness. */
  mcp?: Omit<HubOptions, 'version'>;
  vaultIds?: VaultId[];
  /** Default: the sandbox of the operating system. */
  config?: EnvironmentConfig;
}

const AGENT: AgentSnapshot = {
  name: 'Tester',
  model: 'drover-rehearsal',
  tools: [{ type: 'agent_toolset_20260401' }],
  multiagent: { type: 'coordinator', agents: [{ type: 'self' }] },
};

/** A whole brain on real parts: the real log on disk, the real SDK over HTTP, real tools. Only the hands are plain processes. */
export class Rig {
  readonly folder: string;
  readonly rehearsal: Rehearsal;
  readonly sandboxes = new ProcessSandboxes();
  readonly session: SessionId = mint.session();
  readonly primary = mint.thread();
  readonly #options: RigOptions;
  readonly #owned: SessionStore[] = [];
  readonly #clients: Mcp[] = [];
  store: SessionStore;
  harness: Harness;

  private constructor(folder: string, rehearsal: Rehearsal, options: RigOptions) {
    this.folder = folder;
    this.rehearsal = rehearsal;
    this.#options = options;
    this.store = this.openStore();
    this.harness = this.openHarness();
  }

  static async open(options: RigOptions = {}): Promise<Rig> {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'drover-rig-')));
    const rehearsal = await startRehearsal(options.rehearsal);
    const rig = new Rig(folder, rehearsal, options);
    onTestFinished(async () => {
      await rig.harness.dispose();
      for (const client of rig.#clients) await client.dispose();
      for (const store of [rig.store, ...rig.#owned]) await store.dispose();
      await rehearsal.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    });
    return rig;
  }

  /** Drops everything this process holds, as a crash would, and starts over from the disk. */
  async restart(): Promise<void> {
    await this.harness.dispose();
    await this.store.dispose();
    this.store = this.openStore();
    this.harness = this.openHarness();
  }

  /**
   * Wakes the session, and lets this process's life end where `last` says, as if it had been killed there: nothing of it
   * reaches the log, the model or the sandbox any more, and no answer reaches it. What runs in the sandbox goes on.
   * Then starts over from the disk.
   * @returns false if the session was at rest before that
   */
  async cutOff(last: LastAct): Promise<boolean> {
    await this.store.dispose();
    const life = new Life(last);
    const store = openStore({ root: join(this.folder, '.drover'), holder: { pid: NO_PROCESS, host: hostname() } });
    this.#owned.push(store);
    const hands = new ProcessSandboxes(this.sandboxes.alive);
    const sandboxes = life.limit<SandboxProvider>(hands, ['acquire', 'attach']);
    const dying = this.openHarness({ store: life.limit(store, ['acquire']), sandboxes });
    const resting = dying.wake(this.session, 'a life that ends').then(() => false);
    const cut = await Promise.race([life.ended.then(() => true), resting]);
    if (!cut) await store.dispose();
    this.store = this.openStore();
    this.harness = this.openHarness();
    return cut;
  }

  openStore(): SessionStore {
    return openStore({ root: join(this.folder, '.drover') });
  }

  openHarness(deps: Partial<HarnessDeps> = {}): Harness {
    const client = createAnthropicClient({
      apiKey: async () => ('apiKey' in this.#options ? this.#options.apiKey : 'test-key'),
      baseUrl: () => this.rehearsal.url,
    });
    const mcp = this.#options.mcp && createMcp({ version: 'test', ...this.#options.mcp });
    if (mcp) this.#clients.push(mcp);
    return createHarness({
      store: this.store,
      workspaceFolder: this.folder,
      modelFor: () => client,
      toolbox: ({ agent, roster, depth, mcp }) => createToolbox({ agent, roster: [...roster], depth, mcp }),
      ...(mcp ? { mcp } : {}),
      sandboxes: this.sandboxes,
      policy: createPolicy(),
      alwaysRefold: true,
      retryBaseMs: 5,
      ...this.#options.deps,
      ...deps,
    });
  }

  /** Makes the session with its first message; wakes nobody. */
  async create(task: string): Promise<void> {
    const created = draft('drover.session_created', {
      session_id: this.session,
      primary_thread_id: this.primary,
      title: task.slice(0, 40),
      agent: { ...AGENT, ...this.#options.agent },
      environment: {
        id: mint.environment(),
        type: 'environment',
        name: 'Processes',
        config: this.#options.config ?? { type: 'os' },
        created_at: '2026-01-01T00:00:00.000Z',
        updated_at: '2026-01-01T00:00:00.000Z',
        archived_at: null,
      },
      vault_ids: this.#options.vaultIds ?? [],
      ...(this.#options.rules ? { rules: this.#options.rules } : {}),
      strategy: 'elide',
      budget_usd: this.#options.budgetUsd ?? null,
    });
    await this.store.create(this.session, [created, this.message(task)]);
  }

  /** Starts a session with this task and works until it rests. */
  async run(task: string): Promise<SessionState> {
    await this.create(task);
    await this.harness.wake(this.session, 'a test');
    return this.state();
  }

  message(words: string): Draft {
    return draft('user.message', { content: [text(words)] }, { thread: this.primary, queued: true });
  }

  async append(...drafts: Draft[]): Promise<void> {
    await (await this.store.acquire(this.session, 'a test')).append(drafts);
  }

  /** Says something more and works until the session rests. */
  async say(words: string): Promise<SessionState> {
    await this.append(this.message(words));
    await this.harness.wake(this.session, 'a test');
    return this.state();
  }

  async answer(call: EventId, result: 'allow' | 'deny', more: { deny_message?: string } = {}): Promise<SessionState> {
    const { thread } = (await this.state()).calls.get(call) ?? { thread: this.primary };
    await this.append(draft('user.tool_confirmation', { tool_use_id: call, result, ...more }, { thread }));
    await this.harness.wake(this.session, 'a test');
    return this.state();
  }

  /** Allows everything that asks until nothing does. */
  async allowAll(): Promise<SessionState> {
    for (let rounds = 0; rounds < 50; rounds += 1) {
      const [call] = pendingApprovals(await this.state());
      if (!call) break;
      await this.answer(call.id, 'allow');
    }
    return this.state();
  }

  async records(): Promise<LogRecord[]> {
    return (await this.store.read(this.session)).records;
  }

  async state(): Promise<SessionState> {
    return fold(await this.records());
  }

  async until(what: string, holds: (state: SessionState) => boolean): Promise<SessionState> {
    return eventually(what, 30_000, async () => {
      const state = await this.state();
      return holds(state) ? state : undefined;
    });
  }

  async types(): Promise<string[]> {
    return (await this.records()).map((record) => record.event.type);
  }
}

/** Where a life ends: right before the n-th batch is handed to the log, or right after it is on the disk. From 1. */
export interface LastAct {
  n: number;
  when: 'before' | 'after';
}

/** No process has so high a number. */
const NO_PROCESS = 2 ** 22 + 1;

/** What a process can do as long as it lives. */
class Life {
  readonly #last: LastAct;
  readonly #end = Promise.withResolvers<void>();
  #isOver = false;
  readonly #appends = { before: 0, after: 0 };

  constructor(last: LastAct) {
    this.#last = last;
  }

  get ended(): Promise<void> {
    return this.#end.promise;
  }

  /** The same part, that does nothing and never answers once life is over; so is what the named methods bring. */
  limit<T extends object>(part: T, bring: readonly string[] = []): T {
    return new Proxy(part, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]): unknown => {
          if (name === 'append') this.#reach('before');
          if (this.#isOver) return never;
          const result: unknown = Reflect.apply(value, target, args);
          return result instanceof Promise ? this.#answer(result, name, bring) : result;
        };
      },
    });
  }

  async #answer(result: Promise<unknown>, name: string | symbol, bring: readonly string[]): Promise<unknown> {
    const answer = await result;
    if (name === 'append') this.#reach('after');
    if (this.#isOver) return never;
    return bring.includes(String(name)) && answer instanceof Object ? this.limit(answer) : answer;
  }

  #reach(when: LastAct['when']): void {
    this.#appends[when] += 1;
    if (this.#appends[when] !== this.#last.n || this.#last.when !== when) return;
    this.#isOver = true;
    this.#end.resolve();
  }
}

const never = new Promise<never>(() => undefined);

/** What the agent said last. */
export function lastMessage(state: SessionState): string {
  const blocks = state.threads.get(state.primary)?.last?.blocks ?? [];
  return blocks
    .flatMap((block) => (block.type === 'message' ? block.content : []))
    .map((block) => (block.type === 'text' ? block.text : ''))
    .join('');
}
