// @ts-check
// Makes this machine ready: packages, Node 24, a browser, a VS Code server, a container engine, the sample's image.
// Needs nothing but Node ≥ 20 and npm, says what it installs and why, and does nothing where all is there already.

import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { aptInstall } from './apt.mjs';
import { ensureEngine, ensureOsSandbox } from './engine.mjs';
import { ensureSampleImage } from './image.mjs';
import {
  bin,
  cache,
  canRun,
  Failed,
  lastLines,
  mayUseApt,
  npm,
  onPath,
  readJson,
  root,
  run,
  useNodeFrom,
} from './machine.mjs';

/** The npm package that carries VS Code's own server and workbench, and which VS Code that is. */
export const codeServer = { package: 'code-server@4.139.1', vscode: '1.139.1' };

/**
 * @typedef {'packages' | 'node24' | 'browser' | 'vscode' | 'engine' | 'image' | 'osSandbox' | 'busybox' | 'compose' | 'ssh' | 'podman' | 'debian'} Part
 * @typedef {{ have: Partial<Record<Part, string>>, missing: Partial<Record<Part, string>> }} Prepared
 *   `have`: what serves, such as the path of the browser. `missing`: one sentence each, what to do about it.
 */

/**
 * Gets the parts in order, later ones even if an earlier one is missing. Throws `Failed` only for the npm packages:
 * without them nothing goes on.
 * @param {{ need: readonly Part[], log?: (line: string) => void }} options
 * @returns {Promise<Prepared>}
 */
export async function prepare({ need, log = (line) => console.log(line) }) {
  /** @type {Prepared} */
  const prepared = { have: {}, missing: {} };
  for (const part of order.filter((name) => need.includes(name))) {
    if (part === 'image' && prepared.missing.engine) {
      prepared.missing.image = prepared.missing.engine;
      continue;
    }
    try {
      prepared.have[part] = await makers[part](log);
    } catch (error) {
      if (part === 'packages') throw error;
      prepared.missing[part] = error instanceof Error ? error.message : String(error);
    }
  }
  return prepared;
}

/** @type {readonly Part[]} */
const everybodys = ['packages', 'node24', 'browser', 'vscode', 'engine', 'image', 'osSandbox', 'busybox'];
/** @type {readonly Part[]} */
const order = [...everybodys, 'compose', 'ssh', 'podman', 'debian'];

/** @typedef {(line: string) => void} Log */
/** @type {Record<Part, (log: Log) => Promise<string>>} */
const makers = {
  packages: installPackages,
  node24: findNode,
  browser: findBrowser,
  vscode: installServer,
  engine: async (log) => orFail(await ensureEngine({ install: mayUseApt(), log })).how,
  image: makeSampleImage,
  osSandbox: async (log) => orFail(await ensureOsSandbox({ install: mayUseApt(), log })).how,
  busybox: findPrograms({
    programs: ['busybox'],
    packages: ['busybox'],
    why: 'the tools are tested in a container that has nothing else',
  }),
  compose: findCompose,
  ssh: findPrograms({
    programs: ['ssh', 'sshd'],
    packages: ['openssh-client', 'openssh-server'],
    why: 'the tests reach an engine over ssh, through a server of their own',
    services: true,
  }),
  podman: findPrograms({
    programs: ['podman', 'runc', 'newuidmap', 'rootlesskit'],
    packages: ['podman', 'runc', 'uidmap', 'rootlesskit'],
    why: "the tests use Podman's socket, and engines without root",
    services: true,
  }),
  debian: findPrograms({
    programs: ['mmdebstrap'],
    packages: ['mmdebstrap'],
    why: 'the tests install packages in an image of Debian',
  }),
};

/** @template {{ ok: boolean, why: string }} T @param {T} result @returns {T} */
function orFail(result) {
  if (!result.ok) throw new Failed(result.why);
  return result;
}

/** The npm packages of the lock file. @type {(log: Log) => Promise<string>} */
async function installPackages(log) {
  const folder = join(root, 'node_modules');
  if (packagesMatchLock()) return folder;
  log(
    'Installing the npm packages of package-lock.json (compiler, bundler, test runners and the libraries Drover ships).',
  );
  // `npm ci` deletes the running Node on Windows, where a running program can't be deleted.
  const command = process.platform === 'win32' && existsSync(folder) ? ['install', '--no-save'] : ['ci'];
  const result = await npm(command, { timeoutMs: 900_000 });
  if (result.code !== 0)
    throw new Failed(`npm ${command.join(' ')} failed, so nothing else can run:\n${lastLines(result.output)}`);
  return folder;
}

