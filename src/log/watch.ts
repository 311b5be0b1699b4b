import { existsSync, type FSWatcher, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { type Disposable, disposable } from '../protocol/disposable.ts';

/** Where the system can't tell us of changes, we look this often. */
const POLL_MS = 1000;
/** Changes of a folder that does not exist yet are looked for in the nearest one that does, at most so far up. */
const MAX_PARENTS = 4;

/**
 * Calls back when something may have changed in a folder: with the name, or null when any may have.
 * The folder need not exist yet, and may be deleted and made again. Calls too often rather than too rarely.
 */
export function watchFolder(path: string, onChange: (name: string | null) => void): Disposable {
  const watching = new FolderWatch(path, onChange);
  return disposable(() => watching.dispose());
}

class FolderWatch implements Disposable {
  readonly #path: string;
  readonly #onChange: (name: string | null) => void;
  #watcher: FSWatcher | undefined;
  #poll: NodeJS.Timeout | undefined;
  /** The folder being watched, and which of that name: one made anew has another inode. */
  #watched = '';
  #inode = 0;
  #disposed = false;

  constructor(path: string, onChange: (name: string | null) => void) {
    this.#path = path;
    this.#onChange = onChange;
    this.#attach();
  }

  dispose(): void {
    this.#disposed = true;
    this.#detach();
  }

  #detach(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    clearInterval(this.#poll);
    this.#poll = undefined;
  }

  #attach(): void {
    this.#detach();
    if (this.#disposed) return;
    const target = nearest(this.#path);
    try {
      this.#watcher = watch(target, { persistent: false }, (kind, name) => this.#changed(kind, name));
      this.#watcher.on('error', () => this.#fallBack());
      this.#watched = target;
      this.#inode = inodeOf(target);
    } catch {
      this.#fallBack();
    }
    // It may have appeared between the look and the watch.
    if (!this.#poll && nearest(this.#path) !== target) this.#attach();
  }

  /** No more watches to be had, or a file system that has none: look from time to time instead. */
  #fallBack(): void {
    this.#detach();
    if (this.#disposed) return;
    this.#poll = setInterval(() => this.#onChange(null), POLL_MS);
    this.#poll.unref();
  }

  #changed(kind: string, name: string | null): void {
    if (this.#disposed) return;
    // A file in it was written: the folder is still where it was. A log is written so often that looking would cost.
    if (kind === 'change' && name !== null && this.#watched === this.#path) {
      this.#onChange(name);
      return;
    }
    const before = this.#watched;
    const same = nearest(this.#path) === before && inodeOf(before) === this.#inode;
    if (same && before === this.#path) this.#onChange(name);
    if (same) return;
    this.#attach();
    // A change in a parent matters only if it is about our folder.
    if (before === this.#path || this.#watched === this.#path) this.#onChange(null);
  }
}

function nearest(path: string): string {
  let folder = path;
  for (let up = 0; up < MAX_PARENTS && !existsSync(folder); up++) folder = dirname(folder);
  return folder;
}

const inodeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.ino ?? 0;

/** Runs `act` at once, and once more after `quietMs` however often it is asked for in between. */
export class Debounce implements Disposable {
  readonly #quietMs: number;
  readonly #act: () => void;
  #timer: NodeJS.Timeout | undefined;
  #again = false;

  constructor(quietMs: number, act: () => void) {
    this.#quietMs = quietMs;
    this.#act = act;
  }

  run(): void {
    if (this.#timer) {
      this.#again = true;
      return;
    }
    this.#again = false;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#again) this.run();
    }, this.#quietMs);
    this.#timer.unref();
    this.#act();
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#again = false;
  }
}
