import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionId, SandboxId } from '../../protocol/ids.ts';
import { Collector } from '../collect.ts';
import type { LivingSandbox } from '../hands.ts';
import { LivingSet, livingChild } from '../living.ts';
import { endArgv, openArgv, sweepArgv } from '../living-program.ts';
import { NO_TERMINAL } from '../no-terminal.ts';
import { followArgv, lookArgv, type RunnerCall, runArgv, stopArgv } from '../runner.ts';
import {
  type Found,
  type LivingProcess,
  type OpenRequest,
  type RunRequest,
  type RunResult,
  SandboxLost,
} from '../sandbox.ts';

const DEFAULT_MAX_BYTES = 256 * 1024;
/** The runner enforces the timeout; so long after it, we do. */
const GRACE_MS = 10_000;
/** A command that was told to end is given so long, ms, before whoever waits for it goes on. */
const STOP_MS = 5_000;

export interface HostSandboxOptions {
  id: SandboxId;
  workspace: string;
  /** Where executions and temporary files are kept. */
  folder: string;
  env: Readonly<Record<string, string>>;
}

/**
 * No sandbox: programs run on this machine, with all that the person may do. Every one of them was allowed by a person.
 * Like a container's, a command goes on if this process dies, and its end is found under its execution id.
 */
export class HostSandbox implements LivingSandbox {
  readonly kind = 'host';
  readonly id: SandboxId;
  readonly workspace: string;
  readonly lost = false;
  readonly #options: HostSandboxOptions;
  /** What was opened and has not ended. */
  readonly #living = new LivingSet();

  constructor(options: HostSandboxOptions) {
    this.id = options.id;
    this.workspace = options.workspace;
    this.#options = options;
    for (const folder of ['exec', 'tmp']) mkdirSync(join(options.folder, folder), { recursive: true, mode: 0o700 });
  }

  async run(request: RunRequest): Promise<RunResult> {
    const call = this.#call(request.executionId, request.maxBytes);
    if (request.signal.aborted) return nothing();
    const argv = runArgv(call, request, request.cwd ?? this.workspace);
    const late = setTimeout(() => this.#stop(call, 'timed_out'), request.timeoutMs + GRACE_MS);
    try {
      return await this.#result(call, argv, request.signal, request);
    } finally {
      clearTimeout(late);
    }
  }

  async lookup(executionId: ExecutionId): Promise<Found> {
    const call = this.#call(executionId, undefined);
    const collector = new Collector(call);
    await this.#talk(lookArgv(call), collector, {});
    const { last } = collector;
    if (last === 'running') {
      const wait = (signal: AbortSignal, onOutput?: (chunk: Uint8Array) => void) =>
        this.#result(call, followArgv(call), signal, { ...(onOutput ? { onOutput } : {}) });
      return { found: 'running', wait };
    }
    if (last === undefined || last === 'absent') return { found: 'absent' };
    return { found: 'finished', result: collector.result(last) };
  }

  async open({ executionId, argv, cwd = this.workspace, env }: OpenRequest): Promise<LivingProcess> {
    const { folder } = this.#options;
    const child = this.#spawn(openArgv(folder, { executionId, cwd, argv }), env);
    return this.#living.add(livingChild(child, { executionId, kill: () => this.#end(endArgv(folder, executionId)) }));
  }

  /** Ends what was opened. Never throws. */
  stopOpened(reason: string): Promise<void> {
    return this.#living.stop(reason);
  }

  /** Ends what a process that is no more has opened. Never throws. */
  async endLeft(): Promise<void> {
    await this.#end(sweepArgv(this.#options.folder));
  }

  /** Ends everything that runs in it. */
  async stopAll(): Promise<void> {
    await this.stopOpened('its sandbox was removed');
    await this.endLeft();
    const ids = readdirSync(join(this.#options.folder, 'exec'));
    const stops = ids.map((id) => this.#stop(this.#call(id, undefined), 'cancelled'));
    await Promise.race([Promise.all(stops), sleep(STOP_MS)]);
  }

  async #result(
    call: RunnerCall,
    argv: string[],
    signal: AbortSignal,
    more: Pick<RunRequest, 'stdin' | 'env' | 'onOutput'>,
  ): Promise<RunResult> {
    const collector = new Collector(call, more.onOutput);
    const onAbort = () => void this.#stop(call, 'cancelled');
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await this.#talk(argv, collector, more);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
    if (typeof collector.last === 'object') return collector.result(collector.last);
    const again = new Collector(call);
    await this.#talk(lookArgv(call), again, {});
    if (typeof again.last === 'object') return again.result(again.last);
    throw new SandboxLost(
      `Whatever ran the command on this machine ended without a result (${collector.text.trim().slice(-300) || 'no output'}); it may have run in part.`,
    );
  }

  async #stop(call: RunnerCall, ended: 'cancelled' | 'timed_out'): Promise<void> {
    await this.#talk(stopArgv(call, ended), new Collector(call), {}).catch(() => undefined);
  }

  #call(executionId: string, maxBytes: number | undefined): RunnerCall {
    const half = Math.ceil((maxBytes ?? DEFAULT_MAX_BYTES) / 2);
    return { base: this.#options.folder, executionId, nonce: randomBytes(12).toString('hex'), head: half, tail: half };
  }

  async #end(argv: string[]): Promise<void> {
    const child = this.#spawn(argv, undefined);
    child.stdin.end();
    for (const stream of [child.stdout, child.stderr]) stream.resume();
    await ended(child).catch(() => undefined);
  }

  async #talk(argv: string[], collector: Collector, more: Pick<RunRequest, 'stdin' | 'env'>): Promise<void> {
    const child = this.#spawn(argv, more.env);
    child.stdin.on('error', () => undefined).end(more.stdin ?? new Uint8Array());
    child.stdout.on('data', (chunk: Buffer) => collector.add('out', chunk));
    child.stderr.on('data', (chunk: Buffer) => collector.add('err', chunk));
    await ended(child);
  }

  #spawn([program = 'sh', ...args]: string[], env: RunRequest['env']) {
    // Detached: neither our end nor a Ctrl-C meant for us is the command's.
    return spawn(program, args, {
      cwd: this.#options.folder,
      env: { ...this.#options.env, ...NO_TERMINAL, TMPDIR: join(this.#options.folder, 'tmp'), ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
  }
}

const ended = (child: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    child.on('error', (error) =>
      reject(new SandboxLost(`This machine could not start a command: ${error.message}. It needs a POSIX shell (sh).`)),
    );
    child.on('close', () => resolve());
  });

const nothing = (): RunResult => ({
  ended: 'cancelled',
  exitCode: null,
  stdout: new Uint8Array(),
  stderr: new Uint8Array(),
  cutBytes: 0,
  durationMs: 0,
});
