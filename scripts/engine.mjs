// Sees to it that a container engine answers, and that the operating system's own sandbox can start.
// No dependencies, Node 20 or newer: it runs before anything is installed.
//   node scripts/engine.mjs [--no-install] [--os-sandbox]

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { aptInstall } from './apt.mjs';
import { Failed, mayUseApt } from './machine.mjs';

const SOCKET = '/var/run/docker.sock';
/** Only root starts an engine, and there is one engine per machine: its images belong to no clone and no HOME. */
const CACHE = '/var/cache/drover';
const ADDRESS_POOLS = ['base=172.17.0.0/16,size=24', 'base=172.28.0.0/14,size=24'];

const isRoot = () => process.getuid?.() === 0;
const has = (program) => spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0;

/** Asks the engine that DOCKER_HOST, the docker context or the usual socket names. Resolves to its version, or null. */
export async function engineVersion() {
  if (has('docker')) {
    const asked = spawnSync('docker', ['version', '--format', '{{.Server.Version}}'], {
      encoding: 'utf8',
      timeout: 10_000,
    });
    return asked.status === 0 && asked.stdout.trim() ? asked.stdout.trim() : null;
  }
  const host = process.env.DOCKER_HOST;
  if (host && !host.startsWith('unix://')) return null;
  return await new Promise((resolve) => {
    const socketPath = host ? host.slice('unix://'.length) : SOCKET;
    const ask = request({ socketPath, path: '/version', timeout: 5_000 }, (response) => {
      let body = '';
      response.on('data', (chunk) => {
        body += chunk;
      });
      response.on('end', () => resolve(/"Version":"([^"]+)"/.exec(body)?.[1] ?? null));
    });
    ask.on('error', () => resolve(null));
    ask.on('timeout', () => ask.destroy());
    ask.end();
  });
}

/**
 * An engine that answers is used as it is. On Debian or Ubuntu as root one is installed (if `install`) and started.
 * `how` says in words what serves now, `why` what to do where nothing does.
 * @param {{ install?: boolean, log?: (line: string) => void, cacheFolder?: string }} options
 * @returns {Promise<{ ok: boolean, how: string, why: string }>}
 */
export async function ensureEngine({ install = true, log = console.error, cacheFolder = CACHE } = {}) {
  const found = await engineVersion();
  if (found) return { ok: true, how: `container engine ${found} was already running`, why: '' };
  if (process.env.DOCKER_HOST)
    return failed(
      `DOCKER_HOST is ${process.env.DOCKER_HOST} but no engine answers there; start it or unset DOCKER_HOST.`,
    );
  if (process.platform !== 'linux' || !isRoot())
    return failed(
      'No container engine answers; start Docker, or install it (https://docs.docker.com/engine/install), and try again.',
    );
  if (!has('dockerd')) {
    if (!install)
      return failed('No container engine is installed; run this again with permission to install docker.io.');
    const problem = await installed(
      ['docker.io'],
      'sandboxes are containers, and no container engine is installed',
      log,
    );
    if (problem) return failed(problem);
  }
  return await startEngine(cacheFolder, log);
}

const failed = (why) => ({ ok: false, how: '', why });

/** Installs Debian packages. Resolves to what went wrong in words, or undefined. */
async function installed(packages, why, log) {
  if (!mayUseApt()) return `Please install ${packages.join(', ')} with this system's package manager: ${why}.`;
  log(`Installing ${packages.join(', ')} with apt-get: ${why}.`);
  try {
    await aptInstall(packages);
    return undefined;
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    return `${error.message}\nInstall it by hand and try again.`;
  }
}

