import { AppendFailed, LeaseLost, type SessionWriter } from '../log/log.ts';
import { text } from '../protocol/content.ts';
import { type Disposable, Disposables } from '../protocol/disposable.ts';
import { messageOf } from '../protocol/errors.ts';
import { EventId, type SandboxId, type SessionId, type ThreadId } from '../protocol/ids.ts';
import type { Preview } from '../protocol/panel.ts';
import { type Draft, draft, type LogRecord } from '../protocol/record.ts';
import type { CheckpointKeeper, SandboxOwner } from '../sandbox/sandbox.ts';
import { decide, nothingInHand, type Step } from '../session/decide.ts';
import { apply, fold } from '../session/fold.ts';
import { folded } from '../session/snapshot.ts';
import type { SessionState, ThreadState, ToolCall } from '../session/state.ts';
import { askModel } from './ask-model.ts';
import { keeperFor } from './checkpoints.ts';
import { closeCall, deliver, startChild } from './delegation.ts';
import { egressOwner } from './egress-owner.ts';
import type { HarnessDeps } from './harness.ts';
import { keepState } from './keep.ts';
import { applyInterrupt, closeRequest } from './mend.ts';
import { resultDraft } from './result.ts';
import { recoverTool, runTool } from './run-tool.ts';
import { Servers } from './servers.ts';
import { announceRunning, sessionIdle, threadIdle } from './statuses.ts';

/**
 * One session while this process works on it: `decide` over the folded log, do that, append, again.
 * Everything here can be thrown away at any moment; the log says where to go on.
 */
export class Awake {
  readonly deps: HarnessDeps;
  readonly id: SessionId;
  readonly preview: (preview: Preview) => void;
  readonly owner: SandboxOwner;
  readonly checkpoints: CheckpointKeeper | null;
  readonly servers: Servers;
  state: SessionState;

  readonly #writer: SessionWriter;
  readonly #threads = new Map<ThreadId, AbortController>();
  readonly #calls = new Map<EventId, AbortController>();
  readonly #running = new Set<Promise<void>>();
  readonly #requests = new Set<Promise<void>>();
  readonly #owned = new Disposables();
  #news = Promise.withResolvers<void>();
  #stopped = false;
  #broken: unknown = null;

  private constructor(
    deps: HarnessDeps,
    id: SessionId,
    writer: SessionWriter,
    state: SessionState,
    preview: (preview: Preview) => void,
  ) {
    this.deps = deps;
    this.id = id;
    this.#writer = writer;
    this.state = state;
    this.preview = deps.guard?.previews(preview) ?? preview;
    this.owner = {
      session: id,
      environment: state.environment,
      workspaceFolder: deps.workspaceFolder,
      record: async (drafts) => void (await this.append(drafts)),
      inUse: () => this.state.sandbox,
      lease: writer.fence,
      acting: () => acting(this.state),
      onProgress: (line) => deps.onProgress?.(id, line),
      egress: egressOwner(this),
    };
    this.checkpoints = keeperFor(this);
    this.servers = new Servers(this);
    this.#own(writer.onAppend((records) => this.#apply(records)));
    this.#own(writer.onLost(() => this.#break(new LeaseLost())));
  }

  /** Takes the lease and folds the log. Throws `LeaseHeld`. */
  static async open(
    deps: HarnessDeps,
    id: SessionId,
    why: string,
    preview: (preview: Preview) => void,
  ): Promise<Awake> {
    const writer = await deps.store.acquire(id, why);
    // What is appended while the log is read; a record that comes both ways counts once.
    const meanwhile: LogRecord[] = [];
    const listening = writer.onAppend((records) => meanwhile.push(...records));
    try {
      const state = await folded((version, into) => writer.scan(version, into));
      const awake = new Awake(deps, id, writer, state, preview);
      awake.#apply(meanwhile);
      return awake;
    } finally {
      listening.dispose();
    }
  }

