import { randomBytes } from 'node:crypto';
import type { ChannelOutput } from './channel-output.ts';
import { WireReader, WireWriter } from './channel-wire.ts';
import { pathSafe } from './runner.ts';
import type { Peeked, RunRequest, RunResult } from './sandbox.ts';

/** ms between asking a process group to end and killing it. */
const KILL_AFTER_MS = 2000;
/** ms. A command that was to end and of which nothing is heard for so long: the connection is of no use. */
const GRACE_MS = 10_000;
/** ms. A runner that can't fork tries for 15 s before it gives up. */
const SILENT_MS = 20_000;
/** ms from one look at what runs to the next, the last one over and over. */
const LOOKS = [15, 30, 60, 100, 150, 200];
/** ms. What follows a command sooner than this goes before the preparations for a next one. */
const QUIET_MS = 5;
/** An answer to a small question takes less, ms; the shells inside may be busy with other calls. */
const ANSWER_MS = 20_000;

/** The two ends of a runner's standard input and output. */
export interface Connection {
  write(data: Buffer | string): void;
  /** `end` is called once, however it ended: no reason given by an engine can be relied on. */
  listen(data: (chunk: Buffer) => void, end: () => void): void;
  /** The runner then finds its input ended; the commands go on. */
  destroy(): void;
  /** Whether this process must stay for it. */
  hold(needed: boolean): void;
}

/** The connection to the runner ended; what it ran may have gone on. */
export class ChannelEnded extends Error {
  /** What it said that is no answer: why it could not start. */
  readonly said: string;
  constructor(said: string) {
    super(`the connection to the sandbox's runner ended${said ? ` (${said})` : ''}`);
    this.said = said;
  }
}

/** The runner did not begin the command, and never will. */
export class NotBegun extends Error {
  readonly why: 'full' | 'fork' | 'decided';
  constructor(why: 'full' | 'fork' | 'decided') {
    super(`the command was not begun: ${why}`);
    this.why = why;
  }
}

export type Looked = 'absent' | 'running' | 'finished';

export interface Watching {
  output: ChannelOutput;
  cwd?: string;
  signal: AbortSignal;
  /** ms until it is ended; undefined: whoever began it sees to that. */
  timeoutMs?: number | undefined;
}

/** One command that is waited for. */
interface Waiting {
  readonly id: string;
  /** Its name on this channel: the id, or for one of several who wait for the same command one of its own. */
  readonly key: string;
  readonly nonce: string;
  readonly output: ChannelOutput;
  stopped: 'cancelled' | 'timed_out' | undefined;
  ended: { how: RunResult['ended']; code: number; durationMs: number } | undefined;
  settle: { resolve(result: RunResult): void; reject(error: Error): void };
}

/** The beginning of a file that is on its way. */
interface Peeking {
  readonly bytes: Buffer[];
  resolve(found: { path: string; bytes: Buffer } | null): void;
}

/**
 * The host's end of a runner (see channel-program.ts): commands of many callers over one connection. When that ends,
 * whoever waits gets `ChannelEnded`; a new channel can look for what they waited for.
 */