/** Starts dockerd detached, unless one is there already: a second one would take the first one's bridge away. */
async function startEngine(cacheFolder, log) {
  if (existsSync('/run/systemd/system')) {
    log('Starting the docker service with systemctl.');
    spawnSync('systemctl', ['start', 'docker'], { timeout: 60_000 });
    return await answering('container engine, started with systemctl', 'see: systemctl status docker');
  }
  mkdirSync(cacheFolder, { recursive: true });
  const logFile = join(cacheFolder, 'dockerd.log');
  const release = takeStartLock(join(cacheFolder, 'dockerd.starting'));
  try {
    if (!release || isAlive('dockerd'))
      return await answering('container engine that was just starting', `see ${logFile}`);
    // What a killed engine leaves keeps the next one from starting, the more so if its pid is another's by now.
    rmSync('/var/run/docker.pid', { force: true });
    if (!isAlive('containerd')) rmSync('/var/run/docker/containerd/containerd.pid', { force: true });
    log(
      `Starting dockerd: no container engine is running. Its images go to ${join(cacheFolder, 'docker')}, its log to ${logFile}.`,
    );
    const out = openSync(logFile, 'a');
    const daemon = spawn('dockerd', daemonArguments(cacheFolder), { detached: true, stdio: ['ignore', out, out] });
    daemon.on('error', () => {});
    daemon.unref();
    return await answering(`container engine, started as process ${daemon.pid}`, `see ${logFile}`);
  } finally {
    release?.();
  }
}

function daemonArguments(cacheFolder) {
  return [
    ...['-H', `unix://${SOCKET}`, '--data-root', join(cacheFolder, 'docker'), '--storage-driver', 'overlay2'],
    ...['--mtu', '1400'],
    ...ADDRESS_POOLS.flatMap((pool) => ['--default-address-pool', pool]),
  ];
}

async function answering(how, hint) {
  for (let i = 0; i < 150; i++) {
    const version = await engineVersion();
    if (version) return { ok: true, how: `${how} (${version})`, why: '' };
    await sleep(200);
  }
  return failed(`dockerd was started but did not answer within 30 s; ${hint}.`);
}

/** Two scripts that start together: one wins, the other waits for it. Returns how to let go, or null if another has it. */
function takeStartLock(file) {
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      writeFileSync(file, String(process.pid), { flag: 'wx' });
      return () => rmSync(file, { force: true });
    } catch {
      if (pidAlive(file)) return null;
      rmSync(file, { force: true });
    }
  }
  return null;
}

function pidAlive(file) {
  try {
    return isRunning(readFileSync(file, 'utf8').trim());
  } catch {
    return false;
  }
}

/** One that has ended but that nobody has asked for its end (a zombie) still has its entry: it runs no more. */
function isRunning(pid) {
  // The name before the state stands in parentheses and may hold anything.
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return !/^\) [ZX]/.test(stat.slice(stat.lastIndexOf(')')));
}

/** @param {string} name of a program, as the kernel knows it */
const isAlive = (name) =>
  readdirSync('/proc').some((entry) => {
    if (!/^\d+$/.test(entry)) return false;
    try {
      return readFileSync(`/proc/${entry}/comm`, 'utf8').trim() === name && isRunning(entry);
    } catch {
      return false;
    }
  });

/**
 * What the operating system's own sandbox needs on Linux: bubblewrap, socat, ripgrep.
 * @param {{ install?: boolean, log?: (line: string) => void }} options
 * @returns {Promise<{ ok: boolean, how: string, why: string }>}
 */
export async function ensureOsSandbox({ install = true, log = console.error } = {}) {
  if (process.platform === 'darwin') return { ok: true, how: 'sandbox-exec, part of macOS', why: '' };
  if (process.platform !== 'linux') return failed('There is no operating system sandbox for this platform.');
  const programs = { bwrap: 'bubblewrap', socat: 'socat', rg: 'ripgrep' };
  const missing = Object.entries(programs).filter(([program]) => !has(program));
  if (missing.length > 0) {
    const packages = missing.map(([, name]) => name);
    if (!install) return failed(`Please install ${packages.join(', ')}.`);
    const problem = await installed(packages, 'the sandbox without an engine is made of them', log);
    if (problem) return failed(problem);
  }
  return { ok: true, how: 'bubblewrap, socat and ripgrep', why: '' };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const install = !process.argv.includes('--no-install');
  const ensure = process.argv.includes('--os-sandbox') ? ensureOsSandbox : ensureEngine;
  const result = await ensure({ install, log: console.error });
  console.log(result.ok ? result.how : result.why);
  process.exitCode = result.ok ? 0 : 1;
}
