import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { messageOf } from '../../protocol/errors.ts';
import type { ExecutionId, SandboxId } from '../../protocol/ids.ts';
import { Collector } from '../collect.ts';
import type { LivingSandbox } from '../hands.ts';
import { NO_TERMINAL } from '../no-terminal.ts';
import { followArgv, lookArgv, type RunnerCall, runArgv, stopArgv } from '../runner.ts';
import { type Found, type RunRequest, type RunResult, SandboxLost } from '../sandbox.ts';
import { reasonOf, statusOf } from './client.ts';
import { demultiplexer } from './demultiplex.ts';

/** Each user of the container has a folder of its own for the runs: none may write into another's. */
const baseOf = (user: string | undefined): string => `/tmp/.drover${user ? `-${user.replace(/\W/g, '-')}` : ''}`;
const DEFAULT_MAX_BYTES = 256 * 1024;
/** The runner inside enforces the timeout; if nothing is heard so long after it, we enforce it from here. */
const GRACE_MS = 10_000;
/** A stream that breaks while container and command live on is taken up again so often. */
const REATTACH = 3;

export interface ContainerOptions {
  id: SandboxId;
  container: Docker.Container;
  workspace: string;
  /** User inside, as `docker exec -u` takes it; absent = the image's own. */
  user?: string;
  env: Readonly<Record<string, string>>;
  /** Called once, before the first `SandboxLost` is thrown. */
  onLost: (reason: string) => Promise<void>;
}

/** A sandbox in a running container. One `exec` per call: two round trips to the engine. */
export class ContainerSandbox implements LivingSandbox {
  readonly kind = 'container';
  readonly id: SandboxId;
  readonly workspace: string;
  readonly #options: ContainerOptions;
  #lost: string | undefined;

  constructor(options: ContainerOptions) {
    this.id = options.id;
    this.workspace = options.workspace;
    this.#options = options;
  }

  /** It was seen to be gone. */
  get lost(): boolean {
    return this.#lost !== undefined;
  }

