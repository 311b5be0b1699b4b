import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathSafe } from '../runner.ts';

/**
 * Process groups of a sandbox's running commands, noted on disk: a command outlives the process that started it, and
 * the next one must be able to find and end it. The folder is out of the sandbox's own reach.
 */
export class Leftovers {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }

  note(executionId: string, group: number): void {
    writeFileSync(this.#file(executionId), String(group));
  }

  forget(executionId: string): void {
    rmSync(this.#file(executionId), { force: true });
  }

  /** Whether the command's process group still lives. */
  alive(executionId: string): boolean {
    return this.#group(pathSafe(executionId)) !== undefined;
  }

  /** Ends the command, if it still runs. */
  end(executionId: string): void {
    const group = this.#group(pathSafe(executionId));
    if (group === undefined) return;
    try {
      process.kill(-group, 'SIGKILL');
    } catch {
      // It ended by itself in between.
    }
  }

  /** Ends all of them, and the notes. */
  endAll(): void {
    for (const name of readdirSync(this.#folder)) this.end(name);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #file(executionId: string): string {
    return join(this.#folder, pathSafe(executionId));
  }

  #group(name: string): number | undefined {
    try {
      const group = Number.parseInt(readFileSync(join(this.#folder, name), 'utf8'), 10);
      if (!(group > 1)) return undefined;
      process.kill(-group, 0);
      return isOurs(group, name) ? group : undefined;
    } catch {
      return undefined;
    }
  }
}

/** A number may have been given to another process since: where it can be seen, its command line names the execution. */
function isOurs(pid: number, name: string): boolean {
  if (process.platform !== 'linux') return true;
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(name);
}
