import { spawn } from 'node:child_process';
import type { ExecutionId, SandboxId } from '../../src/protocol/ids.ts';
import { mint } from '../../src/protocol/ids.ts';
import { draft } from '../../src/protocol/record.ts';
import { livingChild } from '../../src/sandbox/living.ts';
import {
  type Check,
  type Cleaned,
  type Found,
  type LivingProcess,
  type OpenRequest,
  type RunRequest,
  type RunResult,
  type Sandbox,
  SandboxLost,
  type SandboxOwner,
  type SandboxProvider,
  SandboxUnavailable,
} from '../../src/sandbox/sandbox.ts';

/**
 * Hands for tests of the brain: programs run as plain processes in the workspace folder, so that hundreds of sessions
 * can be played in seconds. Real containers are tested in test/sandbox and test/e2e.
 */
export class ProcessSandboxes implements SandboxProvider {
  /** Set to make the next provisioning fail with this sentence. */
  unavailable: string | null = null;
  /** Set to make nobody able to say what lives, for this reason. */
  silent: string | null = null;
  readonly alive: Map<SandboxId, ProcessSandbox>;
  #making: Promise<Sandbox> | undefined;

  /** `alive`: what others made before. */
  constructor(alive = new Map<SandboxId, ProcessSandbox>()) {
    this.alive = alive;
  }

  acquire(owner: SandboxOwner): Promise<Sandbox> {
    const [living] = this.alive.values();
    if (living) return Promise.resolve(living);
    this.#making ??= this.#make(owner).finally(() => {
      this.#making = undefined;
    });
    return this.#making;
  }

  async #make(owner: SandboxOwner): Promise<Sandbox> {
    const sandbox_id = mint.sandbox();
    await owner.record([draft('drover.sandbox_provisioning', { sandbox_id, recipe: 'processes' })]);
    if (this.unavailable !== null) {
      const message = this.unavailable;
      await owner.record([draft('drover.sandbox_failed', { sandbox_id, message })]);
      throw new SandboxUnavailable('engine', message);
    }
    const ready = { sandbox_id, kind: 'os' as const, detail: 'processes', duration_ms: 1 };
    const sandbox = new ProcessSandbox(sandbox_id, owner.workspaceFolder);
    this.alive.set(sandbox_id, sandbox);
    await owner.record([draft('drover.sandbox_ready', ready)]);
    return sandbox;
  }

  prepare(owner: SandboxOwner): void {
    this.acquire(owner).catch(() => undefined);
  }

  release(_owner: SandboxOwner, _id: SandboxId): void {}

  /** The sandbox dies under whatever runs in it. */
  kill(): void {
    for (const sandbox of this.alive.values()) sandbox.kill();
    this.alive.clear();
  }

  async attach(owner: SandboxOwner, id: SandboxId): Promise<Sandbox | null> {
    if (this.silent !== null) throw new SandboxUnavailable('engine', this.silent);
    const living = this.alive.get(id);
    if (!living && owner.inUse?.() === id)
      await owner.record([draft('drover.sandbox_lost', { sandbox_id: id, reason: 'It is gone.' })]);
    return living ?? null;
  }

  async remove(): Promise<void> {
    this.kill();
  }

  async reap(): Promise<number> {
    return 0;
  }

  async cleanUp(): Promise<Cleaned> {
    return { sandboxes: 0, images: 0, others: 0, packages: 0 };
  }

  async examine(): Promise<Check[]> {
    return [];
  }

  serving(): string | null {
    return null;
  }

  async diagnose(): Promise<{ ok: boolean; text: string }> {
    return { ok: true, text: 'plain processes' };
  }

  async dispose(): Promise<void> {
    this.kill();
  }
}

export class ProcessSandbox implements Sandbox {
  readonly id: SandboxId;
  readonly kind = 'os';
  readonly workspace: string;
  readonly #runs = new Map<ExecutionId, Promise<RunResult>>();
  readonly #kills = new Set<() => void>();

  constructor(id: SandboxId, workspace: string) {
    this.id = id;
    this.workspace = workspace;
  }

  kill(): void {
    for (const kill of this.#kills) kill();
  }

  async run(request: RunRequest): Promise<RunResult> {
    const running = this.#start(request);
    this.#runs.set(request.executionId, running);
    return running;
  }

  async lookup(executionId: ExecutionId): Promise<Found> {
    const running = this.#runs.get(executionId);
    if (!running) return { found: 'absent' };
    return { found: 'running', wait: () => running };
  }

  async open(request: OpenRequest): Promise<LivingProcess> {
    const child = this.#spawn(request);
    const end = () => {
      if (child.pid && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
    };
    const living = livingChild(child, { executionId: request.executionId, kill: async () => end() });
    const kill = () => {
      living.finish({ how: 'lost', exitCode: null, reason: 'the sandbox was killed' });
      end();
    };
    this.#kills.add(kill);
    void living.ended.then(() => this.#kills.delete(kill));
    return living;
  }

  #spawn({ argv: [program = 'true', ...args], cwd = this.workspace, env }: OpenRequest) {
    return spawn(program, args, {
      cwd,
      env: { PATH: process.env.PATH ?? '', HOME: this.workspace, ...env },
      detached: true,
    });
  }

  #start(request: RunRequest): Promise<RunResult> {
    const began = Date.now();
    return new Promise((resolve, reject) => {
      const child = this.#spawn(request);
      const stdout: Buffer[] = [];
      const stderr: Buffer[] = [];
      let ended: RunResult['ended'] = 'exited';
      let lost = false;
      const end = (how: RunResult['ended']) => {
        ended = how;
        if (child.pid) process.kill(-child.pid, 'SIGKILL');
      };
      const kill = () => {
        lost = true;
        end('exited');
      };
      this.#kills.add(kill);
      const timer = setTimeout(() => end('timed_out'), request.timeoutMs);
      const abort = () => end('cancelled');
      request.signal.addEventListener('abort', abort, { once: true });
      if (request.signal.aborted) abort();
      child.stdout.on('data', (chunk: Buffer) => {
        stdout.push(chunk);
        request.onOutput?.(chunk);
      });
      child.stderr.on('data', (chunk: Buffer) => {
        stderr.push(chunk);
        request.onOutput?.(chunk);
      });
      child.stdin.on('error', () => undefined);
      child.stdin.end(request.stdin ?? '');
      child.on('error', reject);
      child.on('close', (code) => {
        clearTimeout(timer);
        request.signal.removeEventListener('abort', abort);
        this.#kills.delete(kill);
        if (lost) reject(new SandboxLost('The sandbox was killed.'));
        const of = { stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr), cutBytes: 0 };
        resolve({ ended, exitCode: ended === 'exited' ? (code ?? 137) : null, ...of, durationMs: Date.now() - began });
      });
    });
  }
}
