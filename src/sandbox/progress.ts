import type { SandboxId } from '../protocol/ids.ts';
import { draft } from '../protocol/record.ts';
import type { SandboxOwner } from './sandbox.ts';

/** ms between two writes: a build may print a thousand lines a second, and each write waits for the disk. */
const EVERY_MS = 1_000;
/** A log is no build log: after so many lines only the last ones of each write are kept. */
const MAX_LINES = 300;
const LINES_THEN = 3;
/** Characters. */
const MAX_LINE = 400;

/**
 * The same owner, whose lines of progress are also told in the log, some at a time. `end` writes the last ones; what
 * can't be written is no reason for a sandbox to fail.
 */
export function loggingProgress(owner: SandboxOwner, id: SandboxId): { owner: SandboxOwner; end(): Promise<void> } {
  let waiting: string[] = [];
  let written = 0;
  let writing: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  const write = () => {
    clearTimeout(timer);
    timer = undefined;
    const lines = written < MAX_LINES ? waiting : waiting.slice(-LINES_THEN);
    waiting = [];
    if (lines.length === 0) return;
    written += lines.length;
    writing = writing
      .then(() => owner.record([draft('drover.sandbox_progress', { sandbox_id: id, lines })]))
      .catch(() => undefined);
  };
  const onProgress = (line: string) => {
    owner.onProgress?.(line);
    waiting.push(...line.split('\n').map((one) => one.slice(0, MAX_LINE)));
    timer ??= setTimeout(write, EVERY_MS);
  };
  return {
    owner: { ...owner, onProgress },
    end: async () => {
      write();
      await writing;
    },
  };
}
