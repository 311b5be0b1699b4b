import type { ExecutionId, SandboxId } from '../../protocol/ids.ts';
import { filledIn } from '../fill-in.ts';
import type { LivingSandbox } from '../hands.ts';
import { withCare } from '../living.ts';
import {
  type Found,
  type LivingProcess,
  type OpenRequest,
  type Peeked,
  ProcessGone,
  type RunRequest,
  type RunResult,
} from '../sandbox.ts';

/** A sandbox in a running container. `close` ends its connection to the container without calling that a loss. */
export interface RunningSandbox extends LivingSandbox {
  close?(reason?: string): void;
  stopOpened?(reason: string): Promise<void>;
}

/** What a container's sandbox needs done around its calls. */
export interface Keeper {
  /** Whether what the container must not write to is still covered. Asked before each call: it has to be quick. */
  guarded(): boolean;
  /** Variables of one call, beside the container's own. */
  env(execution: ExecutionId): Readonly<Record<string, string>>;
  /** What a program that stays does from now on, it does for a call. Returns how to say that it is over. */
  actFor(server: ExecutionId, call: ExecutionId): (() => void) | undefined;
  /** Resolves when the ledger has what the call did. */
  ran(execution: ExecutionId): Promise<void>;
  /** Starts the container, again if it runs, with its mounts made anew. Throws `SandboxLost`. */
  revive(): Promise<RunningSandbox>;
  stop(): Promise<void>;
  /** Brings the person's newer files in before a call, the sandbox's out after it. */
  before?(running: RunningSandbox): Promise<void>;
  after?(running: RunningSandbox): Promise<void>;
}

/**
 * A container's sandbox with what has to be true around each call: the guard rails hold, and a container that was
 * stopped because nobody used it runs again.
 */
export class KeptSandbox implements LivingSandbox {
  readonly kind = 'container';
  readonly id: SandboxId;
  readonly workspace: string;
  readonly #keeper: Keeper;
  #running: RunningSandbox | undefined;
  #waking: Promise<RunningSandbox> | undefined;
  #lost = false;
  /** Calls that act in the container now, and who waits for them to end. */
  #acting = 0;
  #whenQuiet: (() => void)[] = [];
  #lastUse = performance.now();

  /** `running` undefined: the container is stopped, and is started by the first call. */
  constructor(of: { id: SandboxId; workspace: string; running: RunningSandbox | undefined; keeper: Keeper }) {
    this.id = of.id;
    this.workspace = of.workspace;
    this.#running = of.running;
    this.#keeper = of.keeper;
  }

  get lost(): boolean {
    return this.#lost || this.#running?.lost === true;
  }

  /** ms since its last call ended; 0 while one acts; undefined if its container is stopped. */
  get idleMs(): number | undefined {
    if (this.#acting > 0 || this.#waking) return 0;
    return this.#running && !this.lost ? performance.now() - this.#lastUse : undefined;
  }

  async run(request: RunRequest): Promise<RunResult> {
    const env = { ...this.#keeper.env(request.executionId), ...request.env };
    const result = await this.#around((running) => running.run({ ...request, env }));
    await this.#keeper.ran(request.executionId);
    return result;
  }

  async peek(path: string, maxBytes: number, signal: AbortSignal): Promise<Peeked | null> {
    return await this.#around(async (running) => (await running.peek?.(path, maxBytes, signal)) ?? null);
  }

  async lookup(executionId: ExecutionId, maxBytes?: number): Promise<Found> {
    const found = await this.#around((running) => running.lookup(executionId, maxBytes));
    if (found.found !== 'running') return found;
    return { found: 'running', wait: (signal, onOutput) => this.#around(() => found.wait(signal, onOutput)) };
  }

  async open(request: OpenRequest): Promise<LivingProcess> {
    const filled = filledIn(request, this.#keeper.env(request.executionId));
    return await this.#around(async (running) => {
      const process = await running.open(filled);
      return withCare(process, (act, call) => this.#during(running, process, act, call));
    });
  }

  /** Ends what was opened and the connection to the container, not the commands that run in it. Never throws. */
  async close(): Promise<void> {
    await this.#running?.stopOpened?.('Drover was closed');
    this.#running?.close?.();
  }

  /** Stops the container if nothing acts in it: its files stay, its processes end. */
  async rest(): Promise<void> {
    const running = this.#running;
    if (!running || this.#acting > 0 || this.#waking) return;
    this.#running = undefined;
    running.close?.('its sandbox was stopped because nobody used it');
    await this.#keeper.stop();
  }

  async #during<T>(
    running: RunningSandbox,
    process: LivingProcess,
    act: () => Promise<T>,
    call: ExecutionId = process.executionId,
  ): Promise<T> {
    // One that has ended wakes no container.
    if (process.end) throw new ProcessGone(process.end);
    const over = this.#keeper.actFor(process.executionId, call);
    try {
      return await this.#around(async (now) => {
        if (process.end || now !== running) throw new ProcessGone(process.end ?? (await process.ended));
        return await act();
      });
    } finally {
      await this.#keeper.ran(call);
      over?.();
    }
  }

  async #around<T>(act: (running: RunningSandbox) => Promise<T>): Promise<T> {
    const running = await this.#awake();
    this.#acting += 1;
    try {
      await this.#keeper.before?.(running);
      try {
        return await act(running);
      } finally {
        if (!running.lost) await this.#keeper.after?.(running);
      }
    } finally {
      this.#acting -= 1;
      this.#lastUse = performance.now();
      if (this.#acting === 0) for (const go of this.#whenQuiet.splice(0)) go();
    }
  }

  /** The running container's sandbox, started or made safe again if need be. One that was lost says so itself. */
  #awake(): Promise<RunningSandbox> {
    if (this.#waking) return this.#waking;
    const running = this.#running;
    if (running && (running.lost || this.#keeper.guarded())) return Promise.resolve(running);
    this.#waking = this.#revive().finally(() => {
      this.#waking = undefined;
    });
    return this.#waking;
  }

  async #revive(): Promise<RunningSandbox> {
    // A command under way keeps its container; nothing new starts in it.
    if (this.#acting > 0) await new Promise<void>((resolve) => this.#whenQuiet.push(resolve));
    this.#running?.close?.('its sandbox had to be started again');
    try {
      this.#running = await this.#keeper.revive();
      return this.#running;
    } catch (error) {
      this.#lost = true;
      throw error;
    }
  }
}
