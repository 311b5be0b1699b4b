import { noUsage } from '../../protocol/usage.ts';
import { type ModelCall, ModelFailure, type ModelListener, type ModelReply } from '../model.ts';
import { priceOf } from '../prices.ts';
import { type Connection, clientOf } from './connection.ts';
import { type Diagnosis, diagnose, dropped, interrupted, stalled } from './failure.ts';
import { failureOf, retrying } from './model-failure.ts';
import { type Observed, observe } from './observe.ts';
import type { ReplyBuilder, StreamEvent } from './reply.ts';
import { paramsOf } from './request.ts';
import { Watchdog } from './watchdog.ts';

export interface ExchangeOptions {
  fetch: typeof fetch;
  maxRetries: number;
  stallMs: number;
  /** The model is known to take adaptive thinking. */
  thinks: boolean;
}

/** One request and its reply, or the failure that came instead. */
export class Exchange {
  readonly #connection: Connection;
  readonly #call: ModelCall;
  readonly #builder: ReplyBuilder;
  readonly #signal: AbortSignal;
  readonly #options: ExchangeOptions;
  readonly #abort = new AbortController();
  readonly #watchdog: Watchdog;
  readonly #observed: Observed;
  /** The reply's stream is open. */
  #begun = false;

  constructor(
    connection: Connection,
    call: ModelCall,
    builder: ReplyBuilder,
    on: ModelListener,
    signal: AbortSignal,
    options: ExchangeOptions,
  ) {
    this.#connection = connection;
    this.#call = call;
    this.#builder = builder;
    this.#signal = signal;
    this.#options = options;
    this.#watchdog = new Watchdog(options.stallMs, this.#stop);
    this.#observed = observe({
      fetch: options.fetch,
      target: connection.target,
      maxRetries: options.maxRetries,
      onRetry: (diagnosis, inMs) => on.onRetry(retrying(diagnosis, inMs), diagnosis.reason, inMs),
      onBytes: () => this.#watchdog.touch(),
      aborted: () => this.#abort.signal.aborted,
    });
  }

  readonly #stop = () => this.#abort.abort();

  /** Throws `ModelFailure`. */
  async run(): Promise<ModelReply> {
    this.#signal.addEventListener('abort', this.#stop, { once: true });
    try {
      if (this.#signal.aborted) throw failureOf(interrupted());
      await this.#stream();
      // The SDK ends an aborted stream without a word.
      if (!this.#builder.complete) throw this.#failure(undefined);
      return this.#reply();
    } catch (error) {
      throw error instanceof ModelFailure ? error : this.#failure(error);
    } finally {
      this.#watchdog.stop();
      this.#signal.removeEventListener('abort', this.#stop);
    }
  }

  async #stream(): Promise<void> {
    const client = clientOf(this.#connection, this.#observed.fetch, this.#options.maxRetries);
    const params = paramsOf(this.#call, this.#options.thinks);
    const stream = await client.messages.create(params, { signal: this.#abort.signal });
    this.#begun = true;
    for await (const event of stream) this.#builder.take(event as StreamEvent);
  }

  #reply(): ModelReply {
    const usage = this.#builder.usage ?? noUsage();
    return {
      ...this.#builder.finish(),
      stopReason: this.#builder.stopReason,
      stopDetails: this.#builder.stopDetails,
      usage,
      ...priceOf(this.#call.model, usage),
      requestId: this.#observed.requestId(),
      ttftMs: this.#builder.ttftMs,
    };
  }

  #failure(error: unknown): ModelFailure {
    const usage = this.#builder.usage;
    return failureOf(this.#diagnosis(error), {
      error,
      usage,
      costUsd: priceOf(this.#call.model, usage ?? noUsage()).costUsd,
      attempts: this.#observed.attempts(),
      key: this.#connection.key,
    });
  }

  #diagnosis(error: unknown): Diagnosis {
    const { sdk, target } = this.#connection;
    if (this.#signal.aborted) return interrupted();
    if (this.#watchdog.bit) return stalled(target.host, this.#options.stallMs);
    if (error === undefined) return dropped(target.host);
    return diagnose(sdk, error, target, this.#begun);
  }
}
