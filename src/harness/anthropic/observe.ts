import { type Diagnosis, fromConnection, fromStatus, type Target } from './failure.ts';

/** Reported for each attempt that failed and that the SDK will make again. */
export type OnRetry = (diagnosis: Diagnosis, inMs: number) => void;

export interface Observed {
  fetch: typeof fetch;
  /** The service's own id of the last answered attempt. */
  requestId(): string | null;
  /** How many attempts were made. */
  attempts(): number;
}

interface Options {
  fetch: typeof fetch;
  target: Target;
  maxRetries: number;
  onRetry: OnRetry;
  /** Called at every piece of a reply's stream. */
  onBytes: () => void;
  aborted: () => boolean;
}

/**
 * A `fetch` that sees what the SDK keeps to itself: which attempt failed, of what, and when the next one comes.
 * It follows the SDK's own rules of what is tried again, and changes nothing on the way.
 */
export function observe(options: Options): Observed {
  let attempts = 0;
  let requestId: string | null = null;

  const report = (diagnosis: Diagnosis, headers?: Headers) => options.onRetry(diagnosis, retryDelay(attempts, headers));

  const observed: typeof fetch = async (input, init) => {
    attempts += 1;
    const more = attempts <= options.maxRetries;
    let response: Response;
    try {
      response = await options.fetch(input, init);
    } catch (error) {
      if (more && !options.aborted()) report(connectionFailure(error, init, options.target));
      throw error;
    }
    requestId = response.headers.get('request-id');
    if (!response.ok && more && triedAgain(response)) {
      report(fromStatus(response.status, null, null, options.target), response.headers);
    }
    return response.ok ? listening(response, options.onBytes) : response;
  };

  return { fetch: observed, requestId: () => requestId, attempts: () => attempts };
}

/** An abort that is not the caller's is the SDK's own time limit. */
function connectionFailure(error: unknown, init: RequestInit | undefined, target: Target): Diagnosis {
  const diagnosis = fromConnection(error, target.host);
  if (!init?.signal?.aborted) return diagnosis;
  return { ...diagnosis, reason: 'timeout', what: `The model service at ${target.host} did not answer in time` };
}

/** The SDK's rule: the service's word if it gave one, else 408, 409, 429 and everything from 500. */
function triedAgain(response: Response): boolean {
  const word = response.headers.get('x-should-retry');
  if (word === 'true' || word === 'false') return word === 'true';
  return [408, 409, 429].includes(response.status) || response.status >= 500;
}

/**
 * ms until the next attempt: what the service asks for, else the SDK's backoff of 0.5 s doubled each time, at most
 * 8 s (from which the SDK takes up to a quarter at random).
 */
export function retryDelay(attempt: number, headers?: Headers): number {
  const ms = Number.parseFloat(headers?.get('retry-after-ms') ?? '');
  if (ms > 0) return ms;
  const after = headers?.get('retry-after') ?? '';
  const seconds = Number.parseFloat(after);
  if (seconds > 0) return seconds * 1000;
  const date = Date.parse(after) - Date.now();
  if (date > 0) return date;
  return Math.min(500 * 2 ** (attempt - 1), 8000);
}

/** The same response, its body passed on piece by piece with a word at each. */
function listening(response: Response, onBytes: () => void): Response {
  if (!response.body) return response;
  const body = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        onBytes();
        controller.enqueue(chunk);
      },
    }),
  );
  return new Response(body, { status: response.status, statusText: response.statusText, headers: response.headers });
}
