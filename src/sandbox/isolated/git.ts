import { execFile } from 'node:child_process';
import { realpath } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const GIT_MS = 120_000;
const MAX_BYTES = 256 * 1024 * 1024;

/**
 * The person's own git, on the person's own folder: never on a copy, whose configuration an agent may have written.
 * No hook, no pager, no prompt, no watcher, and no lock is taken.
 */
export async function git(folder: string, args: readonly string[], input = ''): Promise<string> {
  const options = ['-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null', '-c', 'gc.auto=0'];
  const running = run('git', ['-C', folder, ...options, ...args], {
    env: { ...process.env, GIT_OPTIONAL_LOCKS: '0', GIT_TERMINAL_PROMPT: '0', LC_ALL: 'C' },
    timeout: GIT_MS,
    maxBuffer: MAX_BYTES,
  });
  // It may end before it has read everything; how it ended says why.
  running.child.stdin?.on('error', () => undefined).end(input);
  return (await running).stdout;
}

/** `top`: the folder is the root of a repository. `inside`: it lies in one. null: neither, or there is no git. */
export async function repository(folder: string): Promise<'top' | 'inside' | null> {
  try {
    const top = (await git(folder, ['rev-parse', '--show-toplevel'])).trim();
    return (await realpath(top)) === (await realpath(folder)) ? 'top' : 'inside';
  } catch {
    return null;
  }
}

/** What git ignores in a folder now: whole folders end in a slash. */
export async function ignoredIn(folder: string): Promise<string[]> {
  const args = ['ls-files', '--others', '--ignored', '--exclude-standard', '--directory', '-z', '.'];
  return (await git(folder, args)).split('\0').filter((path) => path !== '' && !isOwn(path));
}

/** Of these paths (folders end in a slash), which may be there or not, those that the folder's rules ignore. */
export async function ignoredOf(folder: string, paths: readonly string[]): Promise<Set<string>> {
  if (paths.length === 0) return new Set();
  try {
    const said = await git(folder, ['check-ignore', '--no-index', '-z', '--stdin'], paths.join('\0'));
    return new Set(said.split('\0'));
  } catch {
    // It ends with 1 where nothing is ignored.
    return new Set();
  }
}

/** Drover's own folder is never part of a copy. */
export const isOwn = (path: string): boolean => path === '.drover' || path.startsWith('.drover/');
