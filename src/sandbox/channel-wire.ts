import type { RunRequest } from './sandbox.ts';

const NEWLINE = 0x0a;
/** Bytes. The shell inside reads a line byte by byte, 0.4 µs each; more comes faster as a block, for two forks. */
const INLINE = 6 * 1024;
/** Bytes. A script longer than this is sent once, and named from then on. */
const REMEMBERED = 400;
/** Bytes. Blocks are read into the memory of a program inside, whole. */
const BLOCK = 256 * 1024;
const PLAIN = /^[\t\n\x20-\x7e]*$/;

/** One word of a POSIX shell command. */
export const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** What the runner needs to know of a command beside its argv. */
export interface WireCall {
  id: string;
  /** Ends what is sent of its output; random, so that output can't be taken for it. */
  nonce: string;
  /** Bytes of each stream that are sent as they come. */
  head: number;
  cwd: string;
}

/** Makes requests for the runner; remembers which scripts it was told already. */
export class WireWriter {
  readonly #scripts = new Map<string, string>();
  /** The last call's. */
  #exported: ReadonlySet<string> = new Set();

  run(call: WireCall, request: RunRequest): Buffer {
    const parts: Buffer[] = [];
    const lines = [
      `_nonce=${call.nonce} _head=${call.head} _seconds=${Math.ceil(Math.max(1, request.timeoutMs) / 1000)}`,
      `_cwd=${quoted(call.cwd)}`,
    ];
    const stdin = Buffer.from(request.stdin ?? new Uint8Array());
    const given = stdin.toString('latin1');
    if (stdin.length > 0 && stdin.length < INLINE && PLAIN.test(given)) lines.push(`_given=${quoted(given)}`);
    else parts.push(...this.#file(call.id, 'in', stdin));
    const { exports, prefix } = environment(request.env ?? {});
    if (request.inShell && prefix.length === 0) lines.push('_ours=yes');
    if (exports.length > 0) lines.push(`_env=${this.#exports(exports, parts)}`);
    lines.push(`set -- ${[...prefix, ...request.argv].map((word) => this.#word(word, parts)).join(' ')}`);
    const text = `${lines.join('\n')}\n`;
    if (text.length < INLINE && PLAIN.test(text)) {
      parts.push(Buffer.from(`r ${call.id} ${text.split('\n').length - 1} ${text.length}\n${text}`));
    } else {
      parts.push(...this.#file(call.id, 'call', Buffer.from(text)), Buffer.from(`r ${call.id} -1\n`));
    }
    return Buffer.concat(parts);
  }

  /** What is exported is mostly the same from call to call, and is then sent once. */
  #exports(exports: readonly string[], parts: Buffer[]): string {
    const [same, other] = [true, false].map((known) =>
      exports.filter((line) => this.#exported.has(line) === known).join('\n'),
    );
    this.#exported = new Set(exports);
    return `${this.#word(same ?? '', parts)}${quoted(`\n${other}`)}`;
  }

  #word(word: string, parts: Buffer[]): string {
    return word.length > REMEMBERED ? this.#remembered(word, parts) : quoted(word);
  }

  /** A long argument as the variable it is kept in; sent first if it is new. What is kept is bounded. */
  #remembered(word: string, parts: Buffer[]): string {
    const known = this.#scripts.get(word);
    if (known) return `"$${known}"`;
    if (this.#scripts.size >= 64) return quoted(word);
    const name = `_text_${this.#scripts.size}`;
    this.#scripts.set(word, name);
    const bytes = Buffer.from(word);
    parts.push(Buffer.from(`s ${name} ${bytes.length}\n`), bytes);
    return `"$${name}"`;
  }

  #file(id: string, name: string, bytes: Buffer): Buffer[] {
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += BLOCK) {
      const block = bytes.subarray(at, at + BLOCK);
      parts.push(Buffer.from(`f ${id} ${name} ${block.length}\n`), block);
    }
    return parts;
  }
}

