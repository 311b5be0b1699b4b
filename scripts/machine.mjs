// @ts-check
// What every script needs to know of the machine, and how to run a program on it. Node ≥ 20, no dependencies.

import { spawn } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Absolute path of the checkout. */
export const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Downloads that outlive a checkout, such as the VS Code server. */
export const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'drover');

export const bin = join(root, 'node_modules', '.bin');

/**
 * Programs we start get the checkout's own tools first on PATH (Node 24 among them), and nothing of the npm run,
 * VS Code or Electron they may have been started from: each of these changes what npm or a VS Code server does.
 * @param {Record<string, string | undefined>} [extra]
 * @returns {NodeJS.ProcessEnv}
 */
export function childEnv(extra = {}) {
  /** @type {NodeJS.ProcessEnv} */
  const env = {};
  const foreign =
    /^(npm_(?!config_(registry|cafile|proxy|https_proxy|noproxy)$)|VSCODE_|ELECTRON_|INIT_CWD$|NODE_OPTIONS$)/i;
  for (const [name, value] of Object.entries(process.env)) if (!foreign.test(name)) env[name] = value;
  const path = Object.keys(env).find((name) => name.toUpperCase() === 'PATH') ?? 'PATH';
  env[path] = [nodeFolder, bin, env[path]].filter(Boolean).join(delimiter);
  return { ...env, ...extra };
}

let nodeFolder = '';
/** Puts a folder with a newer Node before everything else on the PATH of the programs we start. @param {string} folder */
export function useNodeFrom(folder) {
  nodeFolder = folder;
}

/** The program of this name on PATH, or null. @param {string} name */
export function onPath(name) {
  const endings = process.platform === 'win32' ? ['.exe', '.cmd', '.bat'] : [''];
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    for (const ending of endings) {
      const file = join(folder, name + ending);
      if (folder && canRun(file)) return file;
    }
  }
  return null;
}

/** @param {string} file */
export function canRun(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Runs a program to its end.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, timeoutMs?: number, live?: boolean, onLine?: (line: string) => void }} [options]
 *   `live`: its output goes to ours as it comes. `onLine`: each line of it as it comes. Default: kept, not shown.
 * @returns {Promise<{ code: number, output: string }>} 128 after a signal, 124 after the timeout (default 10 min), 127 if
 *   there is no such program. `output`: the last 200,000 characters of stdout and stderr.
 */
export function run(command, args, { cwd = root, env = childEnv(), timeoutMs = 600_000, live = false, onLine } = {}) {
  return new Promise((resolve) => {
    let output = '';
    let rest = '';
    let timedOut = false;
    // A group of its own, so that a timeout ends all it started. On Windows there are no groups, and .cmd needs a shell.
    const windows = process.platform === 'win32';
    const child = spawn(command, [...args], {
      cwd,
      env,
      detached: !windows,
      shell: windows && /\.(cmd|bat)$/i.test(command),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    groups.add(child);
    const take = (/** @type {Buffer} */ chunk) => {
      const text = chunk.toString();
      output = (output + text).slice(-200_000);
      if (live) process.stdout.write(text);
      if (!onLine) return;
      const lines = (rest + text).split(/\r?\n/);
      rest = lines.pop() ?? '';
      for (const line of lines) onLine(line);
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    const timer = setTimeout(() => {
      timedOut = true;
      output += `\n${command} was stopped after ${Math.round(timeoutMs / 1000)} s.\n`;
      endGroup(child, 'SIGTERM');
      setTimeout(() => endGroup(child, 'SIGKILL'), 5_000).unref();
    }, timeoutMs);
    const finish = (/** @type {number} */ code) => {
      clearTimeout(timer);
      groups.delete(child);
      if (rest && onLine) onLine(rest);
      rest = '';
      resolve({ code, output });
    };
    child.on('error', (error) => {
      output += `${error.message}\n`;
      finish(127);
    });
    child.on('close', (code) => finish(timedOut ? 124 : (code ?? 128)));
  });
}

/** Process groups that `run` started and that have not ended. @type {Set<import('node:child_process').ChildProcess>} */
const groups = new Set();
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.once(signal, () => {
    for (const child of groups) endGroup(child, 'SIGTERM');
    if (process.listenerCount(signal) === 0) process.exit(130);
  });
}

/** Signals a program and all that it started. @param {{ pid?: number | undefined }} child @param {NodeJS.Signals} signal */
export function endGroup(child, signal) {
  if (child.pid === undefined) return;
  try {
    if (process.platform === 'win32') spawn('taskkill', ['/pid', String(child.pid), '/t', '/f'], { stdio: 'ignore' });
    else process.kill(-child.pid, signal);
  } catch {
    // It has ended already.
  }
}

/** npm, run by the Node that runs us: a `npm.cmd` could not be spawned on Windows. @param {string[]} args @param {Parameters<typeof run>[2]} options */
export function npm(args, options) {
  const cli = process.env.npm_execpath;
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
  if (cli?.endsWith('.js')) return run(process.execPath, [cli, ...args, ...quiet], options);
  return run(onPath('npm') ?? 'npm', [...args, ...quiet], options);
}

/** @returns {boolean} Debian or Ubuntu, as root: packages may be installed. */
export function mayUseApt() {
  return process.platform === 'linux' && process.getuid?.() === 0 && onPath('apt-get') !== null;
}

/** @param {string} file */
export const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'));

/** Ends the script with one sentence for people. */
export class Failed extends Error {}

/** @param {string} text */
export const lastLines = (text, count = 12) => text.trimEnd().split('\n').slice(-count).join('\n');
