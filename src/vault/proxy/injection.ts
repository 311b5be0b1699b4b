import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { ExecutionId } from '../../protocol/ids.ts';
import type { Injectable, Tripped } from '../egress.ts';
import { PLACEHOLDER, PLACEHOLDER_PREFIX } from '../placeholder.ts';
import { placeholderGuard } from './body-guard.ts';
import { type Fields, valuesOf, without } from './fields.ts';
import { isBound, type Target } from './hosts.ts';
import { Refused } from './refused.ts';
import { putBackSwaps, type Swap, SwapStream, swapAll } from './swap.ts';

/** What becomes of a request before it leaves. */
export interface Outgoing {
  fields: Fields;
  /** What the body goes through. */
  body: Transform[];
  /** Its length may change then. */
  changes: boolean;
}

/** What becomes of a response before it enters the sandbox. */
export interface Incoming {
  fields: Fields;
  /** The words beside an HTTP/1 status. */
  reason: string;
  body: Transform[];
  /** The body gets larger on its way, nobody knows by how much. */
  decoded: boolean;
}

export interface InjectionOptions {
  target: Target;
  method: string;
  execution: ExecutionId | undefined;
  injectables: readonly Injectable[];
  onTripped: (what: Tripped) => void;
}

interface Valued {
  credential: Injectable;
  value: string;
}

/**
 * The credentials of one request: placeholders become values on the way out, values become placeholders on the way in.
 * A placeholder that does not belong to the host it is sent to ends the request before any byte of it has left.
 */
export class Injection {
  readonly #options: InjectionOptions;
  readonly #bound: readonly Valued[];
  /** Placeholders that must not be seen in this request. */
  readonly #foreign: readonly Injectable[];
  /** What header fields were coded anew, to be undone in an echo. */
  readonly #coded: Swap[] = [];
  /** Ids of the credentials whose value went out. */
  readonly used = new Set<string>();

  private constructor(options: InjectionOptions, bound: readonly Valued[]) {
    this.#options = options;
    this.#bound = bound;
    this.#foreign = options.injectables.filter(({ bound: to }) => !isBound(to, options.target));
  }

  /** Asks for the values of the credentials that belong to this host; for no others. Throws `Refused`. */
  static async of(options: InjectionOptions): Promise<Injection> {
    const mine = options.injectables.filter(({ bound }) => isBound(bound, options.target));
    const bound = await Promise.all(
      mine.map(async (credential) => {
        try {
          return { credential, value: await credential.value() };
        } catch (error) {
          throw new Refused('credential', 'the value of a credential for this host could not be had', { cause: error });
        }
      }),
    );
    return new Injection(options, bound);
  }

  /** Whether anything of this host's could be in need of being put back. */
  get active(): boolean {
    return this.#bound.length > 0;
  }