export class Channel {
  readonly #connection: Connection;
  readonly #writer = new WireWriter();
  readonly #mark = makeNonce();
  readonly #reader = new WireReader(this.#mark, {
    line: (words) => this.#line(words),
    bytes: (chunk) => this.#bytes(chunk),
    bytesEnd: () => this.#bytesEnd(),
  });
  readonly #waiting = new Map<string, Waiting>();
  readonly #looking = new Map<string, (found: Looked) => void>();
  readonly #peeking = new Map<string, Peeking>();
  /** How to tell everyone who waits for anything that nothing will come. */
  readonly #pending = new Set<(error: Error) => void>();
  readonly #goOn: () => Promise<boolean>;
  readonly #begins = Promise.withResolvers<void>();
  /** Where the bytes that come now belong, and what is to be done when they are complete. */
  #into: ((chunk: Buffer) => void) | undefined;
  #complete: (() => void) | undefined;
  #ended: ChannelEnded | undefined;
  #said = '';
  #count = 0;
  #looks = 0;
  #timer: NodeJS.Timeout | undefined;
  #quiet: NodeJS.Timeout | undefined;
  /** When the look that is not answered yet was sent; 0: all are. */
  #asked = 0;

  /** `goOn` is asked when nothing is heard though something should be: whether to wait on. */
  constructor(connection: Connection, goOn: () => Promise<boolean>) {
    this.#connection = connection;
    this.#goOn = goOn;
    this.#begins.promise.catch(() => undefined);
    this.#pending.add(this.#begins.reject);
    connection.listen(
      (chunk) => this.#reader.push(chunk),
      () => this.#end(),
    );
    connection.hold(true);
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  /** Resolves when the runner has said that it is there. Throws `ChannelEnded`. */
  get begun(): Promise<void> {
    return this.#begins.promise;
  }

  /** Runs a command. Throws `ChannelEnded`, `NotBegun`. */
  run(request: RunRequest, on: Watching & { cwd: string }): Promise<RunResult> {
    const id = pathSafe(request.executionId);
    return this.#wait(id, id, on, (nonce) =>
      this.#writer.run({ id, nonce, head: on.output.head, cwd: on.cwd }, request),
    );
  }

  /** Waits for a command that another channel has begun. Throws `ChannelEnded`. */
  watch(executionId: string, on: Watching): Promise<RunResult> {
    const id = pathSafe(executionId);
    const key = `${id}_${this.#count++}`;
    return this.#wait(id, key, on, (nonce) => `w ${key} ${id} ${nonce} ${on.output.head}\n`);
  }

  /** What became of a command; once this says `absent` it never will begin. Throws `ChannelEnded`. */
  look(executionId: string): Promise<Looked> {
    const id = pathSafe(executionId);
    return this.#answer<Looked>((resolve) => {
      this.#looking.set(id, resolve);
      this.#connection.write(`l ${id}\n`);
    });
  }

  /** `path` is absolute. Throws `ChannelEnded`. */
  async peek(path: string, maxBytes: number): Promise<Peeked | null> {
    const id = `peek${this.#count++}`;
    const found = await this.#answer<{ path: string; bytes: Buffer } | null>((resolve) => {
      this.#peeking.set(id, { bytes: [], resolve });
      this.#connection.write(`p ${id} ${makeNonce()} ${maxBytes + 1} ${path}\n`);
    });
    if (!found) return null;
    const bytes = new Uint8Array(found.bytes.subarray(0, maxBytes));
    return { realPath: found.path, bytes, more: found.bytes.length > maxBytes };
  }

  /** Ends the connection, not the commands. Whoever waits gets `ChannelEnded`. */
  close(): void {
    this.#connection.destroy();
    this.#end();
  }

  /** Someone asks something small; the runner that does not answer is given up. */
  async #answer<T>(ask: (resolve: (value: T) => void) => void): Promise<T> {
    if (this.#ended) throw this.#ended;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const late = setTimeout(() => this.close(), ANSWER_MS);
    this.#pending.add(reject);
    this.#connection.hold(true);
    ask(resolve);
    try {
      return await promise;
    } finally {
      clearTimeout(late);
      this.#settled(reject);
    }
  }

  async #wait(id: string, key: string, on: Watching, request: (nonce: string) => Buffer | string): Promise<RunResult> {
    if (this.#ended) throw this.#ended;
    const { promise, ...settle } = Promise.withResolvers<RunResult>();
    const waiting: Waiting = {
      id,
      key,
      nonce: makeNonce(),
      output: on.output,
      stopped: undefined,
      ended: undefined,
      settle,
    };
    this.#waiting.set(key, waiting);
    this.#pending.add(settle.reject);
    const stopper = new Stopper(
      (how, signal) => this.#stop(waiting, how, signal),
      () => this.close(),
    );
    const onAbort = () => stopper.stop('cancelled');
    on.signal.addEventListener('abort', onAbort, { once: true });
    const late = on.timeoutMs === undefined ? undefined : setTimeout(() => stopper.stop('timed_out'), on.timeoutMs);
    try {
      this.#connection.write(request(waiting.nonce));
      if (on.signal.aborted) onAbort();
      this.#look();
      return await promise;
    } finally {
      on.signal.removeEventListener('abort', onAbort);
      clearTimeout(late);
      stopper.over(this.ended);
      this.#waiting.delete(key);
      this.#settled(settle.reject);
    }
  }

  #settled(reject: (error: Error) => void): void {
    this.#pending.delete(reject);
    if (this.#waiting.size === 0) {
      clearTimeout(this.#timer);
      this.#asked = 0;
    }
    if (this.#pending.size === 0) this.#connection.hold(false);
  }

  /** And asks for news, for the last look may have got lost with a fork that failed. */
  #stop(waiting: Waiting, how: 'cancelled' | 'timed_out', signal: 'TERM' | 'KILL'): void {
    waiting.stopped = how;
    if (!this.#ended) this.#connection.write(`x ${waiting.id} ${how} ${signal}\nt\n`);
  }

  /** Asks for news of what runs, now often, later seldom. */
  #look(): void {
    this.#looks = 0;
    this.#connection.hold(true);
    clearTimeout(this.#timer);
    const again = () => {
      this.#timer = setTimeout(
        () => {
          this.#looks++;
          if (this.#asked === 0) {
            this.#asked = performance.now();
            this.#connection.write('t\n');
          } else if (performance.now() - this.#asked > SILENT_MS) {
            this.#asked = performance.now();
            void this.#goOn().then((goOn) => goOn || this.close());
          }
          again();
        },
        LOOKS[Math.min(this.#looks, LOOKS.length - 1)],
      );
    };
    again();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = new ChannelEnded(this.#said.trim());
    clearTimeout(this.#timer);
    clearTimeout(this.#quiet);
    for (const reject of this.#pending) reject(this.#ended);
  }

  #line(words: string[]): string | undefined {
    const [op = '', id = '', ...more] = words;
    const waiting = this.#waiting.get(id);
    switch (op) {
      case 'H':
        this.#connection.write(`k ${this.#mark}\n`);
        this.#begins.resolve();
        this.#makeReady();
        this.#settled(this.#begins.reject);
        return undefined;
      case 'T':
        this.#asked = 0;
        return undefined;
      case 'O':
      case 'E':
        this.#into = (chunk) => waiting?.output.add(op === 'O' ? 'out' : 'err', chunk);
        return more[0];
      case 'D':
        if (waiting && !waiting.ended) this.#finished(waiting, more);
        return undefined;
      case 'M':
        waiting?.output.tails(Number(more[0]), Number(more[1]));
        return undefined;
      case 'Z':
        if (waiting) settle(waiting);
        return undefined;
      case 'G':
        if (waiting) this.#gone(waiting, more[0] === 'begun');
        return undefined;
      case 'N':
        if (waiting) this.#notBegun(waiting, more[0]);
        return undefined;
      case 'L':
        this.#looked(id, more[0]);
        return undefined;
      case 'P':
        this.#peeks(id, more.slice(1).join(' '));
        return more[0];
      case 'Q':
        this.#peeking.get(id)?.resolve(null);
        this.#peeking.delete(id);
        return undefined;
      default:
        this.#said = `${this.#said}${words.join(' ')}\n`.slice(-500);
        return undefined;
    }
  }

  #bytes(chunk: Buffer): void {
    this.#into?.(chunk);
  }

  #bytesEnd(): void {
    const complete = this.#complete;
    this.#into = undefined;
    this.#complete = undefined;
    complete?.();
  }

  #peeks(id: string, path: string): void {
    const peeking = this.#peeking.get(id);
    this.#peeking.delete(id);
    this.#into = (chunk) => peeking?.bytes.push(chunk);
    this.#complete = () => peeking?.resolve({ path, bytes: Buffer.concat(peeking.bytes) });
  }

  #finished(waiting: Waiting, [how, code, from, to]: string[]): void {
    waiting.ended = {
      how: how === 'cancelled' || how === 'timed_out' ? how : 'exited',
      code: Number(code),
      durationMs: Math.max(0, (Number(to) - Number(from)) * 10),
    };
    const { id, key, nonce, output } = waiting;
    this.#makeReady();
    if (!output.more) settle(waiting);
    else
      this.#connection.write(`m ${key} ${id} ${nonce} ${output.heard('out')} ${output.heard('err')} ${output.head}\n`);
  }

  /** What the next command needs is made while nothing else is to be done. */
  #makeReady(): void {
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => {
      // Not beside a command: one that uses up all processes would hold up the runner over it.
      if (!this.#ended && this.#waiting.size === 0) this.#connection.write('n\n');
    }, QUIET_MS).unref();
  }

  /** Nobody is left to write its end down. */
  #gone(waiting: Waiting, begun: boolean): void {
    if (begun) waiting.settle.resolve(waiting.output.result(waiting.stopped ?? 'lost', null, 0));
    else this.#notBegun(waiting, 'fork');
  }

  #notBegun({ stopped, output, settle }: Waiting, why: string | undefined): void {
    if (stopped) settle.resolve(output.result(stopped, null, 0));
    else settle.reject(new NotBegun(why === 'full' || why === 'fork' ? why : 'decided'));
  }

  #looked(id: string, state: string | undefined): void {
    const resolve = this.#looking.get(id);
    this.#looking.delete(id);
    resolve?.(state === 'running' || state === 'finished' ? state : 'absent');
  }
}

