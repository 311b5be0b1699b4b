import { Duplex } from 'node:stream';

/*
 * The host's end of a relay's standard input and output; relay/relay.c says what goes over it. What comes out of a
 * sandbox may be anything: a frame that does not fit ends the whole wire, and nothing is kept beyond the window.
 */

const KIND = { ready: 0, open: 1, data: 2, end: 3, reset: 4, credit: 5 } as const;
const HEAD = 8;
/** Largest body of a frame, bytes. */
const FRAME = 64 * 1024;
/** Bytes of one connection that may be under way one way. */
const WINDOW = 1024 * 1024;
const MOST_CONNECTIONS = 256;

export interface WireOptions {
  /** Writes to the relay's standard input. */
  send(bytes: Buffer): void;
  /** It listens inside: over the socket it was given, or over this wire. */
  onReady(way: 'socket' | 'frames'): void;
  onConnection(connection: Duplex): void;
  /** The other end does not keep to the rules: it is not to be read any further. */
  onBroken(why: string): void;
}

export class RelayWire {
  readonly #options: WireOptions;
  readonly #connections = new Map<number, WireConnection>();
  #rest: Buffer = Buffer.alloc(0);
  #broken = false;

  constructor(options: WireOptions) {
    this.#options = options;
  }

  /** Takes what the relay wrote to its standard output, in pieces of any size. */
  receive(chunk: Buffer): void {
    let data = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    while (!this.#broken && data.length >= HEAD) {
      const length = data.readUIntLE(4, 3);
      if (length > FRAME) this.#break(`a frame of ${length} bytes`);
      if (data.length < HEAD + length) break;
      this.#take(data.readUInt32LE(0), data[7] ?? 0, data.subarray(HEAD, HEAD + length));
      data = data.subarray(HEAD + length);
    }
    // A copy: otherwise a few bytes would keep a whole network buffer alive.
    this.#rest = Buffer.from(data);
  }

  /** Ends all connections: the relay is gone. */
  close(): void {
    for (const connection of this.#connections.values()) connection.gone();
    this.#connections.clear();
  }

  #take(id: number, kind: number, body: Buffer): void {
    if (kind === KIND.ready) this.#options.onReady(id === 0 ? 'socket' : 'frames');
    else if (kind === KIND.open) this.#open(id);
    else {
      // If there is none it was ended here while this was under way.
      const connection = this.#connections.get(id);
      if (connection) this.#takeFor(connection, kind, body);
    }
  }

  #takeFor(connection: WireConnection, kind: number, body: Buffer): void {
    if (kind === KIND.data) {
      if (!connection.data(Buffer.from(body))) this.#break('more bytes than the window holds');
    } else if (kind === KIND.end) connection.ended();
    else if (kind === KIND.reset) connection.gone();
    else if (kind === KIND.credit && body.length === 4) connection.credit(body.readUInt32LE(0));
    else this.#break(`a frame of kind ${kind}`);
  }

  #open(id: number): void {
    if (this.#connections.has(id) || this.#connections.size >= MOST_CONNECTIONS) {
      this.#break('a connection that can not be');
      return;
    }
    const connection = new WireConnection((kind, body) => this.#options.send(frame(id, KIND[kind], body)));
    this.#connections.set(id, connection);
    connection.once('close', () => this.#connections.delete(id));
    this.#options.onConnection(connection);
  }

  #break(why: string): void {
    this.#broken = true;
    this.close();
    this.#options.onBroken(why);
  }
}

function frame(id: number, kind: number, body: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(HEAD);
  head.writeUInt32LE(id, 0);
  head.writeUIntLE(body.length, 4, 3);
  head[7] = kind;
  return body.length > 0 ? Buffer.concat([head, body]) : head;
}

type Send = (kind: 'data' | 'end' | 'reset' | 'credit', body?: Buffer) => void;

/** One connection that a program inside opened. */
class WireConnection extends Duplex {
  readonly #send: Send;
  /** Bytes that may still be sent. */
  #window = WINDOW;
  /** Bytes that were received and not yet given credit for. */
  #owed = 0;
  #waiting: { rest: Buffer; done: (error?: Error | null) => void } | undefined;
  #over = false;

  constructor(send: Send) {
    super({ readableHighWaterMark: WINDOW, writableHighWaterMark: FRAME, allowHalfOpen: true });
    this.#send = send;
  }

  /** False if it is more than was allowed. */
  data(body: Buffer): boolean {
    this.#owed += body.length;
    if (this.#owed > WINDOW) return false;
    if (this.push(body)) this._read();
    return true;
  }

  ended(): void {
    this.push(null);
  }

  gone(): void {
    this.#over = true;
    this.destroy();
  }

  credit(bytes: number): void {
    this.#window = Math.min(WINDOW, this.#window + bytes);
    this.#pump();
  }

  override _read(): void {
    const owed = this.#owed;
    if (owed === 0 || this.#over) return;
    this.#owed = 0;
    const body = Buffer.alloc(4);
    body.writeUInt32LE(owed);
    this.#send('credit', body);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#waiting = { rest: chunk, done };
    this.#pump();
  }

  override _final(done: () => void): void {
    if (!this.#over) this.#send('end');
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const whole = this.readableEnded && this.writableFinished;
    if (!this.#over && !whole) this.#send('reset');
    this.#over = true;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.done(new Error('The connection ended.'));
    done(error);
  }

  #pump(): void {
    const waiting = this.#waiting;
    if (!waiting) return;
    while (waiting.rest.length > 0 && this.#window > 0) {
      const part = waiting.rest.subarray(0, Math.min(FRAME, this.#window));
      waiting.rest = waiting.rest.subarray(part.length);
      this.#window -= part.length;
      this.#send('data', part);
    }
    if (waiting.rest.length > 0) return;
    this.#waiting = undefined;
    waiting.done();
  }
}