  async run(request: RunRequest): Promise<RunResult> {
    const call = callOf(baseOf(this.#options.user), request.executionId, request.maxBytes);
    if (request.signal.aborted) return nothing('cancelled');
    const collector = new Collector(call, request.onOutput);
    const stop = this.#stopper(call, request);
    try {
      const env = { ...this.#options.env, ...request.env };
      const argv = runArgv(call, request, request.cwd ?? this.workspace);
      await this.#talk(argv, collector, { env, ...(request.stdin ? { stdin: request.stdin } : {}) });
      return await this.#result(call, collector, request.onOutput);
    } finally {
      stop();
    }
  }

  async lookup(executionId: ExecutionId): Promise<Found> {
    const call = callOf(baseOf(this.#options.user), executionId, undefined);
    const collector = new Collector(call);
    await this.#talk(lookArgv(call), collector, {});
    const { last } = collector;
    if (last === 'running')
      return { found: 'running', wait: (signal, onOutput) => this.#wait(executionId, signal, onOutput) };
    if (last === undefined || last === 'absent') return { found: 'absent' };
    return { found: 'finished', result: collector.result(last) };
  }

  async #wait(id: ExecutionId, signal: AbortSignal, onOutput?: (chunk: Uint8Array) => void): Promise<RunResult> {
    const call = callOf(baseOf(this.#options.user), id, undefined);
    const collector = new Collector(call, onOutput);
    const stop = this.#stopper(call, { signal });
    try {
      await this.#talk(followArgv(call), collector, {});
      return await this.#result(call, collector, onOutput);
    } finally {
      stop();
    }
  }

  /** The end of an execution; a stream that broke off is taken up again as long as container and command live. */
  async #result(call: RunnerCall, first: Collector, onOutput?: (chunk: Uint8Array) => void): Promise<RunResult> {
    let collector = first;
    for (let attempt = 0; attempt < REATTACH && typeof collector.last !== 'object'; attempt++) {
      await this.#assertRunning();
      collector = new Collector(call, onOutput);
      await this.#talk(followArgv(call), collector, {});
    }
    if (typeof collector.last === 'object') return collector.result(collector.last);
    await this.#assertRunning();
    // Nobody is left to write the end down: the command killed its own runner, as `kill -9 -1` does.
    return collector.killed();
  }

  /** Ends the process group on abort, or if the runner's own timeout does not show. Returns how to call that off. */
  #stopper(call: RunnerCall, request: { signal: AbortSignal; timeoutMs?: number }): () => void {
    const stop = (ended: 'cancelled' | 'timed_out') => {
      // If this fails the container is gone, which the waiting stream learns by itself.
      this.#talk(stopArgv(call, ended), new Collector(call), {}).catch(() => {});
    };
    const onAbort = () => stop('cancelled');
    request.signal.addEventListener('abort', onAbort, { once: true });
    const late =
      request.timeoutMs === undefined ? undefined : setTimeout(() => stop('timed_out'), request.timeoutMs + GRACE_MS);
    return () => {
      request.signal.removeEventListener('abort', onAbort);
      clearTimeout(late);
    };
  }

  /** Runs the runner once and feeds the collector until it is complete or the stream ends. */
  async #talk(argv: string[], collector: Collector, more: { stdin?: Uint8Array; env?: Record<string, string> }) {
    const stream = await this.#exec(argv, more);
    await new Promise<void>((resolve) => {
      const split = demultiplexer((kind, chunk) => {
        if (collector.add(kind, chunk)) resolve();
      });
      stream.on('data', split);
      // The engine may vanish with an error, with `end`, or with `close` alone: none of them says how it ended.
      for (const event of ['end', 'close', 'error']) stream.once(event, () => resolve());
      if (more.stdin?.byteLength) stream.write(more.stdin);
    });
    stream.on('error', () => {});
    stream.destroy();
  }

  async #exec(argv: string[], more: { stdin?: Uint8Array; env?: Record<string, string> }): Promise<Duplex> {
    if (this.#lost) throw lostError(this.#lost);
    const attachStdin = Boolean(more.stdin?.byteLength);
    try {
      const exec = await this.#options.container.exec({
        Cmd: argv,
        AttachStdin: attachStdin,
        AttachStdout: true,
        AttachStderr: true,
        Tty: false,
        Env: Object.entries({ ...NO_TERMINAL, ...more.env }).map(([name, value]) => `${name}=${value}`),
        ...(this.#options.user ? { User: this.#options.user } : {}),
      });
      return await exec.start({ hijack: true, stdin: attachStdin });
    } catch (error) {
      const status = statusOf(error);
      // 404 gone, 409 stopped or paused, 500 not running; no status: the engine itself is gone.
      if (status === undefined || [404, 409, 500].includes(status)) throw await this.#lose(reasonOf(error), error);
      throw error;
    }
  }

  async #assertRunning(): Promise<void> {
    let state: { Running: boolean; ExitCode: number; OOMKilled: boolean };
    try {
      state = (await this.#options.container.inspect()).State;
    } catch (error) {
      throw await this.#lose(
        statusOf(error) === 404 ? 'its container was removed' : `the container engine stopped answering`,
        error,
      );
    }
    if (state.Running) return;
    throw await this.#lose(
      state.OOMKilled ? 'its container ran out of memory' : `its container ended with code ${state.ExitCode}`,
    );
  }

  async #lose(reason: string, cause?: unknown): Promise<SandboxLost> {
    if (this.#lost === undefined) {
      this.#lost = reason;
      await this.#options.onLost(reason);
    }
    return lostError(this.#lost, cause);
  }
}

const lostError = (reason: string, cause?: unknown): SandboxLost =>
  new SandboxLost(
    `The sandbox was lost (${reason}); the next call gets a fresh one.`,
    cause === undefined ? undefined : { cause: messageOf(cause) },
  );

function callOf(base: string, executionId: ExecutionId, maxBytes: number | undefined): RunnerCall {
  const half = Math.ceil((maxBytes ?? DEFAULT_MAX_BYTES) / 2);
  return { base, executionId, nonce: randomBytes(12).toString('hex'), head: half, tail: half };
}

const nothing = (ended: 'cancelled'): RunResult => ({
  ended,
  exitCode: null,
  stdout: new Uint8Array(),
  stderr: new Uint8Array(),
  cutBytes: 0,
  durationMs: 0,
});
