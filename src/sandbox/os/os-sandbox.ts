import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionId, SandboxId } from '../../protocol/ids.ts';
import { Collector } from '../collect.ts';
import { filledIn } from '../fill-in.ts';
import { identities } from '../guard-rails.ts';
import type { LivingSandbox } from '../hands.ts';
import { type Living, LivingSet, livingChild, withCare } from '../living.ts';
import { openArgv } from '../living-program.ts';
import { NO_TERMINAL } from '../no-terminal.ts';
import { passedEnv } from '../passed-env.ts';
import { lookArgv, type RunnerCall, runArgv } from '../runner.ts';
import {
  type Found,
  type LivingProcess,
  type OpenRequest,
  ProcessGone,
  type RunRequest,
  type RunResult,
  SandboxLost,
} from '../sandbox.ts';
import { Leftovers } from './leftovers.ts';
import { configFor, freshRails, type OsLimits, osRuntime, type RuntimeOptions } from './runtime.ts';
import type { OsWayOut } from './way-out.ts';

const DEFAULT_MAX_BYTES = 256 * 1024;
/** The runner inside enforces the timeout; so long after it, we do. */
const GRACE_MS = 10_000;
const LOOK_EVERY_MS = 200;

export interface OsSandboxOptions extends OsLimits {
  id: SandboxId;
  /** Where running commands are noted, out of the sandbox's reach; and what stays and ends with this process. */
  notes: string;
  opened: string;
  runtime: RuntimeOptions;
  /** Where PATH and the like come from; secrets in it are not passed on. */
  env: NodeJS.ProcessEnv;
  /** Absent: it has none. */
  wayOut?: OsWayOut | undefined;
}

/**
 * A sandbox of the operating system's own making: every call is a process tree with its own view of files, processes
 * and network. Like a container's, a command goes on if this process dies, and its end is found under its execution id.
 */
export class OsSandbox implements LivingSandbox {
  readonly kind = 'os';
  readonly id: SandboxId;
  readonly workspace: string;
  readonly lost = false;
  readonly #options: OsSandboxOptions;
  readonly #running = new Map<ExecutionId, Execution>();
  readonly #leftovers: Leftovers;
  readonly #opened: Leftovers;
  /** What was opened and has not ended. */
  readonly #living = new LivingSet<Living>();

  constructor(options: OsSandboxOptions) {
    this.id = options.id;
    this.workspace = options.workspace;
    this.#options = options;
    this.#leftovers = new Leftovers(options.notes);
    // What is noted there was opened by a process that is no more: this one knows each of its sandboxes once.
    new Leftovers(options.opened).endAll();
    this.#opened = new Leftovers(options.opened);
    for (const folder of ['exec', 'tmp']) mkdirSync(join(options.folder, folder), { recursive: true, mode: 0o700 });
  }

  async run(request: RunRequest): Promise<RunResult> {
    try {
      const result = await this.#run(request);
      await this.#options.wayOut?.settle(request.executionId);
      return result;
    } finally {
      this.#running.delete(request.executionId);
    }
  }

