import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

/*
 * On Linux the runtime starts a small relay (socat) for its network rules, and a killed process can't end its own.
 * So each process notes its relay's socket, and the next one ends the relays of those that are no more.
 */

const Note = z.object({ pid: z.number().int().positive(), socket: z.string().startsWith('/') });

/** Notes this process's relay. */
export function noteBridge(folder: string, socket: string | undefined): void {
  if (socket === undefined) return;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, `${process.pid}.json`), JSON.stringify({ pid: process.pid, socket }));
}

export const forgetBridge = (folder: string): void => rmSync(join(folder, `${process.pid}.json`), { force: true });

/** Ends the relays whose process has died. */
export function reapBridges(folder: string): void {
  for (const name of list(folder)) {
    try {
      const note = Note.parse(JSON.parse(readFileSync(join(folder, name), 'utf8')));
      if (alive(note.pid)) continue;
      endRelay(note.socket);
      rmSync(note.socket, { force: true });
    } catch {
      // An unreadable note names nothing that could be ended.
    }
    rmSync(join(folder, name), { force: true });
  }
}

function endRelay(socket: string): void {
  for (const entry of list('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const [program, address] = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0');
      if (program?.endsWith('socat') && address?.startsWith(`UNIX-LISTEN:${socket},`)) process.kill(Number(entry));
    } catch {
      // It ended while it was looked at, or is another user's.
    }
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