  /** @param path with the query, as it will be sent. Throws `Refused`. */
  outgoing(path: string, fields: Fields): Outgoing {
    this.#check('url', path);
    this.#check('url', decoded(path));
    const swapped = fields.map(([name, value]): [string, string] => [name, this.#swapField(value)]);
    // A coded body could be neither checked nor put back, so none is asked for; nor a part of one, which may begin or
    // end in the middle of a value.
    const plain: Fields = this.active
      ? [...without(swapped, 'accept-encoding', 'range', 'if-range'), ['Accept-Encoding', 'identity']]
      : swapped;
    const swaps = this.#bodySwaps(fields);
    return { fields: plain, body: [...this.#bodyGuards(), ...swaps], changes: swaps.length > 0 };
  }

  /** Throws `Refused` if the body can't be looked through. */
  incoming(fields: Fields, said = ''): Incoming {
    // A parser takes more than may be sent.
    const reason = this.cleanedText(said).replace(/[^\t\x20-\x7e\x80-\xff]/g, '?');
    if (!this.active) return { fields, reason, body: [], decoded: false };
    const cleaned = this.cleaned(fields);
    const codings = valuesOf(fields, 'content-encoding').flatMap((value) =>
      value.split(',').map((coding) => coding.trim().toLowerCase()),
    );
    const decoders = codings
      .filter((coding) => coding !== '' && coding !== 'identity')
      .reverse()
      .map(decoder);
    return {
      fields: decoders.length > 0 ? without(cleaned, 'content-encoding') : cleaned,
      reason,
      body: [...decoders, new SwapStream(this.#putBack())],
      decoded: decoders.length > 0,
    };
  }

  /** Fields of an answer, at its beginning or its end, with the placeholders put back: in names, too. */
  cleaned(fields: Fields): Fields {
    if (!this.active) return fields;
    return fields.map(([name, value]): [string, string] => [this.cleanedText(name), this.cleanedText(value)]);
  }

  /** `text` as HTTP has it: a character is a byte. */
  cleanedText(text: string): string {
    return this.active ? swapAll(Buffer.from(text, 'latin1'), this.#putBack()).toString('latin1') : text;
  }

  /** A message of a websocket on its way out; in bytes nothing is swapped. Throws `Refused`. */
  outgoingMessage(data: Buffer, binary: boolean): Buffer {
    if (data.includes(PLACEHOLDER_PREFIX)) this.#check('body', data.toString('latin1'));
    return binary ? data : Buffer.from(this.#swapText(data.toString('utf8'), 'inBody'));
  }

  incomingMessage(bytes: Buffer): Buffer {
    return this.active ? swapAll(bytes, this.#putBack()) : bytes;
  }

  #putBack(): Swap[] {
    return [
      ...this.#coded,
      ...this.#bound.flatMap(({ credential, value }) => putBackSwaps(value, credential.placeholder)),
    ];
  }

  #swapField(value: string): string {
    const basic = /^(\s*Basic\s+)([A-Za-z0-9+/_=-]+)\s*$/i.exec(value);
    if (!basic) {
      this.#check('header', value);
      // In a field a character is a byte; what is put in is UTF-8.
      return this.#swapText(value, 'inHeader', (text) => Buffer.from(text).toString('latin1'));
    }
    const [, scheme = '', coded = ''] = basic;
    const login = Buffer.from(coded, 'base64').toString('utf8');
    this.#check('header', login);
    const swapped = this.#swapText(login, 'inHeader');
    if (swapped === login) return value;
    const recoded = Buffer.from(swapped).toString('base64');
    this.#coded.push(...putBackSwaps(recoded, coded));
    return scheme + recoded;
  }

  #swapText(text: string, where: 'inHeader' | 'inBody', as = (value: string) => value): string {
    let swapped = text;
    for (const { credential, value } of this.#bound) {
      if (!credential[where] || !swapped.includes(credential.placeholder)) continue;
      swapped = swapped.replaceAll(credential.placeholder, () => as(value));
      this.used.add(credential.credentialId);
    }
    return swapped;
  }

  #check(where: Tripped['where'], text: string): void {
    for (const [found] of text.matchAll(PLACEHOLDER)) {
      if (!this.#bound.some(({ credential }) => credential.placeholder === found)) this.#trip(where, found);
    }
    for (const { placeholder } of this.#foreign) if (text.includes(placeholder)) this.#trip(where, placeholder);
  }

  #trip(where: Tripped['where'], placeholder: string): never {
    const { target, method, execution, injectables, onTripped } = this.#options;
    const credential = injectables.find((one) => one.placeholder === placeholder);
    onTripped({
      credentialId: credential?.credentialId ?? null,
      where,
      host: target.host,
      port: target.port,
      method,
      ...(execution ? { execution } : {}),
    });
    throw new Refused(
      'placeholder',
      `a credential's placeholder was about to be sent to ${target.host}, where it does not belong`,
    );
  }

  /** Ends the request when a placeholder that does not belong to the host goes by. */
  #bodyGuards(): Transform[] {
    // Where nobody has a credential there is no placeholder either.
    if (this.#options.injectables.length === 0) return [];
    return [placeholderGuard((text) => this.#check('body', text))];
  }

  #bodySwaps(fields: Fields): Transform[] {
    if (valuesOf(fields, 'content-encoding').some((coding) => coding.toLowerCase() !== 'identity')) return [];
    const type = (valuesOf(fields, 'content-type')[0] ?? '').toLowerCase();
    const swaps = this.#bound
      .filter(({ credential }) => credential.inBody)
      .map(({ credential, value }) => ({
        from: Buffer.from(credential.placeholder),
        to: Buffer.from(written(value, type)),
      }));
    if (swaps.length === 0) return [];
    const idOf = ({ from }: Swap) =>
      this.#bound.find(({ credential }) => from.equals(Buffer.from(credential.placeholder)))?.credential.credentialId;
    return [
      new SwapStream(swaps, (swap) => {
        const id = idOf(swap);
        if (id !== undefined) this.used.add(id);
      }),
    ];
  }
}

/** A value as it must stand in a body of this type. */
function written(value: string, type: string): string {
  if (/[/+]json\b/.test(type)) return JSON.stringify(value).slice(1, -1);
  if (type.startsWith('application/x-www-form-urlencoded')) return encodeURIComponent(value);
  return value;
}

/** One escape after the other: what is none, somewhere in it, must not hide the rest. */
const decoded = (path: string): string =>
  path.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));

function decoder(coding: string): Transform {
  if (coding === 'gzip' || coding === 'x-gzip') return createGunzip();
  if (coding === 'deflate') return createInflate();
  if (coding === 'br') return createBrotliDecompress();
  throw new Refused('upstream', `the host sent a body coded as "${coding}", which can't be looked through`);
}
