// @ts-check
// Runs one program and sees to its end: when whoever started this script dies, however it dies, the pipe to our
// standard input closes; then the program, all it started and its temporary folder go too.
//
//   node guard.mjs FOLDER MARK PROGRAM ARGS…     MARK: an environment variable's value that only its processes carry

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { endGroup } from './machine.mjs';

const [folder = '', mark = '', program = '', ...args] = process.argv.slice(2);
const child = spawn(program, args, { detached: process.platform !== 'win32', stdio: ['ignore', 'inherit', 'inherit'] });
const ended = new Promise((resolve) => {
  child.once('exit', resolve);
  child.once('error', resolve);
});

const asked = new Promise((resolve) => {
  process.stdin.once('end', resolve).once('error', resolve).resume();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, resolve);
});

await Promise.race([ended, asked]);
endGroup(child, 'SIGTERM');
await Promise.race([ended, sleep(3_000)]);
endGroup(child, 'SIGKILL');
for (const pid of marked()) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}
await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
process.exit(0);

/** Processes that left the group but still carry our mark. Linux only; elsewhere the group has to do. */
function marked() {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid && environmentOf(pid).includes(mark));
}

/** @param {number} pid */
function environmentOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8');
  } catch {
    return '';
  }
}
