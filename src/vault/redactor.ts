import type { CredentialId, VaultId } from '../protocol/ids.ts';
import { back, Matcher } from './matcher.ts';
import { Prefilter } from './prefilter.ts';
import { formsOf, MIN_SECRET, type Pattern, type SecretForm } from './secret-forms.ts';

/** What a value is called where it was taken out, and in the alarm. */
export interface SecretName {
  credential_id: CredentialId | null;
  vault_id: VaultId | null;
  /** For people: a credential's name, or what else it is. */
  name: string;
}

/** A value of a vault was where none can be. Never the value itself. */
export interface Finding extends SecretName {
  form: SecretForm;
}

interface Known extends SecretName {
  patterns: Pattern[];
}

/** Bytes are looked through in slices of this many, so that a large blob does not become one large string. */
const SLICE = 1024 * 1024;
/** More than enough of a slice for a value that begins in it and goes on in the next, also where it has bytes that are no text. */
const OVERLAP = 256;

/**
 * Takes every known value out of text, bytes and whatever is made of them. Nothing else of it knows a value: it is here
 * before it is given to anybody else.
 */
export class Redactor {
  readonly #known = new Map<string, Known>();
  #patterns: { pattern: Pattern; of: Known }[] = [];
  #matcher: Matcher | undefined;
  #prefilter: Prefilter | undefined;

  /** @param key who `values` belong to. Former values of the same stay known: nobody knows when they end to be good. */
  know(key: string, name: SecretName, values: readonly string[]): void {
    const before = this.#known.get(key)?.patterns ?? [];
    const texts = new Set(before.map((pattern) => pattern.text));
    const fresh = values.flatMap(formsOf).filter((pattern) => !texts.has(pattern.text));
    this.#known.set(key, { ...name, patterns: [...before, ...fresh] });
    if (fresh.length === 0) return;
    this.#matcher = undefined;
    this.#prefilter = undefined;
    this.#patterns = [...this.#known.values()].flatMap((of) => of.patterns.map((pattern) => ({ pattern, of })));
  }

  /** False while there is nothing to look for. */
  get active(): boolean {
    return this.#patterns.length > 0;
  }

  /** The text without known values; `found` is told of each. The same text if there is none. */
  text(text: string, found: (finding: Finding) => void): string {
    if (!this.active || text.length < MIN_SECRET || !this.#quick.mayHold(text)) return text;
    const spans: Span[] = [];
    this.#automaton.read(text, 0, (pattern, length, end) => {
      addSpan(spans, { start: back(text, end, length), end, pattern });
    });
    if (spans.length === 0) return text;
    return this.#without(text, spans, found);
  }

  /** The same value if nothing in it was found; else a copy. Strings in it are looked through, names of fields too. */
  value<T>(value: T, found: (finding: Finding) => void): T;
  value(value: unknown, found: (finding: Finding) => void): unknown {
    if (!this.active) return value;
    if (typeof value === 'string') return this.text(value, found);
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) {
      const items = value.map((item: unknown) => this.value(item, found));
      return items.some((item, index) => item !== value[index]) ? items : value;
    }
    if (isFile(value)) return this.#file(value, found);
    let changed = false;
    const fields: [string, unknown][] = [];
    for (const [name, field] of Object.entries(value)) {
      const kept: [string, unknown] = [this.text(name, found), this.value(field, found)];
      changed ||= kept[0] !== name || kept[1] !== field;
      fields.push(kept);
    }
    return changed ? Object.fromEntries(fields) : value;
  }

  /** The same bytes if nothing was found; else others, not of the same length. */
  bytes(bytes: Uint8Array, found: (finding: Finding) => void): Uint8Array {
    if (!this.active) return bytes;
    const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (!this.#mayHold(whole)) return bytes;
    const stream = this.stream(found);
    const out: Buffer[] = [];
    for (let at = 0; at < whole.length; at += SLICE) {
      out.push(Buffer.from(stream.push(whole.toString('latin1', at, Math.min(at + SLICE, whole.length))), 'latin1'));
    }
    out.push(Buffer.from(stream.end(), 'latin1'));
    return stream.changed ? Buffer.concat(out) : bytes;
  }

  /** For text that comes in pieces: a value that is cut by their borders is found. */
  stream(found: (finding: Finding) => void): RedactedStream {
    // What becomes known while the text comes is for the next one: the places of patterns must not change under this one.
    const patterns = this.#patterns;
    return new RedactedStream(this.#automaton, (pattern) => {
      tell(patterns[pattern], found);
      return markOf(patterns[pattern]);
    });
  }

  get #automaton(): Matcher {
    this.#matcher ??= new Matcher(this.#patterns.map(({ pattern }) => pattern.text));
    return this.#matcher;
  }

  get #quick(): Prefilter {
    this.#prefilter ??= new Prefilter(this.#patterns.map(({ pattern }) => pattern.text));
    return this.#prefilter;
  }

  #mayHold(bytes: Buffer): boolean {
    let before = '';
    for (let at = 0; at < bytes.length; at += SLICE) {
      const slice = bytes.toString('latin1', at, Math.min(at + SLICE, bytes.length));
      if (this.#quick.mayHold(slice, before)) return true;
      before = slice.slice(back(slice, slice.length, OVERLAP));
    }
    return false;
  }

  #without(text: string, spans: readonly Span[], found: (finding: Finding) => void): string {
    let out = '';
    let at = 0;
    for (const { start, end, pattern } of spans) {
      out += text.slice(at, start) + markOf(this.#patterns[pattern]);
      at = end;
      tell(this.#patterns[pattern], found);
    }
    return out + text.slice(at);
  }

  /** An image or a document can't be mended: what held a value is left out whole. */
  #file(file: FileBlock, found: (finding: Finding) => void): unknown {
    let name: string | undefined;
    this.bytes(Buffer.from(file.source.data, 'base64'), (finding) => {
      name = finding.name;
      found(finding);
    });
    if (name === undefined) return file;
    return { type: 'text', text: `[redacted: a file that held ${name}]` };
  }
}

