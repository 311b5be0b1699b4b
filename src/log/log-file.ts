import {
  closeSync,
  constants,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  openSync,
  readSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { AppendFailed } from './log.ts';
import { SyncPace } from './sync-pace.ts';

/** One for all logs of this process: it is the event loop that is held, and mostly one disk. */
const pace = new SyncPace();

/**
 * The file a log is appended to. Each append is one `write()` on an `O_APPEND` descriptor, made synchronously:
 * it only copies into the system's cache, and nothing can come between the check of the lease and the write.
 * The sync, which may take as long as the disk likes, is mostly not: another thread waits for it.
 */
export class LogFile {
  readonly #path: string;
  readonly #fd: number;

  private constructor(path: string, fd: number) {
    this.#path = path;
    this.#fd = fd;
  }

  /** Opens a log for appending. With `create` it must not exist, without it must. Throws the system's error. */
  static open(path: string, options: { create: boolean }): LogFile {
    // For reading too, because a torn or failed end has to be read back.
    const flags = constants.O_RDWR | constants.O_APPEND | (options.create ? constants.O_CREAT | constants.O_EXCL : 0);
    return new LogFile(path, openSync(path, flags));
  }

  /** In bytes, now. */
  size(): number {
    return fstatSync(this.#fd).size;
  }

  /**
   * Appends all of `bytes` or nothing: a write that ends short, or fails, is cut off again.
   * @param end where the file ends before the write, in bytes
   * @throws the system's error, or AppendFailed on a short write
   */
  append(bytes: Uint8Array, end: number): void {
    let written = 0;
    try {
      written = writeSync(this.#fd, bytes);
    } finally {
      if (written < bytes.length) this.#cutBack(end, written);
    }
    if (written < bytes.length) {
      throw new AppendFailed(
        `The session could not be saved: only ${written} of ${bytes.length} bytes fitted on the disk; free some space, then go on with the session.`,
      );
    }
  }

  /** Takes back a partial write, unless somebody else has written meanwhile: then it stays as a torn line. */
  #cutBack(end: number, written: number): void {
    if (written > 0 && this.size() === end + written) this.truncate(end);
  }

  /** Makes everything written so far durable; unless the disk is very quick, the event loop goes on meanwhile. */
  sync(done: (error: Error | null) => void): void {
    const here = pace.isHere;
    const started = performance.now();
    const ended = (error: Error | null) => {
      pace.took(performance.now() - started, here);
      done(error);
    };
    if (here) ended(this.#syncHere());
    else fdatasync(this.#fd, ended);
  }

  #syncHere(): Error | null {
    try {
      fdatasyncSync(this.#fd);
      return null;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  /**
   * After a failed sync: takes the bytes from `keep` on out of the file, and writes those from `durable` to `keep`
   * once more, because the system forgets what it failed to write and would call it durable next time.
   * @throws if the file is not `end` bytes long, or can't be written
   */
  takeBack(durable: number, keep: number, end: number): void {
    if (this.size() !== end) throw new AppendFailed('The session log was changed by another program.');
    const again = this.read(durable, keep);
    this.truncate(durable);
    if (again.length > 0) this.append(again, durable);
  }

  /** By path, because Windows does not let an appending descriptor do it. */
  truncate(end: number): void {
    truncateSync(this.#path, end);
  }

  /** The bytes from `start` to `end`, or fewer if the file is shorter. */
  read(start: number, end: number): Buffer {
    const bytes = Buffer.allocUnsafe(end - start);
    let length = 0;
    while (length < bytes.length) {
      const count = readSync(this.#fd, bytes, length, bytes.length - length, start + length);
      if (count === 0) break;
      length += count;
    }
    return bytes.subarray(0, length);
  }

  close(): void {
    closeSync(this.#fd);
  }
}
