import type { OnReadOpts, Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Bytes that are read at once, and how many such pieces may wait for a slow reader. */
const PIECE = 256 * 1024;
const PIECES = 4;

/**
 * Passes on what a connection sends without looking at it, in large pieces whose memory is used again: a pipe would
 * take fresh memory for every 64 KB, which costs more than the passing on.
 */
export class BulkReader {
  /** For `net.connect`. Nothing is lost of what comes before `into` is called: it is not read. */
  readonly onread: OnReadOpts;
  readonly #free: Buffer[] = [];
  #made = 0;
  #to: Duplex | undefined;
  #from: Socket | undefined;
  #waits = false;

  constructor() {
    this.onread = { buffer: () => this.#piece(), callback: (bytes, piece) => this.#pass(bytes, piece) };
  }

  /** Begins. The end of one is the end of the other. */
  into(from: Socket, to: Duplex): void {
    this.#from = from;
    this.#to = to;
    from.once('end', () => to.end());
    from.resume();
  }

  #piece(): Buffer {
    const free = this.#free.pop();
    if (free) return free;
    this.#made++;
    return Buffer.allocUnsafeSlow(PIECE);
  }

  /** False: nothing more is read for now. */
  #pass(bytes: number, piece: Uint8Array): boolean {
    const whole = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    this.#to?.write(whole.subarray(0, bytes), () => {
      this.#free.push(whole);
      if (!this.#waits) return;
      this.#waits = false;
      this.#from?.resume();
    });
    this.#waits = this.#free.length === 0 && this.#made >= PIECES;
    return !this.#waits;
  }
}
