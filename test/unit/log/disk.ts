import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { fill, canMount as mayMount, mountMemory, unmount } from '../../support/memory-disk.ts';
import { temporary } from './kit.ts';

export { fill };

const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: 'pipe', timeout: 20_000 });

/** Real full and failing disks need mounts, which only root on Linux may make; elsewhere these tests are skipped. */
export const canMount = mayMount();

/** A file system in memory of so many KiB; gone when the test is over. */
export async function smallDisk(kib: number): Promise<string> {
  const place = join(await temporary(), 'small');
  mountMemory(place, kib);
  onTestFinished(() => unmount(place));
  return place;
}

export const makeReadOnly = (place: string) => run('mount', '-o', 'remount,ro', place);

export interface FailingDisk {
  /** Where it is mounted. */
  place: string;
  /** From now on it takes writes, but can't make them durable. */
  fail(): void;
  mend(): void;
  /** Forgets all that the system has not written to the device, as a power cut does. */
  powerCut(): void;
}

/** A disk whose device is a sparse file on a disk that is too small for it. */
export async function failingDisk(): Promise<FailingDisk> {
  const below = await smallDisk(8 * 1024);
  const device = join(below, 'device');
  const place = join(await temporary(), 'failing');
  mkdirSync(place);
  run('truncate', '-s', '32M', device);
  run('mke2fs', '-q', '-F', '-t', 'ext2', device);
  const mount = () => run('mount', '-o', 'loop', device, place);
  mount();
  onTestFinished(() => unmount(place));
  const filler = join(below, 'filler');
  return {
    place,
    fail: () => fill(filler),
    mend: () => rmSync(filler, { force: true }),
    powerCut: () => {
      run('umount', place);
      mount();
    },
  };
}
