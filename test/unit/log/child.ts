import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

/** A second process that runs `programs/child.ts`; it ends with the test at the latest. */
export class Child {
  readonly #process: ChildProcess;
  readonly #lines: Record<string, unknown>[] = [];
  readonly #heard = new EventEmitter();
  #errors = '';
  /** It has ended, and all it has printed is here. */
  #closed = false;

  constructor(what: string, root: string, session = 'none', ...rest: (string | number)[]) {
    const program = fileURLToPath(new URL('./programs/child.ts', import.meta.url));
    const args = [program, what, root, session, ...rest.map(String)];
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#process = child;
    child.stderr.on('data', (piece) => {
      this.#errors += piece;
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.#lines.push(JSON.parse(line));
      this.#heard.emit('line');
    });
    child.on('close', () => {
      this.#closed = true;
      this.#heard.emit('line');
    });
    onTestFinished(() => this.kill());
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** All lines it has printed so far. */
  get lines(): readonly Record<string, unknown>[] {
    return this.#lines;
  }

  /** The first line with this key, as soon as there is one. Rejects if it ends without. */
  async says(key: string): Promise<unknown> {
    for (;;) {
      const line = this.#lines.find((one) => key in one);
      if (line) return line[key];
      if (this.#closed) {
        throw new Error(`The child ended without saying ${key}: ${this.#errors}`);
      }
      await once(this.#heard, 'line');
    }
  }

  go(): void {
    this.#process.stdin?.write('go\n');
  }

  /** Ends it the hard way and waits until it is gone. */
  async kill(): Promise<void> {
    if (this.#closed) return;
    const gone = once(this.#process, 'close');
    this.#process.kill('SIGKILL');
    await gone;
  }

  async ended(): Promise<void> {
    if (!this.#closed) await once(this.#process, 'close');
  }
}
