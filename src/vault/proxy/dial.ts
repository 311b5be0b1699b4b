import { type ClientRequest, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, isIP, type LookupFunction, type OnReadOpts, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createSecureContext, type SecureContext, type TLSSocket, connect as tlsConnect } from 'node:tls';
import { messageOf } from '../../protocol/errors.ts';
import { type Addresses, NoAddress } from './addresses.ts';
import { BulkReader } from './bulk.ts';
import type { Target } from './hosts.ts';
import { Refused } from './refused.ts';

const CONNECT_MS = 20_000;

export interface DialOptions {
  addresses: Addresses;
  /** URL of a proxy above us, or undefined; asked for each connection. */
  upstreamProxy: () => string | undefined;
  /** PEM certificates that are trusted, all of them. */
  trusted: () => readonly string[];
}

/** Connects to hosts outside: to an address that was checked, or through the proxy above us. Throws `Refused`. */
export class Dialer {
  readonly #options: DialOptions;
  #context: SecureContext | undefined;

  constructor(options: DialOptions) {
    this.#options = options;
  }

  async tcp(target: Target): Promise<Socket> {
    const proxy = this.#options.upstreamProxy();
    const addresses = await this.#check(target, proxy !== undefined);
    return proxy === undefined ? await direct(target, addresses) : await through(proxy, target);
  }

  /** A connection whose bytes are only passed on: `begin` sends what comes from the host to `to`. */
  async bulk(target: Target): Promise<{ socket: Socket; begin: (to: Duplex) => void }> {
    if (this.#options.upstreamProxy() !== undefined) {
      const socket = await this.tcp(target);
      return { socket, begin: (to) => void socket.pipe(to) };
    }
    const reader = new BulkReader();
    const socket = await direct(target, await this.#check(target, false), reader.onread);
    return { socket, begin: (to) => reader.into(socket, to) };
  }

  /** `alpn` as the client offered it. Certificate and name are checked. */
  async tls(target: Target, alpn: readonly string[]): Promise<TLSSocket> {
    const socket = await this.tcp(target);
    this.#context ??= createSecureContext({ ca: [...this.#options.trusted()] });
    const secure = tlsConnect({
      socket,
      host: target.host,
      secureContext: this.#context,
      ...(isIP(target.host) ? {} : { servername: target.host }),
      ...(alpn.length > 0 ? { ALPNProtocols: [...alpn] } : {}),
    });
    return await settled(secure, 'secureConnect', (error) => tlsFailure(target, error));
  }

  /** Where the proxy above us does the resolving, a name that means nothing here may still mean something there. */
  async #check(target: Target, proxied: boolean): Promise<string[]> {
    try {
      return await this.#options.addresses.of(target.host);
    } catch (error) {
      if (!(error instanceof NoAddress)) throw error;
      if (proxied && error.reason === 'unknown_host') return [];
      throw new Refused(error.reason, `not connected, because ${error.message}`);
    }
  }
}

const tlsFailure = (target: Target, error: unknown): Refused =>
  new Refused('upstream', `${target.host} could not be trusted or did not speak TLS (${messageOf(error)})`, {
    cause: error,
  });

function direct(target: Target, addresses: readonly string[], onread?: OnReadOpts): Promise<Socket> {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  // The name is not asked for again: these are the addresses that were checked.
  const lookup: LookupFunction = (_host, options, done) => {
    const [first] = all;
    if (options.all || !first) done(null, all);
    else done(null, first.address, first.family);
  };
  const where = { host: target.host, port: target.port, lookup, autoSelectFamily: true, noDelay: true };
  const socket = connect({ ...where, ...(onread ? { onread } : {}) });
  if (onread) socket.pause();
  return settled(socket, 'connect', (error) => unreachable(target, error));
}

const unreachable = (target: Target, error: unknown): Refused =>
  new Refused('upstream', `${target.host}:${target.port} could not be reached (${messageOf(error)})`, { cause: error });

async function through(proxy: string, target: Target): Promise<Socket> {
  const url = URL.parse(proxy);
  if (!url) throw new Refused('upstream', 'the setting http.proxy is not the address of a proxy');
  const host = target.host.includes(':') ? `[${target.host}]` : target.host;
  const user = decoded(url.username);
  const password = decoded(url.password);
  const request: ClientRequest = (url.protocol === 'https:' ? httpsRequest : httpRequest)({
    host: url.hostname,
    port: url.port || (url.protocol === 'https:' ? 443 : 80),
    method: 'CONNECT',
    path: `${host}:${target.port}`,
    agent: false,
    timeout: CONNECT_MS,
    headers: {
      host: `${host}:${target.port}`,
      ...(user ? { 'proxy-authorization': `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` } : {}),
    },
  });
  return new Promise((resolve, reject) => {
    const fail = (why: string) => {
      request.destroy();
      reject(new Refused('upstream', `the proxy ${url.host} did not connect to ${target.host} (${why})`));
    };
    request.on('error', (error) => fail(error.message));
    request.on('timeout', () => fail('no answer'));
    request.on('response', (response) => fail(`status ${response.statusCode}`));
    request.on('connect', (response, socket, head) => {
      if (response.statusCode !== 200) {
        // The request has let go of it, and it may still break.
        socket.on('error', () => socket.destroy());
        socket.destroy();
        return fail(`status ${response.statusCode}`);
      }
      socket.setTimeout(0);
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    request.end();
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function settled<S extends Socket>(socket: S, event: string, failure: (error: unknown) => Refused): Promise<S> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(new Error('no answer')), CONNECT_MS);
    const onError = (error: unknown) => {
      clearTimeout(timer);
      socket.destroy();
      reject(failure(error));
    };
    const onClose = () => onError(new Error('it hung up'));
    socket.once('error', onError);
    socket.once('close', onClose);
    socket.once(event, () => {
      clearTimeout(timer);
      socket.off('error', onError);
      socket.off('close', onClose);
      resolve(socket);
    });
  });
}
