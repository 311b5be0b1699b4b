import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Line, type Plan } from './plan.ts';

/** ms. A host that has not ended by then is ended. An idle machine needs a tenth of it. */
const MOST_MS = 120_000;
const PROGRAM = fileURLToPath(new URL('./host.ts', import.meta.url));

/** All that live, so that a parent that is told to end can end them. */
const living = new Set<HostProcess>();

export const endAllHosts = (): Promise<unknown> => Promise.all([...living].map((host) => host.end()));

/** One host process, watched from outside. */
export class HostProcess {
  readonly #process: ChildProcess;
  readonly #lines: Line[] = [];
  readonly #closed: Promise<unknown>;
  readonly #timer: NodeJS.Timeout;
  readonly #waiting = new Set<() => void>();
  #errors = '';
  #isClosed = false;

  constructor(plan: Plan, env: NodeJS.ProcessEnv) {
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(plan)], { stdio: ['pipe', 'pipe', 'pipe'], env });
    this.#process = child;
    living.add(this);
    child.stderr.on('data', (piece) => {
      this.#errors = (this.#errors + piece).slice(-4000);
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.#lines.push(Line.parse(JSON.parse(line)));
      this.#wakeWaiting();
    });
    this.#timer = setTimeout(() => void this.end(), MOST_MS);
    this.#closed = once(child, 'close').then(() => {
      this.#isClosed = true;
      clearTimeout(this.#timer);
      living.delete(this);
      this.#wakeWaiting();
    });
  }

  get lines(): readonly Line[] {
    return this.#lines;
  }

  has(said: Line['said']): boolean {
    return this.#lines.some((line) => line.said === said);
  }

  get appends(): number {
    return this.#lines.filter((line) => line.said === 'appended').length;
  }

  /** Hashes of the records it was told to be in the log. */
  get acknowledged(): string[] {
    return this.#lines.flatMap((line) => (line.said === 'appended' ? line.hashes : []));
  }

  /** Takes back what it said last of the log, and returns those hashes: the disk has not kept them. */
  unsay(): string[] {
    const last = this.#lines.findLastIndex((line) => line.said === 'appended');
    const [line] = this.#lines.splice(last, 1);
    return line?.said === 'appended' ? line.hashes : [];
  }

  /** Waits until what it has said is enough, or it has ended. */
  async until(isEnough: (host: HostProcess) => boolean): Promise<void> {
    while (!this.#isClosed && !isEnough(this)) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  /** Lets a stopped one go on. */
  resume(): void {
    this.#process.kill('SIGCONT');
  }

  /** Waits until it has ended by itself, and says why it should not have, if so. */
  async ended(): Promise<string | undefined> {
    await this.#closed;
    const { exitCode, signalCode } = this.#process;
    if (exitCode === 0) return undefined;
    if (signalCode === 'SIGKILL' && this.has('strikes')) return undefined;
    const failed = this.#lines.find((line) => line.said === 'failed');
    const why = failed?.said === 'failed' ? failed.message : this.#errors;
    return `a host ended with ${signalCode ?? `code ${exitCode}`}: ${why.trim() || '(it said nothing)'}`;
  }

  /** Ends it the hard way and waits until it is gone. */
  async end(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#closed;
  }

  #wakeWaiting(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}
