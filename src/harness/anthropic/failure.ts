import type * as Sdk from '@anthropic-ai/sdk';
import type { ErrorCause } from '../../protocol/record.ts';

/** What went wrong, before it is known whether it will be tried again. `what` and `advice` make the sentence. */
export interface Diagnosis {
  /** A public `session.error` type. */
  type: string;
  reason: ErrorCause;
  /** It may be gone at the next attempt. */
  passes: boolean;
  what: string;
  /** Must read well whether or not another attempt follows. */
  advice: string;
}

/** Whom the request was for. */
export interface Target {
  model: string;
  /** Host and port of the model service. */
  host: string;
}

const FAILED = 'model_request_failed_error';
const SAY_ON = 'send a message to go on';
const WAIT = `if this goes on, wait a minute and ${SAY_ON}`;
const CHECK_NETWORK = `if this goes on, check the network and ${SAY_ON}`;

/** At most so many characters of the service's own words go into ours. */
const QUOTE_LIMIT = 300;

function quote(words: string | null | undefined): string {
  const line = (words ?? '').replace(/\s+/g, ' ').trim();
  if (!line) return '';
  return `: “${line.length > QUOTE_LIMIT ? `${line.slice(0, QUOTE_LIMIT).toWellFormed()}…` : line.replace(/\.$/, '')}”`;
}

const overloaded = (code: string): Diagnosis => ({
  type: 'model_overloaded_error',
  reason: 'overloaded',
  passes: true,
  what: `The model service is overloaded${code}`,
  advice: WAIT,
});
const rateLimited = (code: string): Diagnosis => ({
  type: 'model_rate_limited_error',
  reason: 'rate_limited',
  passes: true,
  what: `The model service limits how fast this key may ask${code}`,
  advice: WAIT,
});
const billing = (code: string, words: string | null): Diagnosis => ({
  type: 'billing_error',
  reason: 'billing',
  passes: false,
  what: `The model service asks for payment${code}${quote(words)}`,
  advice: `settle the account's billing, then ${SAY_ON}`,
});
const badKey = (code: string): Diagnosis => ({
  type: FAILED,
  reason: 'bad_key',
  passes: false,
  what: `The model service refused the API key${code}`,
  advice: "run 'Drover: Set API Key' and enter a valid one",
});
const tooLarge = (code: string): Diagnosis => ({
  type: FAILED,
  reason: 'too_large',
  passes: false,
  what: `The conversation is too large for the model${code}`,
  advice: 'start a new session, or one with a strategy that leaves old results out',
});
const tookTooLong = (what: string): Diagnosis => ({
  type: FAILED,
  reason: 'timeout',
  passes: true,
  what,
  advice: CHECK_NETWORK,
});
const server = (code: string, words: string | null): Diagnosis => ({
  type: FAILED,
  reason: 'server',
  passes: true,
  what: `The model service had an error of its own${code}${quote(words)}`,
  advice: WAIT,
});
const badRequest = (code: string, words: string | null): Diagnosis => ({
  type: FAILED,
  reason: 'bad_request',
  passes: false,
  what: `The model service could not accept the request${code}${quote(words)}`,
  advice: 'start a new session if it keeps happening, and report it with the log',
});

export const noKey = (): Diagnosis => ({
  type: FAILED,
  reason: 'no_key',
  passes: false,
  what: 'There is no API key for the model service, so nothing was asked',
  advice: "run 'Drover: Set API Key', or 'Drover: Rehearse' to see Drover work without one",
});
export const unsendableKey = (): Diagnosis => ({
  ...badKey(''),
  what: 'The API key holds a character that no key has, such as a space or a line break, so nothing was asked',
});
export const unreadableKey = (): Diagnosis => ({
  type: FAILED,
  reason: 'no_key',
  passes: false,
  what: 'The stored API key could not be read, so nothing was asked',
  advice: "run 'Drover: Set API Key' to store it again",
});
export const interrupted = (): Diagnosis => ({
  type: FAILED,
  reason: 'interrupted',
  passes: false,
  what: 'The model request was interrupted',
  advice: SAY_ON,
});
export const stalled = (host: string, ms: number): Diagnosis =>
  tookTooLong(`The model service at ${host} fell silent for ${Math.round(ms / 1000)} s in the middle of its reply`);
export const dropped = (host: string): Diagnosis => ({
  type: FAILED,
  reason: 'dropped',
  passes: true,
  what: `The connection to the model service at ${host} broke in the middle of its reply`,
  advice: CHECK_NETWORK,
});

/**
 * From an HTTP status and, where they are known, the body's error type and message.
 * @param words the service's own message, shown to people where it helps them
 */