  /** Works until nothing can go on without a person. Rejects if the log can't be written, or the lease is lost. */
  async run(): Promise<void> {
    try {
      while (!this.#stopped) {
        this.#abortInterrupted();
        const steps = decide(this.state, {
          threads: new Set(this.#threads.keys()),
          calls: new Set(this.#calls.keys()),
        });
        if (steps.length > 0) await this.#take(steps);
        else if (this.#running.size === 0) break;
        else await this.#wait();
      }
    } catch (error) {
      // After `stop` the log refuses everything: that is no fault.
      if (!this.#stopped) this.#break(error);
    }
    // Requests end at once; a command goes on in its sandbox, and the next harness to wake attaches to it.
    await Promise.allSettled(this.#stopped ? this.#requests : this.#running);
    if (!this.#stopped) await this.checkpoints?.close();
    if (!this.#stopped) await keepState(this.#writer, this.state);
    if (this.#broken) throw this.#broken;
  }

  /** True if the log asks for a step although `run` has ended. */
  hasNews(): boolean {
    return !this.#stopped && decide(this.state, nothingInHand).length > 0;
  }

  /** Hears of nothing any more. */
  close(): void {
    this.#owned.dispose();
  }

  /** Drops all work in this process; the log stays as it is, and so does what runs in the sandbox. */
  stop(): void {
    this.#stopped = true;
    for (const controller of this.#threads.values()) controller.abort();
    this.#news.resolve();
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  /** Appends and folds. Durable when it resolves, unless `sync` is false. After `stop` nothing is appended any more. */
  async append(drafts: readonly Draft[], options: { sync?: boolean } = {}): Promise<LogRecord[]> {
    if (this.#stopped) throw new LeaseLost();
    const records = await this.#writer.append(drafts, options);
    if (this.deps.alwaysRefold) this.state = fold((await this.#writer.read()).records);
    else this.#apply(records);
    return records;
  }

  /** The owner of a sandbox that is made for a thread: the records of its making say for which. */
  ownerFor(thread: ThreadId): SandboxOwner {
    const actor = { type: 'agent', thread } as const;
    const record = (drafts: Draft[]) =>
      this.owner.record(drafts.map((one) => ({ ...one, local: { actor, ...one.local } })));
    return { ...this.owner, record };
  }

  /** Throws `LeaseLost` where the session is not ours any more: asked directly before an act outside the log. */
  assertHeld(): void {
    this.#writer.assertHeld();
  }

  putBlob(bytes: Uint8Array, mediaType: string) {
    return this.#writer.putBlob(bytes, mediaType);
  }

  readRecords(): Promise<LogRecord[]> {
    return this.#writer.read().then((reading) => reading.records);
  }

  thread(id: ThreadId): ThreadState {
    const thread = this.state.threads.get(id);
    if (!thread) throw new TypeError(`No thread ${id} in this session.`);
    return thread;
  }

  call(id: EventId): ToolCall {
    const call = this.state.calls.get(id);
    if (!call) throw new TypeError(`No call ${id} in this session.`);
    return call;
  }

  toolbox(thread: ThreadState) {
    const depth = thread.parent === null ? 0 : 1;
    const { lifetime = 'session', workspace = 'bind' } = this.state.environment;
    const mcp = this.servers.tools(thread);
    return this.deps.toolbox({ agent: thread.agent, roster: this.state.roster, depth, lifetime, workspace, mcp });
  }

  #own(item: Disposable): void {
    this.#owned.add(item);
  }

  #apply(records: readonly LogRecord[]): void {
    for (const record of records) apply(this.state, record);
    this.#tellNews();
  }

  #tellNews(): void {
    this.#news.resolve();
  }

  async #wait(): Promise<void> {
    await this.#news.promise;
    this.#news = Promise.withResolvers();
  }

  #break(error: unknown): void {
    this.#broken ??= error;
    this.stop();
  }

  /** An interrupt jumps the queue: what its thread has in hand ends now, the rest is decided from the log. */
  #abortInterrupted(): void {
    for (const thread of this.state.threads.values()) {
      if (thread.interrupts.length === 0) continue;
      this.#threads.get(thread.id)?.abort();
      for (const id of thread.calls) this.#calls.get(id)?.abort();
    }
  }

  async #take(steps: Step[]): Promise<void> {
    const running = announceRunning(this.state, steps);
    if (running.length > 0) await this.append(running, { sync: false });
    for (const step of steps) {
      if (this.#stopped) return;
      await this.#start(step);
    }
  }

  /** Short steps are done here; long ones go on beside the loop, in hand until they end. */
  async #start(step: Step): Promise<void> {
    switch (step.type) {
      case 'request_model':
        return this.#beside(this.#threads, step.thread, step.thread, (signal) => askModel(this, step, signal));
      case 'run_tool':
        if (this.call(step.call).name === 'create_agent') return startChild(this, step);
        return this.#beside(this.#calls, step.call, step.thread, (signal) => runTool(this, step.call, signal));
      case 'recover_tool':
        if (this.call(step.call).name === 'create_agent') return startChild(this, step);
        return this.#beside(this.#calls, step.call, step.thread, (signal) => recoverTool(this, step.call, signal));
      case 'close_request':
        return closeRequest(this, step);
      case 'close_call':
        return closeCall(this, step);
      case 'deliver':
        return deliver(this, step);
      case 'apply_interrupt':
        return applyInterrupt(this, step);
      case 'idle_thread': {
        const thread = this.thread(step.thread);
        const error = step.error ? [draft('session.error', { error: step.error }, { thread: thread.id })] : [];
        await this.append([...error, threadIdle(thread, step.stop_reason)], { sync: false });
        return;
      }
      case 'idle_session':
        await this.append(sessionIdle(this.state, step.stop_reason, Date.now()));
    }
  }

  #beside<K extends ThreadId | EventId>(
    inHand: Map<K, AbortController>,
    key: K,
    thread: ThreadId,
    act: (signal: AbortSignal) => Promise<void>,
  ): void {
    const controller = new AbortController();
    inHand.set(key, controller);
    const done = act(controller.signal)
      .catch((error: unknown) => this.#failed(key, thread, error))
      .finally(() => {
        inHand.delete(key);
        this.#running.delete(done);
        this.#requests.delete(done);
        this.#tellNews();
      });
    this.#running.add(done);
    if (key === thread) this.#requests.add(done);
  }

  /**
   * A step that threw is a fault of ours, or of the disk. The log gets what ends the step, so that `decide` does not
   * ask for it again for ever; where the log can't be written, all work stops.
   */
  async #failed(key: ThreadId | EventId, thread: ThreadId, error: unknown): Promise<void> {
    if (this.#stopped) return;
    if (error instanceof AppendFailed || error instanceof LeaseLost) return this.#break(error);
    const message = `Drover's harness failed (${messageOf(error)}); the log is safe, send a message to go on.`;
    try {
      await this.append([
        key === thread ? gaveUp(thread, message) : resultUnknown(this.call(EventId.parse(key)), message),
      ]);
    } catch (second) {
      this.#break(second);
    }
  }
}

/** Where calls that have no result yet were started. */
function acting(state: SessionState): Set<SandboxId> {
  const open = [...state.calls.values()].filter((call) => !call.result);
  return new Set(open.flatMap(({ execution }) => execution?.sandbox ?? []));
}

const gaveUp = (thread: ThreadId, message: string): Draft =>
  draft(
    'session.error',
    { error: { type: 'unknown_error', message, retry_status: { type: 'exhausted' } } },
    { thread },
  );

const resultUnknown = (call: ToolCall, message: string): Draft =>
  resultDraft(call, { content: [text(message)], is_error: true }, { outcome: call.execution ? 'unknown' : 'failed' });
