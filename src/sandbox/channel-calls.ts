import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionId } from '../protocol/ids.ts';
import { type Channel, ChannelEnded, NotBegun } from './channel.ts';
import { ChannelOutput } from './channel-output.ts';
import { type Found, type Peeked, type RunRequest, type RunResult, SandboxLost } from './sandbox.ts';

const DEFAULT_MAX_BYTES = 256 * 1024;
/** A connection that breaks while sandbox and command live on is taken up again so often. */
const ATTEMPTS = 3;
/** ms. A sandbox that can have no more processes is asked for so long whether it can again, and so often. */
const FORK_MS = 5000;
const FORK_AGAIN_MS = 200;
/** Bytes of a path that goes into one line. */
const PATH_BYTES = 1000;

interface Watch {
  signal: AbortSignal;
  onOutput?: ((chunk: Uint8Array) => void) | undefined;
  maxBytes?: number | undefined;
  /** `performance.now()` at which it has to be ended. */
  until?: number;
}

/**
 * The calls of one sandbox over one channel after the other: when a channel breaks off, what ran over it is looked up
 * over a fresh one. What `open` throws, because the sandbox is gone, is thrown to whoever waits.
 */
export class ChannelCalls {
  readonly #workspace: string;
  readonly #open: () => Promise<Channel>;
  #channel: Promise<Channel> | undefined;
  #closed = false;

  constructor(workspace: string, open: () => Promise<Channel>) {
    this.#workspace = workspace;
    this.#open = open;
  }

  async run(request: RunRequest): Promise<RunResult> {
    const { executionId, signal, onOutput, maxBytes, timeoutMs } = request;
    const output = new ChannelOutput(half(maxBytes), onOutput);
    if (signal.aborted) return output.result('cancelled', null, 0);
    const until = performance.now() + timeoutMs;
    const patience = Math.min(until, performance.now() + FORK_MS);
    let refused: NotBegun | undefined;
    for (let attempt = 1; attempt <= ATTEMPTS; ) {
      const channel = await this.#alive();
      try {
        return await channel.run(request, { output, signal, timeoutMs, cwd: request.cwd ?? this.#workspace });
      } catch (error) {
        if (error instanceof NotBegun && error.why === 'fork' && performance.now() < patience && !signal.aborted) {
          // What took all the processes may be about to end.
          refused = error;
          await sleep(FORK_AGAIN_MS);
          continue;
        }
        if (error instanceof NotBegun && error.why === 'decided' && attempt > 1) break;
        if (error instanceof NotBegun) return notBegun(error.why === 'decided' && refused ? refused : error);
        if (!(error instanceof ChannelEnded)) throw error;
        attempt++;
        // Whether it had begun nobody knows: a second request for the same execution begins it, or finds it begun.
      }
    }
    return await this.#takeUp(executionId, { signal, onOutput, maxBytes, until }, output);
  }

  async lookup(executionId: ExecutionId, maxBytes?: number): Promise<Found> {
    const found = await this.#anew((channel) => channel.look(executionId));
    if (found === 'absent') return { found };
    const nobody = new AbortController().signal;
    if (found === 'finished') {
      const watch: Watch = { signal: nobody, maxBytes };
      return { found, result: await this.#watch(executionId, watch) };
    }
    return {
      found,
      wait: (signal, onOutput) => this.#watch(executionId, { signal, onOutput, maxBytes }),
    };
  }

  async peek(path: string, maxBytes: number, signal: AbortSignal): Promise<Peeked | null> {
    // These would not survive being a part of a line.
    const odd = /[^\x20-\x7e\u{a0}-\u{10ffff}]|\\| {2}| $|\/$/u.test(path);
    if (signal.aborted || odd || !path.startsWith('/') || Buffer.byteLength(path) > PATH_BYTES) return null;
    return await this.#anew((channel) => channel.peek(path, maxBytes));
  }

  /** Ends the connection for good, not the commands. Who waits for one gets `SandboxLost`. */
  close(): void {
    this.#closed = true;
    const channel = this.#channel;
    this.#channel = undefined;
    channel?.then(
      (one) => one.close(),
      () => undefined,
    );
  }

  /** The channel that is open, or a new one, opened once however many ask. */
  async #alive(): Promise<Channel> {
    if (this.#closed)
      throw new SandboxLost(
        'The connection to the sandbox was closed; what runs in it goes on until its time is over.',
      );
    const known = this.#channel;
    if (known && !(await known.catch(() => undefined))?.ended) return await known;
    if (this.#channel === known) {
      const opening = this.#open();
      this.#channel = opening;
      opening.catch(() => {
        if (this.#channel === opening) this.#channel = undefined;
      });
    }
    return await this.#alive();
  }

  /** A question that may be asked again if the channel breaks off over it. */
  async #anew<T>(ask: (channel: Channel) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const channel = await this.#alive();
      try {
        return await ask(channel);
      } catch (error) {
        if (!(error instanceof ChannelEnded) || attempt === ATTEMPTS) throw error;
      }
    }
  }

  /** Waits for a command that is known to have begun. */
  async #watch(executionId: ExecutionId, watch: Watch): Promise<RunResult> {
    const output = new ChannelOutput(half(watch.maxBytes), watch.onOutput);
    const channel = await this.#alive();
    try {
      return await channel.watch(executionId, { output, signal: watch.signal });
    } catch (error) {
      if (!(error instanceof ChannelEnded)) throw error;
      return await this.#takeUp(executionId, watch, output);
    }
  }

  /** The channel broke off under a command that had begun: what became of it is asked over a fresh one. */
  async #takeUp(executionId: ExecutionId, watch: Watch, before: ChannelOutput): Promise<RunResult> {
    let heard = before;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      try {
        const channel = await this.#alive();
        if ((await channel.look(executionId)) === 'absent') break;
        const output = new ChannelOutput(half(watch.maxBytes), watch.onOutput, heard);
        heard = output;
        const timeoutMs = watch.until === undefined ? undefined : Math.max(0, watch.until - performance.now());
        return await channel.watch(executionId, { output, signal: watch.signal, timeoutMs });
      } catch (error) {
        if (!(error instanceof ChannelEnded)) throw error;
      }
    }
    return heard.result('lost', null, 0);
  }
}

const half = (maxBytes: number | undefined): number => Math.ceil((maxBytes ?? DEFAULT_MAX_BYTES) / 2);

/** A command that could not be begun has failed, for a reason a model can do something about. */
function notBegun({ why }: NotBegun): RunResult {
  const words = {
    full: 'The command was not begun: its input and output could not be kept in the sandbox, whose /tmp is full or write-protected.',
    fork: 'The command was not begun: the sandbox can have no more processes. End some that are not needed.',
    decided: 'The command was not begun: the session was taken over meanwhile.',
  };
  const stderr = new TextEncoder().encode(`${words[why]}\n`);
  return { ended: 'exited', exitCode: 126, stdout: new Uint8Array(), stderr, cutBytes: 0, durationMs: 0 };
}