type Placed = { pattern: Pattern; of: Known } | undefined;

/** What stands in place of a value; in bytes a character is a byte, so it has only plain ones. */
const markOf = (known: Placed): string => `[redacted: ${(known?.of.name ?? 'unknown').replace(/[^\x20-\x7e]/g, '?')}]`;

function tell(known: Placed, found: (finding: Finding) => void): void {
  if (!known) return;
  const { credential_id, vault_id, name } = known.of;
  found({ credential_id, vault_id, name, form: known.pattern.form });
}

/** A place that is taken out, and what it is named after. */
interface Span {
  start: number;
  end: number;
  pattern: number;
}

/** Places come in the order in which they end; one that touches those before is made one with them. */
function addSpan(spans: Span[], span: Span): void {
  let { start } = span;
  for (let last = spans.at(-1); last && last.end >= start; last = spans.at(-1)) {
    start = Math.min(start, last.start);
    spans.pop();
  }
  spans.push({ ...span, start });
}

/**
 * Text in pieces. What may be the beginning of a value is held back until what follows tells; all else goes on at once.
 */
export class RedactedStream {
  readonly #matcher: Matcher;
  readonly #takeOut: (pattern: number) => string;
  #state = 0;
  #held = '';
  changed = false;

  /** @param takeOut tells of a pattern that was found, and says what stands in its place */
  constructor(matcher: Matcher, takeOut: (pattern: number) => string) {
    this.#matcher = matcher;
    this.#takeOut = takeOut;
  }

  /** What may be shown by now of all that was pushed and not yet given back. */
  push(piece: string): string {
    const text = this.#held + piece;
    const offset = this.#held.length;
    const spans: Span[] = [];
    this.#state = this.#matcher.read(piece, this.#state, (pattern, length, end) => {
      addSpan(spans, { start: back(text, offset + end, length), end: offset + end, pattern });
    });
    const last = spans.at(-1);
    // What was taken out is never given back, also where its end may be the beginning of the next.
    const open = Math.max(back(text, text.length, this.#matcher.depth(this.#state)), last?.end ?? 0);
    this.#held = text.slice(open);
    let out = '';
    let at = 0;
    for (const { start, end, pattern } of spans) {
      out += text.slice(at, start) + this.#takeOut(pattern);
      at = end;
      this.changed = true;
    }
    return out + text.slice(at, open);
  }

  /** The rest: nothing follows. */
  end(): string {
    const rest = this.#held;
    this.#held = '';
    this.#state = 0;
    return rest;
  }
}

interface FileBlock {
  source: { type: 'base64'; data: string };
}

function isFile(value: object): value is FileBlock {
  if (!('source' in value) || typeof value.source !== 'object' || value.source === null) return false;
  const { source } = value;
  return 'type' in source && source.type === 'base64' && 'data' in source && typeof source.data === 'string';
}
