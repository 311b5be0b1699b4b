import type * as Sdk from '@anthropic-ai/sdk';
import { interrupted, noKey, type Target, unreadableKey, unsendableKey } from './failure.ts';
import { failureOf } from './model-failure.ts';

export interface ConnectionOptions {
  /** Asked before every request: the key is kept no longer than that. Undefined: there is none. */
  apiKey: () => Promise<string | undefined>;
  /** Where the Messages API is. Undefined: `ANTHROPIC_BASE_URL` of this process, else the public service. */
  baseUrl?: () => string | undefined;
  fetch?: typeof fetch;
}

/** All that is needed for one request. It lives no longer than that, and the key with it. */
export interface Connection {
  sdk: typeof Sdk;
  key: string;
  baseUrl: string;
  target: Target;
}

const PUBLIC_SERVICE = 'https://api.anthropic.com';

let loading: Promise<typeof Sdk> | undefined;

/** The SDK, loaded once and only when it is needed: activation does without it. */
export function loadSdk(): Promise<typeof Sdk> {
  loading ??= import('@anthropic-ai/sdk');
  return loading;
}

/** Throws `ModelFailure` if there is no usable key; nothing is sent then. */
export async function connect(options: ConnectionOptions, model: string, signal?: AbortSignal): Promise<Connection> {
  const reading = readKey(options);
  const [sdk, key] = await Promise.all([loadSdk(), signal ? orAbort(reading, signal) : reading]);
  const baseUrl = baseUrlOf(options);
  return { sdk, key, baseUrl, target: { model, host: hostOf(baseUrl) } };
}

export const baseUrlOf = (options: ConnectionOptions): string =>
  options.baseUrl?.() || process.env.ANTHROPIC_BASE_URL || PUBLIC_SERVICE;

/** The SDK's client. It says nothing on the console, and takes nothing but the given key to authenticate. */
export const clientOf = (connection: Connection, fetch: typeof globalThis.fetch, maxRetries: number): Sdk.Anthropic =>
  new connection.sdk.Anthropic({
    apiKey: connection.key,
    baseURL: connection.baseUrl,
    fetch,
    maxRetries,
    logLevel: 'off',
  });

async function readKey(options: ConnectionOptions): Promise<string> {
  let key: string | undefined;
  try {
    key = (await options.apiKey())?.trim();
  } catch {
    throw failureOf(unreadableKey());
  }
  if (!key) throw failureOf(noKey());
  // A header that can't be sent makes fetch throw an error that quotes it: such a key must not get that far.
  if (!/^[\x21-\x7e]+$/.test(key)) throw failureOf(unsendableKey());
  return key;
}

/** The keychain may wait for a person: an interrupt must not wait with it. */
function orAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(failureOf(interrupted()));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

/** Host and port for people: never the whole URL, which may carry a password. */
function hostOf(baseUrl: string): string {
  try {
    return new URL(baseUrl).host;
  } catch {
    return 'the configured base URL';
  }
}
