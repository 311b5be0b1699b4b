import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: 'pipe', timeout: 20_000 });

/** Only root on Linux may mount a disk that is really full one day. */
export function canMount(): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  const place = mkdtempSync(join(tmpdir(), 'drover-mount-'));
  try {
    mountMemory(place, 64);
    unmount(place);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** Mounts a file system in memory, of so many KiB, on a folder; made if missing. */
export function mountMemory(place: string, kib: number): void {
  mkdirSync(place, { recursive: true });
  run('mount', '-t', 'tmpfs', '-o', `size=${kib}k`, 'tmpfs', place);
}

export function unmount(place: string): void {
  try {
    run('umount', place);
  } catch {
    // Still in use: it goes when its last user does.
    run('umount', '--lazy', place);
  }
}

/** Writes a file until there is no more room. */
export function fill(path: string): void {
  const file = openSync(path, 'w');
  const piece = Buffer.alloc(4096);
  try {
    for (let n = 0; n < 100_000; n++) if (writeSync(file, piece) < piece.length) break;
  } catch {
    // It is full: that was the aim.
  } finally {
    closeSync(file);
  }
}