export function fromStatus(status: number, type: string | null, words: string | null, target: Target): Diagnosis {
  const code = ` (${status})`;
  if (type === 'billing_error' || status === 402) return billing(code, words);
  if (status === 400 && /credit balance/i.test(words ?? '')) return billing(code, words);
  if (status === 413 || /prompt is too long|context window/i.test(words ?? '')) return tooLarge(code);
  if (status === 401) return badKey(code);
  if (status === 403) {
    return {
      type: FAILED,
      reason: 'permission',
      passes: false,
      what: `The API key may not use the model ${target.model}${code}${quote(words)}`,
      advice: 'choose another model, or a key that may',
    };
  }
  if (status === 404) return notFound(code, type, target);
  if (status === 408 || status === 504) return tookTooLong(`The model service at ${target.host} took too long${code}`);
  if (status === 429) return rateLimited(code);
  if (status === 529 || type === 'overloaded_error') return overloaded(code);
  if (status >= 500 || status === 409 || status === 499) return server(code, words);
  return badRequest(code, words);
}

function notFound(code: string, type: string | null, target: Target): Diagnosis {
  if (type === 'not_found_error') {
    return {
      type: FAILED,
      reason: 'unknown_model',
      passes: false,
      what: `The model service does not know the model ${target.model}${code}`,
      advice: 'choose another model',
    };
  }
  return {
    type: FAILED,
    reason: 'bad_request',
    passes: false,
    what: `There is no Messages API at ${target.host}${code}`,
    advice: 'check the base URL in the settings',
  };
}

/** From the `error` event a stream may bring after it began. */
function fromStreamError(type: string | null, words: string | null, target: Target): Diagnosis {
  switch (type) {
    case 'overloaded_error':
      return overloaded(', in the middle of its reply');
    case 'rate_limit_error':
      return rateLimited(', in the middle of its reply');
    case 'billing_error':
      return billing('', words);
    case 'authentication_error':
      return badKey('');
    case 'permission_error':
      return fromStatus(403, type, words, target);
    case 'not_found_error':
      return fromStatus(404, type, words, target);
    case 'timeout_error':
      return tookTooLong(`The model service at ${target.host} took too long`);
    case 'invalid_request_error':
      return badRequest('', words);
    default:
      return server('', words);
  }
}

/** Says what the connection died of, in people's words, by the code of the innermost cause. */
export function fromConnection(error: unknown, host: string): Diagnosis {
  const code = codeOf(error);
  if (/TIMEDOUT|TIMEOUT/.test(code)) return tookTooLong(`The model service at ${host} did not answer in time`);
  const network = (what: string, advice: string, passes = true): Diagnosis => ({
    type: FAILED,
    reason: 'network',
    passes,
    what,
    advice,
  });
  const note = code ? ` (${code})` : '';
  if (/CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|ALTNAME/.test(code)) {
    return network(
      `The certificate of the model service at ${host} could not be verified${note}`,
      "if your network has its own authority, add its certificate to the system's store and check VS Code's proxy settings",
      false,
    );
  }
  if (/ENOTFOUND|EAI_AGAIN/.test(code)) {
    return network(`The name of the model service ${host} could not be resolved${note}`, CHECK_NETWORK);
  }
  if (code === 'ECONNREFUSED') {
    return network(
      `Nothing answers at ${host}, where the model service should be${note}`,
      `check the base URL in the settings and ${SAY_ON}`,
    );
  }
  return network(`The model service at ${host} could not be reached${note}`, CHECK_NETWORK);
}

/** The code of the innermost cause, such as ECONNREFUSED; "" if there is none. Looks a few causes deep. */
function codeOf(error: unknown): string {
  let code = '';
  let current = error;
  for (let depth = 0; depth < 6 && current instanceof Error; depth += 1) {
    if ('code' in current && typeof current.code === 'string') code = current.code;
    current = current instanceof AggregateError ? current.errors[0] : current.cause;
  }
  return code;
}

/** From whatever the SDK threw, before or in the middle of the stream (`begun`). */
export function diagnose(sdk: typeof Sdk, error: unknown, target: Target, begun: boolean): Diagnosis {
  const { APIError, APIUserAbortError, APIConnectionTimeoutError, APIConnectionError } = sdk;
  if (error instanceof APIUserAbortError) return interrupted();
  if (error instanceof APIConnectionTimeoutError) {
    return tookTooLong(`The model service at ${target.host} did not answer in time`);
  }
  if (error instanceof APIConnectionError) return fromConnection(error, target.host);
  if (error instanceof APIError) {
    const { status, type, apiMessage } = error;
    if (typeof status === 'number') return fromStatus(status, type, apiMessage, target);
    return fromStreamError(type, apiMessage, target);
  }
  if (error instanceof SyntaxError) return server('', 'its stream could not be read');
  if (begun) {
    const connection = fromConnection(error, target.host);
    return connection.reason === 'timeout' ? connection : dropped(target.host);
  }
  return server('', null);
}