/** What a shell has to itself, or does not take as a name: such variables are given by a program. */
const NOT_FOR_SHELLS =
  /^(BASH.*|DIRSTACK|EUID|FUNCNAME|GROUPS|IFS|OLDPWD|OPTIND|POSIXLY_CORRECT|PPID|PWD|SHELLOPTS|UID|_.*)$/;

/** Variables of a command as what its shell exports and, for the odd ones, a program and its arguments before it. */
function environment(env: Readonly<Record<string, string>>): { exports: string[]; prefix: string[] } {
  const shellTakes = (name: string) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !NOT_FOR_SHELLS.test(name);
  const byValue = new Map<string, string[]>();
  const odd: string[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (!shellTakes(name)) odd.push(`${name}=${value}`);
    else byValue.set(value, [...(byValue.get(value) ?? []), name]);
  }
  // A value that many names have, as proxies do, is said once.
  const exports = [...byValue].map(
    ([value, names]) => `_value=${quoted(value)}; export ${names.map((name) => `${name}="$_value"`).join(' ')}`,
  );
  return { exports, prefix: odd.length > 0 ? ['env', ...odd] : [] };
}

/** What a runner says: lines, and bytes between some of them. */
export interface WireEvents {
  /** A line, split at its spaces. If bytes follow it, the nonce that ends them is returned. */
  line(words: string[]): string | undefined;
  bytes(chunk: Buffer): void;
  /** The bytes after the last line are complete. */
  bytesEnd(): void;
}

/**
 * Splits what a runner says. A chunk may begin and end anywhere. A line that begins with `mark`, which nobody else knows,
 * may come at any place, also between bytes: it is the end of a command, told by the shell that waited for it.
 */
export class WireReader {
  readonly #events: WireEvents;
  readonly #mark: Buffer;
  #rest: Buffer = Buffer.alloc(0);
  /** What ends the bytes that are coming; undefined between lines. */
  #end: Buffer | undefined;

  constructor(mark: string, events: WireEvents) {
    this.#mark = Buffer.from(mark);
    this.#events = events;
  }

  push(chunk: Buffer): void {
    let data = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    for (;;) {
      const rest = this.#end ? this.#takeBytes(data, this.#end) : this.#takeLine(data);
      if (!rest) break;
      data = rest;
    }
  }

  /** Returns what follows, or undefined if more must come first. */
  #takeLine(data: Buffer): Buffer | undefined {
    const end = data.indexOf(NEWLINE);
    if (end === -1) {
      this.#keep(data);
      return undefined;
    }
    const told = data.subarray(0, this.#mark.length).equals(this.#mark);
    const line = told ? `D ${data.toString('utf8', this.#mark.length, end)}` : data.toString('utf8', 0, end);
    const nonce = this.#events.line(line.split(' '));
    if (nonce !== undefined) this.#end = Buffer.from(`${nonce}\n`);
    return data.subarray(end + 1);
  }

  #takeBytes(data: Buffer, last: Buffer): Buffer | undefined {
    const end = data.indexOf(last);
    const mark = data.indexOf(this.#mark);
    if (mark !== -1 && (end === -1 || mark < end)) {
      if (mark > 0) this.#events.bytes(data.subarray(0, mark));
      return this.#takeLine(data.subarray(mark));
    }
    if (end !== -1) {
      if (end > 0) this.#events.bytes(data.subarray(0, end));
      this.#end = undefined;
      this.#events.bytesEnd();
      return data.subarray(end + last.length);
    }
    const whole = data.length - Math.max(markedEnd(data, last), markedEnd(data, this.#mark));
    if (whole > 0) this.#events.bytes(data.subarray(0, whole));
    this.#keep(data.subarray(whole));
    return undefined;
  }

  /** A copy: otherwise a few pending bytes would keep a whole network buffer alive. */
  #keep(data: Buffer): void {
    this.#rest = Buffer.from(data);
  }
}

/** How many bytes at the end of the data may be the beginning of the mark. */
function markedEnd(data: Buffer, mark: Buffer): number {
  for (let size = Math.min(mark.length - 1, data.length); size > 0; size--)
    if (data.subarray(data.length - size).equals(mark.subarray(0, size))) return size;
  return 0;
}