  async #run(request: RunRequest): Promise<RunResult> {
    const from = performance.now();
    const call = this.#call(request.executionId, request.maxBytes);
    const execution = new Execution(new Collector(call, (chunk) => execution.heard(chunk)), request.onOutput);
    if (request.signal.aborted) return execution.stopped('cancelled', 0);
    this.#running.set(request.executionId, execution);
    const onAbort = () => execution.stop('cancelled');
    request.signal.addEventListener('abort', onAbort, { once: true });
    const late = setTimeout(() => execution.stop('timed_out'), request.timeoutMs + GRACE_MS);
    try {
      const argv = runArgv(call, request, request.cwd ?? this.workspace);
      await this.#talk(argv, execution, { ...request.env }, request.stdin, request.executionId);
      const { last } = execution.collector;
      if (typeof last === 'object') return execution.collector.result(last);
      if (execution.stopReason) return execution.stopped(execution.stopReason, performance.now() - from);
      const kept = await this.#look(request.executionId);
      if (kept) return kept;
      throw new SandboxLost(
        `The operating system's sandbox ended without a result (${execution.collector.text.trim().slice(-300) || 'no output'}); the command may have run in part.`,
      );
    } finally {
      request.signal.removeEventListener('abort', onAbort);
      clearTimeout(late);
    }
  }

  async lookup(executionId: ExecutionId): Promise<Found> {
    const running = this.#running.get(executionId);
    if (running) return { found: 'running', wait: (signal, onOutput) => running.wait(signal, onOutput) };
    if (this.#leftovers.alive(executionId))
      return { found: 'running', wait: (signal) => this.#outlast(executionId, signal) };
    const result = await this.#look(executionId);
    return result ? { found: 'finished', result } : { found: 'absent' };
  }

  /** The result of a command that has ended, or undefined if there is none. */
  async #look(executionId: ExecutionId): Promise<RunResult | undefined> {
    const execution = new Execution(new Collector(this.#call(executionId, undefined)), undefined);
    await this.#talk(lookArgv(execution.collector.call), execution, {}, undefined);
    const { last } = execution.collector;
    return typeof last === 'object' ? execution.collector.result(last) : undefined;
  }

  /** Waits for a command that a former process started: it is nobody's child any more, so it is looked at. */
  async #outlast(executionId: ExecutionId, signal: AbortSignal): Promise<RunResult> {
    while (this.#leftovers.alive(executionId)) {
      if (signal.aborted) this.#leftovers.end(executionId);
      await sleep(LOOK_EVERY_MS);
    }
    this.#leftovers.forget(executionId);
    const result = await this.#look(executionId);
    if (result) return result;
    return new Execution(new Collector(this.#call(executionId, undefined)), undefined).stopped('cancelled', 0);
  }

  async open(request: OpenRequest): Promise<LivingProcess> {
    const { folder, wayOut } = this.#options;
    const { executionId, cwd = this.workspace } = request;
    const { argv, env } = filledIn(request, wayOut?.envFor(executionId) ?? {});
    const guarded = this.#guarded();
    const { child, done } = await this.#spawn(openArgv(folder, { executionId, cwd, argv }), { ...env }, executionId);
    if (child.pid !== undefined) this.#opened.note(executionId, child.pid);
    const kill = async () => this.#opened.end(executionId);
    const living = this.#living.add(livingChild(child, { executionId, kill }));
    void living.ended.then(() => {
      this.#opened.forget(executionId);
      done();
    });
    return withCare(living, async (act, call = executionId) => {
      // Its mounts are those of its beginning: what they were made over may be another file by now.
      if (!living.end && this.#guarded() !== guarded) await living.stop('what is write-protected has changed');
      if (living.end) throw new ProcessGone(living.end);
      const over = wayOut?.actFor(executionId, call);
      try {
        return await act();
      } finally {
        await wayOut?.settle(call);
        over?.();
      }
    });
  }

  /** Ends what was opened. Never throws. */
  stopOpened(reason: string): Promise<void> {
    return this.#living.stop(reason);
  }

  /** Ends everything that runs in it. */
  stopAll(): void {
    for (const living of this.#living) this.#opened.end(living.executionId);
    for (const execution of this.#running.values()) execution.stop('cancelled');
  }

  #call(executionId: ExecutionId, maxBytes: number | undefined): RunnerCall {
    const half = Math.ceil((maxBytes ?? DEFAULT_MAX_BYTES) / 2);
    return { base: this.#options.folder, executionId, nonce: randomBytes(12).toString('hex'), head: half, tail: half };
  }

  async #talk(
    argv: readonly string[],
    execution: Execution,
    env: Record<string, string>,
    stdin: Uint8Array | undefined,
    noted?: ExecutionId,
  ): Promise<void> {
    const { child, done } = await this.#spawn(argv, env, noted);
    execution.child = child;
    if (noted && child.pid !== undefined) this.#leftovers.note(noted, child.pid);
    if (execution.stopReason) execution.stop(execution.stopReason);
    child.stdin.on('error', () => {});
    child.stdin.end(stdin ?? new Uint8Array());
    child.stdout.on('data', (chunk: Buffer) => execution.collector.add('out', chunk));
    child.stderr.on('data', (chunk: Buffer) => execution.collector.add('err', chunk));
    await new Promise<void>((resolve, reject) => {
      child.on('error', (error) =>
        reject(new SandboxLost(`The operating system's sandbox could not start a command: ${error.message}.`)),
      );
      child.on('close', () => resolve());
    });
    if (noted) this.#leftovers.forget(noted);
    done();
    execution.ended();
  }

  /**
   * Starts a program in a sandbox of its own.
   * @param as whose variables it gets; undefined: one that asks for nothing outside
   * @returns also what is to be called when it has ended
   */
  async #spawn(argv: readonly string[], env: Record<string, string>, as: ExecutionId | undefined) {
    const manager = await osRuntime(this.#options.runtime);
    const tmp = join(this.#options.folder, 'tmp');
    // The runtime sets TMPDIR and the proxy's variables to its own, so ours are set by the command itself.
    const variables = { TMPDIR: tmp, ...(as ? this.#options.wayOut?.envFor(as) : {}), ...env };
    const assigned = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
    const command = ['env', ...assigned, ...argv].map(quoted).join(' ');
    const config = configFor(this.#options, this.#options.runtime);
    const wrapped = await manager.wrapWithSandboxArgv(command, '/bin/sh', config);
    const [program, ...rest] = wrapped.argv;
    if (!program) throw new SandboxLost("The operating system's sandbox gave no command to start.");
    const child = spawn(program, rest, {
      cwd: this.workspace,
      env: { ...passedEnv(this.#options.env), ...NO_TERMINAL, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    return { child, done: () => manager.cleanupAfterCommand() };
  }

  /** What its guard rails are made over, in one text. */
  #guarded(): string {
    return JSON.stringify(identities(this.workspace, freshRails(this.workspace)));
  }
}

/** One running call: its output, and how to end it. */
class Execution {
  readonly collector: Collector;
  child: ChildProcess | undefined;
  stopReason: 'cancelled' | 'timed_out' | undefined;
  readonly #listeners = new Set<(chunk: Uint8Array) => void>();
  readonly #end: Promise<void>;
  ended: () => void = () => {};

  constructor(collector: Collector, onOutput: ((chunk: Uint8Array) => void) | undefined) {
    this.collector = collector;
    if (onOutput) this.#listeners.add(onOutput);
    this.#end = new Promise((resolve) => {
      this.ended = resolve;
    });
  }

  heard(chunk: Uint8Array): void {
    for (const listener of this.#listeners) listener(chunk);
  }

  stop(reason: 'cancelled' | 'timed_out'): void {
    this.stopReason ??= reason;
    const pid = this.child?.pid;
    if (pid === undefined) return;
    try {
      // The sandbox's first process takes all others with it: they live in its process namespace or group.
      process.kill(-pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }

  stopped(ended: 'cancelled' | 'timed_out', durationMs: number): RunResult {
    const stdout = new TextEncoder().encode(this.collector.text);
    return { ended, exitCode: null, stdout, stderr: new Uint8Array(), cutBytes: 0, durationMs };
  }

  async wait(signal: AbortSignal, onOutput?: (chunk: Uint8Array) => void): Promise<RunResult> {
    if (onOutput) this.#listeners.add(onOutput);
    const onAbort = () => this.stop('cancelled');
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await this.#end;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
    const { last } = this.collector;
    return typeof last === 'object' ? this.collector.result(last) : this.stopped(this.stopReason ?? 'cancelled', 0);
  }
}

/** One word of a POSIX shell command. */
const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;
