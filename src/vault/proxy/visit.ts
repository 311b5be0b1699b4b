import type { ExecutionId } from '../../protocol/ids.ts';
import type { Injectable, Tripped } from '../egress.ts';
import type { Target } from './hosts.ts';
import { Injection } from './injection.ts';
import type { Ledger } from './ledger.ts';
import { Refused } from './refused.ts';

/** What all requests of one gate share. */
export interface VisitContext {
  ledger: Ledger;
  injectables: () => Promise<readonly Injectable[]>;
  onTripped: (what: Tripped) => void;
  /** Whose doing it is, when a connection says it is this one's. */
  actor(caller: ExecutionId | undefined): ExecutionId | undefined;
  /** What is on its way now. */
  visits: Set<Visit>;
}

/** One connection or request on its way through, until it stands in the ledger. */
export class Visit {
  readonly target: Target;
  readonly method: string;
  /** Who says it is its own, and whose doing it is. */
  readonly caller: ExecutionId | undefined;
  readonly execution: ExecutionId | undefined;
  status: number | null = null;
  bytesOut = 0;
  bytesIn = 0;
  readonly #path: string | null;
  readonly #context: VisitContext;
  readonly #from = performance.now();
  #injection: Injection | undefined;
  #closed = false;

  constructor(
    context: VisitContext,
    about: { target: Target; method: string; path?: string; caller: ExecutionId | undefined },
  ) {
    this.#context = context;
    this.target = about.target;
    this.method = about.method.slice(0, 20);
    this.caller = about.caller;
    this.execution = context.actor(about.caller);
    this.#path = about.path === undefined ? null : shown(about.path);
    context.visits.add(this);
  }

  /** The credentials of this request. Throws `Refused`. */
  async injection(): Promise<Injection> {
    this.#injection = await Injection.of({
      target: this.target,
      method: this.method,
      execution: this.execution,
      injectables: await this.#context.injectables(),
      onTripped: this.#context.onTripped,
    });
    return this.#injection;
  }

  /** It was only the way to others, which are told of in its place. */
  opened(): void {
    this.#closed = true;
    this.#context.visits.delete(this);
  }

  /** It came to its end. */
  allowed(): void {
    this.#write('allowed', null);
  }

  /** It did not. Returns what to tell the one who asked. */
  ended(error: unknown): Refused {
    const refused =
      error instanceof Refused
        ? error
        : new Refused('upstream', `the connection to ${this.target.host} broke off`, { cause: error });
    const failed =
      refused.reason === 'upstream' || refused.reason === 'credential' || refused.reason === 'unknown_host';
    this.status ??= refused.status;
    this.#write(failed ? 'failed' : 'refused', refused.reason);
    return refused;
  }

  #write(verdict: 'allowed' | 'refused' | 'failed', reason: string | null): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#context.visits.delete(this);
    this.#context.ledger.add({
      execution_id: this.execution ?? null,
      scheme: this.target.scheme,
      host: this.target.host.slice(0, 260),
      port: this.target.port,
      method: this.method,
      path: this.#path,
      status: this.status,
      bytes_out: this.bytesOut,
      bytes_in: this.bytesIn,
      duration_ms: Math.round(performance.now() - this.#from),
      verdict,
      reason,
      credential_ids: [...(this.#injection?.used ?? [])],
    });
  }
}

/** A query may hold anything; a path longer than this tells nobody more. */
function shown(path: string): string {
  const [bare = '', query] = path.split('?', 2);
  return (bare.length > 300 ? `${bare.slice(0, 299)}…` : bare) + (query === undefined ? '' : '?…');
}
