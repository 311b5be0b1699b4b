import { spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import { DroverError } from '../../protocol/errors.ts';

/** A command of git failed, or took too long. */
export class GitFailed extends DroverError {
  /** It was stopped because it took too long, or printed too much: trying again would end the same way. */
  readonly hopeless: boolean;

  constructor(command: string, why: string, options?: { cause?: unknown; hopeless?: boolean }) {
    super('tool', `git ${command} failed (${why}), so no checkpoint of the files could be made or used.`, options);
    this.hopeless = options?.hopeless ?? false;
  }
}

/** What one command works with. Everything else of its surroundings is fixed. */
export interface GitPlace {
  /** Private to this program: what git is configured by lies here, and nobody who works in the workspace can write it. */
  gitDir: string;
  objects: string;
  index?: string;
  workTree?: string;
}

export interface GitRun {
  /** What is promised is waited for by the program, which has started by then; if it never comes, the program is ended. */
  stdin?: string | Uint8Array | Promise<string>;
  /** ms until it is killed. Default 2 minutes. */
  timeoutMs?: number;
  /** `name=value` that outweighs the private configuration. */
  config?: string;
  /** Runs behind everything else on the machine. */
  background?: boolean;
}

/** The names of all files of a workspace take far less; more than this is no listing of one. */
const MAX_OUTPUT_BYTES = 512 * 1024 * 1024;
const TIMEOUT_MS = 120_000;
const STDERR_BYTES = 2000;

/** Runs git with an environment of our own, from which nothing of the user's or the workspace's configuration is reached. */
export class Git {
  readonly #program: string;

  constructor(program: string) {
    this.#program = program;
  }

  /** What it prints. Throws `GitFailed`. */
  run(place: GitPlace, args: readonly string[], options: GitRun = {}): Promise<Buffer> {
    const [command = ''] = args;
    return new Promise((resolve, reject) => {
      const child = spawn(this.#program, [...(options.config ? ['-c', options.config] : []), ...args], {
        cwd: place.workTree ?? place.gitDir,
        env: environment(place),
        stdio: 'pipe',
        windowsHide: true,
      });
      let why: string | null = null;
      const kill = (reason: string) => {
        why ??= reason;
        child.kill('SIGKILL');
      };
      const timer = setTimeout(() => kill('it took too long'), options.timeoutMs ?? TIMEOUT_MS);
      const out: Buffer[] = [];
      let bytes = 0;
      let problem = '';
      child.stdout.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_OUTPUT_BYTES) kill('it printed too much');
        else out.push(chunk);
      });
      child.stderr.on('data', (chunk: Buffer) => {
        if (problem.length < STDERR_BYTES) problem += chunk.toString('utf8').slice(0, STDERR_BYTES);
      });
      child.once('error', (error) => {
        clearTimeout(timer);
        reject(new GitFailed(command, error.message, { cause: error }));
      });
      child.once('close', (code) => {
        clearTimeout(timer);
        if (code === 0 && why === null) resolve(Buffer.concat(out));
        else if (why !== null) reject(new GitFailed(command, why, { hopeless: true }));
        else reject(new GitFailed(command, problem.trim().replace(/\s+/g, ' ') || `exit code ${code}`));
      });
      if (options.background && child.pid !== undefined) lower(child.pid);
      // It may end before it has read all: its exit code says what that means.
      child.stdin.on('error', () => undefined);
      void Promise.resolve(options.stdin ?? '').then(
        (text) => child.stdin.end(text),
        () => kill('what it was to read never came'),
      );
    });
  }
}

function lower(pid: number): void {
  try {
    setPriority(pid, 15);
  } catch {
    // It has ended already, or may not be slowed down.
  }
}

/** What programs need of the system's own environment; everything else, above all `GIT_*`, is left out. */
const KEPT = ['PATH', 'Path', 'SYSTEMROOT', 'SystemRoot', 'TEMP', 'TMP', 'TMPDIR'];

function environment({ gitDir, objects, index, workTree }: GitPlace): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {};
  for (const name of KEPT) if (process.env[name] !== undefined) env[name] = process.env[name];
  const who = { NAME: 'Drover', EMAIL: 'drover@localhost' };
  return {
    ...env,
    HOME: gitDir,
    XDG_CONFIG_HOME: gitDir,
    LC_ALL: 'C',
    GIT_DIR: gitDir,
    GIT_OBJECT_DIRECTORY: objects,
    ...(index === undefined ? {} : { GIT_INDEX_FILE: index }),
    ...(workTree === undefined ? {} : { GIT_WORK_TREE: workTree }),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: process.platform === 'win32' ? 'NUL' : '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_NO_LAZY_FETCH: '1',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_AUTHOR_NAME: who.NAME,
    GIT_AUTHOR_EMAIL: who.EMAIL,
    GIT_COMMITTER_NAME: who.NAME,
    GIT_COMMITTER_EMAIL: who.EMAIL,
  };
}
