import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionId } from '../protocol/ids.ts';
import { type LivingProcess, type ProcessEnd, ProcessGone } from './sandbox.ts';

/** Bytes of standard error that are kept. */
const STDERR_BYTES = 8 * 1024;
/** ms. A server whose input has ended is given so long to leave by itself, and what ends it so long after that. */
const LEAVE_MS = 1_000;
const KILL_MS = 5_000;
/** ms. Output of a program that has ended comes a moment later, unless something else holds it open. */
const REST_MS = 500;

export interface LivingParts {
  executionId: ExecutionId;
  stdin: Writable;
  /** Ends it and all that it started, by force. */
  kill(): Promise<void>;
}

/** A program that stays, whatever it runs in: whoever starts it tells what is heard of it. */
export class Living implements LivingProcess {
  readonly executionId: ExecutionId;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly ended: Promise<ProcessEnd>;
  readonly #out = new PassThrough();
  readonly #kill: () => Promise<void>;
  readonly #over = Promise.withResolvers<ProcessEnd>();
  #end: ProcessEnd | undefined;
  #stderr = Buffer.alloc(0);
  #reason: string | undefined;
  #stopping: Promise<void> | undefined;

  constructor({ executionId, stdin, kill }: LivingParts) {
    this.executionId = executionId;
    this.stdin = stdin;
    this.#kill = kill;
    this.stdout = this.#out;
    this.ended = this.#over.promise;
    // Whoever writes to a program that has ended is told so by its end.
    stdin.on('error', () => undefined);
  }

  get end(): ProcessEnd | undefined {
    return this.#end;
  }

  stderr(): string {
    return this.#stderr.toString('utf8');
  }

  /** False: no more of it is wanted until `drained`. */
  heard(stream: 'out' | 'err', chunk: Buffer): boolean {
    // What is on its way from one that was given up.
    if (this.#end) return true;
    if (stream === 'out') return this.#out.write(chunk);
    this.#stderr = Buffer.concat([this.#stderr, chunk.subarray(-STDERR_BYTES)]).subarray(-STDERR_BYTES);
    return true;
  }

  drained(go: () => void): void {
    this.#out.once('drain', go);
  }

  /** It has ended; the first one to say so counts. What was asked for is no end of its own. */
  finish(end: ProcessEnd): void {
    if (this.#end) return;
    this.#end = this.#reason === undefined ? end : { how: 'stopped', exitCode: null, reason: this.#reason };
    this.#out.end();
    this.stdin.destroy();
    this.#over.resolve(this.#end);
  }

  async during<T>(act: () => Promise<T>): Promise<T> {
    if (this.#end) throw new ProcessGone(this.#end);
    return await act();
  }

  stop(reason = 'it was stopped'): Promise<void> {
    this.#stopping ??= this.#stop(reason);
    return this.#stopping;
  }

  async #stop(reason: string): Promise<void> {
    if (this.#end) return;
    this.#reason = reason;
    this.stdin.end();
    await Promise.race([this.ended, sleep(LEAVE_MS, undefined, { ref: false })]);
    if (this.#end) return;
    await Promise.race([this.#kill().catch(() => undefined), sleep(KILL_MS, undefined, { ref: false })]);
    await Promise.race([this.ended, sleep(LEAVE_MS, undefined, { ref: false })]);
    this.finish({ how: 'stopped', exitCode: null, reason });
  }
}

/** A process of this machine as a program that stays. Its standard streams are pipes. */
export function livingChild(child: ChildProcess, of: { executionId: ExecutionId; kill(): Promise<void> }): Living {
  const { stdin, stdout, stderr } = child;
  if (!stdin || !stdout || !stderr) throw new TypeError('its streams are no pipes');
  const living = new Living({ ...of, stdin });
  stdout.on('data', (chunk: Buffer) => {
    if (living.heard('out', chunk)) return;
    stdout.pause();
    living.drained(() => stdout.resume());
  });
  stderr.on('data', (chunk: Buffer) => living.heard('err', chunk));
  child.on('error', (error) => living.finish({ how: 'lost', exitCode: null, reason: error.message }));
  const exited = () => living.finish({ how: 'exited', exitCode: exitCode(child), reason: '' });
  child.on('exit', () => setTimeout(exited, REST_MS).unref());
  child.on('close', exited);
  return living;
}

function exitCode({ exitCode: code, signalCode: signal }: ChildProcess): number {
  return code ?? 128 + (signal ? constants.signals[signal] : 0);
}

/** The same program, with more done around what it works for. */
export const withCare = (process: LivingProcess, during: LivingProcess['during']): LivingProcess => ({
  executionId: process.executionId,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: () => process.stderr(),
  get end() {
    return process.end;
  },
  ended: process.ended,
  during,
  stop: (reason) => process.stop(reason),
});

/** The programs of one sandbox that have not ended. */
export class LivingSet<L extends LivingProcess> {
  readonly #living = new Set<L>();

  add(living: L): L {
    this.#living.add(living);
    void living.ended.then(() => this.#living.delete(living));
    return living;
  }

  /** Never throws. */
  async stop(reason: string): Promise<void> {
    await Promise.all([...this.#living].map((living) => living.stop(reason)));
  }

  [Symbol.iterator](): IterableIterator<L> {
    return this.#living.values();
  }
}
