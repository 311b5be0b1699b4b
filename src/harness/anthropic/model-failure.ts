import { messageOf } from '../../protocol/errors.ts';
import type { SessionError } from '../../protocol/event.ts';
import type { ModelUsage, Usd } from '../../protocol/usage.ts';
import { ModelFailure } from '../model.ts';
import type { Diagnosis } from './failure.ts';

/** The error of an attempt that failed and will be made again in about `inMs`. */
export function retrying(diagnosis: Diagnosis, inMs: number): SessionError {
  const seconds = (inMs / 1000).toFixed(inMs < 10_000 ? 1 : 0);
  return {
    type: diagnosis.type,
    message: `${diagnosis.what}; trying again in ${seconds} s.`,
    retry_status: { type: 'retrying' },
  };
}

/** Shorter ones are placeholders for a service that wants none; hiding them would only garble the words. */
const SECRET_LENGTH = 12;

interface Circumstances {
  error?: unknown;
  /** Attempts that were made. */
  attempts?: number;
  usage?: ModelUsage | null;
  costUsd?: Usd;
  /** What must not appear in the failure. */
  key?: string;
}

/**
 * The end of a request without a reply. `retrying` if asking anew may help, which is for the harness to do; else
 * `exhausted`, and never `terminal`: the turn is over, the session is not.
 * The cause is kept as text only, so that nothing of the request, such as the key, can hang on it.
 */
export function failureOf(diagnosis: Diagnosis, circumstances: Circumstances = {}): ModelFailure {
  const { error, attempts = 1, usage = null, costUsd = 0, key } = circumstances;
  const redact = (text: string) => (key && key.length >= SECRET_LENGTH ? text.replaceAll(key, '[the key]') : text);
  const tried = attempts > 1 ? `, also at attempt ${attempts}` : '';
  return new ModelFailure(
    {
      type: diagnosis.type,
      message: redact(`${diagnosis.what}${tried}; ${diagnosis.advice}.`),
      retry_status: { type: diagnosis.passes ? 'retrying' : 'exhausted' },
    },
    diagnosis.reason,
    usage,
    costUsd,
    error === undefined ? {} : { cause: redact(messageOf(error)) },
  );
}