/** Compares what npm says it installed with the lock file: times of files mean nothing after a clone. */
function packagesMatchLock() {
  const installed = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(installed)) return false;
  const have = readJson(installed).packages;
  const wanted = Object.entries(readJson(join(root, 'package-lock.json')).packages);
  return wanted.every(([path, entry]) => {
    // Of an optional package only the one for this machine is installed.
    if (path === '' || (entry.optional && !have[path])) return true;
    return have[path]?.version === entry.version && existsSync(join(root, path));
  });
}

/** A Node that runs our tools, the newest of those at hand. @type {(log: Log) => Promise<string>} */
async function findNode(log) {
  const ours = join(bin, process.platform === 'win32' ? 'node.cmd' : 'node');
  if ((await majorOf(ours)) >= 22) return ours;
  if (Number.parseInt(process.versions.node, 10) >= 22) return process.execPath;
  // npm may be set to run no install scripts; then the package `node` is there without its binary.
  const wanted = readJson(join(root, 'package-lock.json')).packages['node_modules/node'].version;
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  const home = join(cache, `node-${wanted}`);
  const folder = join(home, 'node_modules', name, 'bin');
  const node = join(folder, process.platform === 'win32' ? 'node.exe' : 'node');
  if (!canRun(node)) {
    log(`Installing Node ${wanted} into ${home}, as the tools need Node 22 or newer and this is ${process.version}.`);
    await intoCache(home, (partial) =>
      npm(['install', '--prefix', partial, '--ignore-scripts', `${name}@${wanted}`], { cwd: partial }),
    );
  }
  useNodeFrom(folder);
  return node;
}

/** @param {string} node */
async function majorOf(node) {
  const { code, output } = await run(node, ['--version'], { timeoutMs: 20_000 });
  return code === 0 ? Number.parseInt(output.slice(1), 10) : 0;
}

/**
 * Finds programs that some tests want, or installs them with apt-get; `services`: those that come with services, which
 * would start at once, only where the machine is CI's.
 * @param {{ programs: string[], packages: string[], why: string, services?: true }} wanted
 * @returns {(log: Log) => Promise<string>}
 */
function findPrograms({ programs, packages, why, services }) {
  const missing = () => programs.filter((name) => !onPath(name));
  return async (log) => {
    if (missing().length > 0 && mayUseApt() && (!services || process.env.CI === 'true')) {
      log(`Installing ${packages.join(' and ')} with apt-get: ${why}.`);
      await aptInstall(packages);
    }
    if (missing().length > 0) throw new Failed(`${missing().join(' and ')} not found; install it: ${why}.`);
    return programs.join(' and ');
  };
}

/** Compose, as a plugin of the docker CLI or as a program of its own. @type {(log: Log) => Promise<string>} */
async function findCompose(log) {
  const plugin = await run('docker', ['compose', 'version'], { timeoutMs: 20_000 }).catch(() => undefined);
  if (plugin?.code === 0) return 'docker compose';
  const why = 'the tests make dev containers of Compose services';
  return findPrograms({ programs: ['docker-compose'], packages: ['docker-compose'], why })(log);
}

/** Chromium, or a relative that speaks the same protocol. @type {(log: Log) => Promise<string>} */
async function findBrowser(log) {
  const named = process.env.CHROME_PATH;
  if (named && !canRun(named)) throw new Failed(`CHROME_PATH names ${named}, which can't be run; correct or unset it.`);
  const found = named || browserOfThisMachine();
  if (found) return found;
  if (!mayUseApt()) {
    throw new Failed('No Chromium, Chrome or Edge was found; install one, or name its program in CHROME_PATH.');
  }
  log('Installing Chromium with apt-get, as the tests and the headless demo look at a real browser.');
  // Without any font, text would be boxes.
  await aptInstall(['chromium', 'fonts-dejavu-core']);
  const installed = browserOfThisMachine();
  if (installed) return installed;
  throw new Failed('Chromium was installed but its program is not on PATH; name it in CHROME_PATH.');
}

function browserOfThisMachine() {
  const names = [
    'chromium',
    'chromium-browser',
    'google-chrome',
    'google-chrome-stable',
    'chrome',
    'microsoft-edge',
    'msedge',
  ];
  const places =
    process.platform === 'darwin'
      ? ['Google Chrome', 'Chromium', 'Microsoft Edge'].map((app) => `/Applications/${app}.app/Contents/MacOS/${app}`)
      : [process.env.PROGRAMFILES, process.env['PROGRAMFILES(X86)'], process.env.LOCALAPPDATA].flatMap((home) =>
          home
            ? [join(home, 'Google/Chrome/Application/chrome.exe'), join(home, 'Microsoft/Edge/Application/msedge.exe')]
            : [],
        );
  for (const file of [...names.map(onPath), ...places]) if (file && canRun(file)) return file;
  return null;
}

