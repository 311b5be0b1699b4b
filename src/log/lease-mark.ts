import { closeSync, fstatSync, openSync, type Stats, statSync } from 'node:fs';

/** Tells whether a file is still the very one that was put in its place. */
export interface Mark {
  /** False also where nobody can say. */
  holds(): boolean;
  close(): void;
}

/**
 * Marks a file that is about to get its name by `put`. It is asked before every write, so it is asked of an open
 * descriptor, which takes a fifth of a look by path: a file that was replaced or removed has no name left, and whatever
 * else is done to it changes its times. Windows lets nobody replace a file that is open: there the path is looked at.
 * @param draft where the file is now
 * @param path its name to be
 * @throws what `put` or the system throws
 */
export async function markOf(draft: string, path: string, put: () => Promise<void>): Promise<Mark> {
  if (process.platform === 'win32') {
    // Renaming changes neither number nor time, and what stands at `path` afterwards may already be another's.
    const before = looks(statSync(draft));
    await put();
    return { holds: () => looks(statSync(path, { throwIfNoEntry: false })) === before, close: () => undefined };
  }
  const mark = new OpenMark(openSync(draft, 'r'));
  try {
    await put();
  } catch (error) {
    mark.close();
    throw error;
  }
  mark.set();
  return mark;
}

const looks = (file: Stats | undefined): string => (file ? `${file.ino} ${file.mtimeMs} ${file.size}` : '');

class OpenMark implements Mark {
  readonly #fd: number;
  #changed = Number.NaN;
  #isOpen = true;

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** It has its name now, or had it for a moment. */
  set(): void {
    this.#changed = fstatSync(this.#fd).ctimeMs;
  }

  holds(): boolean {
    if (!this.#isOpen) return false;
    try {
      const { nlink, ctimeMs } = fstatSync(this.#fd);
      return nlink === 1 && ctimeMs === this.#changed;
    } catch {
      // On a network disk, a file that another machine has removed.
      return false;
    }
  }

  close(): void {
    if (this.#isOpen) closeSync(this.#fd);
    this.#isOpen = false;
  }
}