function settle({ ended, output, settle }: Waiting): void {
  if (ended) settle.resolve(output.result(ended.how, ended.code, ended.durationMs));
}

/** Ends a process group: first it is asked to, then it is killed, and at last the connection is given up. */
class Stopper {
  readonly #send: (how: 'cancelled' | 'timed_out', signal: 'TERM' | 'KILL') => void;
  readonly #giveUp: () => void;
  #how: 'cancelled' | 'timed_out' | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (how: 'cancelled' | 'timed_out', signal: 'TERM' | 'KILL') => void, giveUp: () => void) {
    this.#send = send;
    this.#giveUp = giveUp;
  }

  stop(how: 'cancelled' | 'timed_out'): void {
    if (this.#how) return;
    this.#how = how;
    this.#send(how, 'TERM');
    this.#timer = setTimeout(() => {
      this.#send(how, 'KILL');
      this.#timer = setTimeout(this.#giveUp, GRACE_MS);
    }, KILL_AFTER_MS);
  }

  /** The command has ended: of its group nothing may be left. */
  over(unreachable: boolean): void {
    clearTimeout(this.#timer);
    if (this.#how && !unreachable) this.#send(this.#how, 'KILL');
  }
}

/** Asking for random bytes takes longer than all else that is done for a call, so they are asked for many at once. */
const NONCE_BYTES = 12;
let pool = Buffer.alloc(0);

function makeNonce(): string {
  if (pool.length < NONCE_BYTES) pool = randomBytes(NONCE_BYTES * 200);
  const nonce = pool.toString('hex', 0, NONCE_BYTES);
  pool = pool.subarray(NONCE_BYTES);
  return nonce;
}
