// @ts-check
// A real VS Code: its server on 127.0.0.1, in folders of its own that go away with it. For the demo and the tests.

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childEnv, Failed, lastLines, run } from './machine.mjs';

/** What a fresh window needs to be quiet: no welcome page, no telemetry, no updates, no built-in AI. */
export const quietSettings = {
  'telemetry.telemetryLevel': 'off',
  'window.autoDetectColorScheme': true,
  'workbench.startupEditor': 'none',
  'workbench.tips.enabled': false,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'chat.disableAIFeatures': true,
  'update.mode': 'none',
  'extensions.autoUpdate': false,
  'extensions.autoCheckUpdates': false,
  'extensions.ignoreRecommendations': true,
  'git.autofetch': false,
  'git.openRepositoryInParentFolders': 'never',
  'window.commandCenter': false,
};

/**
 * @typedef {object} ServerOptions
 * @property {string} server the folder with `out/server-main.js`
 * @property {string} node Node ≥ 22
 * @property {string} [vsix] an extension to install before the start
 * @property {Record<string, unknown>} [settings] of the user and of the machine, on top of `quietSettings`
 * @property {Record<string, string | undefined>} [env] on top of ours; undefined takes a variable away
 * @property {boolean} [testDriver] let the page run tests inside the extension host; no notifications are shown then
 * @property {boolean} [trustAll] default true: every folder is trusted
 *
 * @typedef {object} Server
 * @property {string} origin such as `http://127.0.0.1:41234`
 * @property {number} port
 * @property {string} home the temporary folder of all its files
 * @property {string} userData where its `User/settings.json` and logs are
 * @property {string} mark the value of `DROVER_RUN` that every process of this server carries
 * @property {(folder: string) => string} url the address that opens a folder
 * @property {() => string} output the last of what it printed
 * @property {() => Promise<void>} stop ends it and all it started, and removes its files. May be called again.
 */

/**
 * Starts a server; resolves when it answers. It dies with the process that started it.
 * Throws `Failed` with its last words if it does not come up within 60 s.
 * @param {ServerOptions} options
 * @returns {Promise<Server>}
 */
export async function startServer({
  server,
  node,
  vsix,
  settings = {},
  env = {},
  testDriver = false,
  trustAll = true,
}) {
  // Short: the names of its sockets must fit into 107 bytes.
  const home = await mkdtemp(join(tmpdir(), 'drv-'));
  const mark = randomUUID();
  const at = (/** @type {string} */ name) => join(home, name);
  for (const name of ['home', 'run', 'extensions', 'server', join('user', 'User'), join('user', 'Machine')]) {
    await mkdir(at(name), { recursive: true, mode: 0o700 });
  }
  // A setting that no workspace and no browser may set is read from the machine's file alone, others from the user's.
  for (const file of [join('User', 'settings.json'), join('Machine', 'settings.json')]) {
    await writeFile(join(home, 'user', file), JSON.stringify({ ...quietSettings, ...settings }, null, 2));
  }

  const environment = childEnv({
    HOME: at('home'),
    XDG_RUNTIME_DIR: at('run'),
    // HOME is not the person's own here, but the container engine is.
    DOCKER_CONFIG: process.env.DOCKER_CONFIG ?? join(homedir(), '.docker'),
    EXTENSIONS_GALLERY: '{"serviceUrl":""}',
    DROVER_RUN: mark,
    ...env,
  });
  for (const name of Object.keys(environment)) if (environment[name] === undefined) delete environment[name];

  const main = join(server, 'out', 'server-main.js');
  const folders = [
    '--server-data-dir',
    at('server'),
    '--user-data-dir',
    at('user'),
    '--extensions-dir',
    at('extensions'),
  ];
  if (vsix) {
    const args = [main, ...folders, '--accept-server-license-terms', '--install-extension', vsix, '--force'];
    const installed = await run(node, args, { env: environment, timeoutMs: 60_000 });
    if (installed.code !== 0) throw new Failed(`VS Code could not install ${vsix}:\n${lastLines(installed.output)}`);
  }

  const port = await freePort();
  const flags = [
    '--host',
    '127.0.0.1',
    '--port',
    String(port),
    '--without-connection-token',
    '--accept-server-license-terms',
    '--telemetry-level',
    'off',
  ];
  if (trustAll) flags.push('--disable-workspace-trust');
  if (testDriver) flags.push('--enable-smoke-test-driver');

  const guard = join(dirname(fileURLToPath(import.meta.url)), 'guard.mjs');
  const child = spawn(process.execPath, [guard, home, mark, node, main, ...folders, ...flags], {
    env: environment,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let output = '';
  const take = (/** @type {Buffer} */ chunk) => {
    output = (output + chunk.toString()).slice(-100_000);
  };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  const gone = new Promise((resolve) => child.once('close', () => resolve(true)));
  const stop = async () => {
    child.stdin.destroy();
    await gone;
  };

  const origin = `http://127.0.0.1:${port}`;
  if (!(await answers(`${origin}/version`, gone))) {
    await stop();
    throw new Failed(`The VS Code server did not start:\n${lastLines(output)}`);
  }
  const url = (/** @type {string} */ folder) => `${origin}/?folder=${encodeURIComponent(folder)}`;
  return { origin, port, home, userData: at('user'), mark, url, output: () => output, stop };
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

/** Asks until there is an answer, for at most 60 s. @param {string} url @param {Promise<unknown>} gone */
async function answers(url, gone) {
  let dead = false;
  gone.then(() => {
    dead = true;
  });
  const until = Date.now() + 60_000;
  while (!dead && Date.now() < until) {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
      if (response.ok) return true;
    } catch {
      // Not yet.
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return false;
}
