import type Docker from 'dockerode';
import { messageOf } from '../../protocol/errors.ts';
import { type ExecutionId, mint, type SandboxId } from '../../protocol/ids.ts';
import { Channel, ChannelEnded } from '../channel.ts';
import { ChannelCalls } from '../channel-calls.ts';
import { channelArgv } from '../channel-program.ts';
import type { LivingSandbox } from '../hands.ts';
import { type Living, LivingSet } from '../living.ts';
import { endArgv, openArgv, sweepArgv } from '../living-program.ts';
import { NO_TERMINAL } from '../no-terminal.ts';
import {
  type Found,
  type LivingProcess,
  type OpenRequest,
  type Peeked,
  type RunRequest,
  type RunResult,
  SandboxLost,
} from '../sandbox.ts';
import { reasonOf, statusOf } from './client.ts';
import { execConnection } from './exec-connection.ts';
import { livingExec } from './living-exec.ts';

/** ms that it may take to end what runs in the background. */
const END_MS = 10_000;

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

/** A sandbox in a running container. One `exec` carries all calls; it is made anew if it breaks off. */
export class ContainerSandbox implements LivingSandbox {
  readonly kind = 'container';
  readonly id: SandboxId;
  readonly workspace: string;
  readonly #options: ContainerOptions;
  readonly #calls: ChannelCalls;
  /** What was opened and has not ended. */
  readonly #living = new LivingSet<Living>();
  #lost: string | undefined;

  constructor(options: ContainerOptions) {
    this.id = options.id;
    this.workspace = options.workspace;
    this.#options = options;
    this.#calls = new ChannelCalls(options.workspace, () => this.#open());
  }

  /** It was seen to be gone. */
  get lost(): boolean {
    return this.#lost !== undefined;
  }

  run(request: RunRequest): Promise<RunResult> {
    return this.#calls.run(request);
  }

  lookup(executionId: ExecutionId, maxBytes?: number): Promise<Found> {
    return this.#calls.lookup(executionId, maxBytes);
  }

  peek(path: string, maxBytes: number, signal: AbortSignal): Promise<Peeked | null> {
    return this.#calls.peek(path, maxBytes, signal);
  }

  async open({ executionId, argv, cwd = this.workspace, env = {} }: OpenRequest): Promise<LivingProcess> {
    const { container } = this.#options;
    const { exec, stream } = await this.#exec(openArgv(this.#base, { executionId, cwd, argv }), env);
    const kill = () => this.#end(endArgv(this.#base, executionId));
    return this.#living.add(livingExec({ executionId, container, exec, stream, kill }));
  }

  /** Ends what was opened. Never throws. */
  stopOpened(reason: string): Promise<void> {
    return this.#living.stop(reason);
  }

  /** Ends what a process that is no more has opened. What can't be ended now the next one tries again. */
  async endLeft(): Promise<void> {
    await this.#end(sweepArgv(this.#base)).catch(() => undefined);
  }

  /**
   * Ends the connection for good, not the commands; to whoever waits for one that is no loss that is told. What was
   * opened has no connection any more, so it ends.
   */
  close(reason = 'the connection to its sandbox was closed'): void {
    for (const living of this.#living) living.finish({ how: 'stopped', exitCode: null, reason });
    this.#calls.close();
  }

  /** Each user of the container has a folder of its own for the runs: none may write into another's. */
  get #base(): string {
    const { user } = this.#options;
    return `/tmp/.drover${user ? `-${user.replace(/\W/g, '-')}` : ''}`;
  }

  async #end(argv: readonly string[]): Promise<void> {
    const signal = AbortSignal.timeout(END_MS);
    await this.run({ executionId: mint.execution(), argv, cwd: '/', timeoutMs: END_MS, signal });
  }

  async #open(): Promise<Channel> {
    const { stream } = await this.#exec(channelArgv(this.#base, this.workspace), {});
    const channel = new Channel(execConnection(stream), () => this.#paused());
    try {
      await channel.begun;
      return channel;
    } catch (error) {
      await this.#assertRunning();
      const said = error instanceof ChannelEnded ? error.said : messageOf(error);
      throw await this.#lose(`no shell could be started in its container${said ? `: ${said}` : ''}`, error);
    }
  }

  async #exec(argv: string[], more: Readonly<Record<string, string>>) {
    if (this.#lost) throw lostError(this.#lost);
    try {
      const exec = await this.#options.container.exec({
        Cmd: argv,
        AttachStdin: true,
        AttachStdout: true,
        AttachStderr: true,
        Tty: false,
        Env: Object.entries({ ...NO_TERMINAL, ...this.#options.env, ...more }).map(
          ([name, value]) => `${name}=${value}`,
        ),
        ...(this.#options.user ? { User: this.#options.user } : {}),
      });
      return { exec, stream: await exec.start({ hijack: true, stdin: true }) };
    } catch (error) {
      const status = statusOf(error);
      // 404 gone, 409 stopped or paused, 500 not running; no status: the engine itself is gone.
      if (status !== undefined && ![404, 409, 500].includes(status)) throw error;
      await this.#assertRunning();
      throw await this.#lose(reasonOf(error), error);
    }
  }

  /** Someone holds the container still: what runs in it will go on. */
  async #paused(): Promise<boolean> {
    try {
      return (await this.#options.container.inspect()).State.Paused;
    } catch {
      return false;
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