/**
 * The image that the sample's devcontainer.json names: made of this machine's own programs where that can be, else of
 * the public Node image. @type {(log: Log) => Promise<string>}
 */
async function makeSampleImage(log) {
  const made = await ensureSampleImage({ log });
  if (made.ok) return made.image;
  const docker = onPath('docker');
  if (!docker) throw new Failed(made.why);
  log(
    `Building the image ${made.image} on the public image node:24-bookworm: the sample's sandbox is a container of it.`,
  );
  const context = await mkdtemp(join(tmpdir(), 'drover-image-'));
  try {
    const user = 'dev:x:1000:1000:dev:/home/dev:/bin/bash';
    const steps = `echo '${user}' >> /etc/passwd && mkdir -p /home/dev && chown 1000:1000 /home/dev`;
    await writeFile(join(context, 'Dockerfile'), `FROM node:24-bookworm\nRUN ${steps}\nWORKDIR /workspace\n`);
    const built = await run(docker, ['build', '-t', made.image, context], { timeoutMs: 900_000 });
    if (built.code !== 0) throw new Failed(`${made.why}\n${lastLines(built.output, 4)}`);
    return made.image;
  } finally {
    await rm(context, { recursive: true, force: true });
  }
}

/** VS Code's own server and web workbench; returns the folder that has `out/server-main.js`. @type {(log: Log) => Promise<string>} */
async function installServer(log) {
  if (process.platform === 'win32') {
    throw new Failed('The VS Code server is not available on Windows; run this inside WSL, or use desktop VS Code.');
  }
  const home = join(cache, codeServer.package.replace('@', '-'));
  const server = join('node_modules', 'code-server', 'lib', 'vscode');
  if (existsSync(join(home, server, 'out', 'server-main.js'))) return join(home, server);
  log(
    `Installing the VS Code ${codeServer.vscode} server (npm package ${codeServer.package}, about 600 MB) into ${home}: a real VS Code to run Drover in.`,
  );
  // No install scripts: they would compile what the server does without.
  const plain = ['install', '--ignore-scripts'];
  await intoCache(home, async (partial) => {
    const steps = [
      { cwd: partial, args: [...plain, '--no-save', '--prefix', partial, codeServer.package] },
      { cwd: join(partial, server), args: [...plain, '--omit=dev'] },
      { cwd: join(partial, server, 'extensions'), args: [...plain, '--omit=dev'] },
    ];
    for (const { cwd, args } of steps) {
      const result = await npm(args, { cwd, timeoutMs: 900_000 });
      if (result.code !== 0) return result;
    }
    return { code: 0, output: '' };
  });
  return join(home, server);
}

/**
 * Fills a folder beside `home` and renames it when it is whole: an install that was interrupted leaves no half one.
 * @param {string} home
 * @param {(partial: string) => Promise<{ code: number, output: string }>} fill
 */
async function intoCache(home, fill) {
  await mkdir(cache, { recursive: true });
  await removeLeftovers(home);
  const partial = await mkdtemp(`${home}.partial-`);
  try {
    const result = await fill(partial);
    if (result.code !== 0) throw new Failed(`npm could not install into ${home}:\n${lastLines(result.output, 6)}`);
    await rm(home, { recursive: true, force: true });
    await rename(partial, home);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

/** What an install that was killed left behind; one that is still at work is younger. @param {string} home */
async function removeLeftovers(home) {
  for (const name of await readdir(cache)) {
    const folder = join(cache, name);
    if (!folder.startsWith(`${home}.partial-`)) continue;
    const { mtimeMs } = await stat(folder);
    if (Date.now() - mtimeMs > 3_600_000) await rm(folder, { recursive: true, force: true });
  }
}

/** What is missing, one line each. @param {Prepared} prepared */
export const describeMissing = (prepared) => Object.entries(prepared.missing).map(([part, why]) => `${part}: ${why}`);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const prepared = await prepare({ need: everybodys });
  for (const [part, what] of Object.entries(prepared.have)) console.log(`${part}: ${what}`);
  for (const line of describeMissing(prepared)) console.error(`missing ${line}`);
  process.exitCode = Object.keys(prepared.missing).length > 0 ? 1 : 0;
}
