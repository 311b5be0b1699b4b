import type { SessionError } from '../protocol/event.ts';
import type { ErrorCause } from '../protocol/record.ts';
import type { ModelUsage, Usd } from '../protocol/usage.ts';
import type { ModelBlock, ModelMessage } from '../session/transcript.ts';

/** Where replies come from. One request in, one whole reply out, with what streams on the way told to `on`. */
export interface ModelClient {
  /** Throws `ModelFailure`. Aborting `signal` ends the request with cause `interrupted`. */
  request(request: ModelCall, on: ModelListener, signal: AbortSignal): Promise<ModelReply>;
  /** Models the source offers. Throws `ModelFailure`. */
  list(): Promise<ModelInfo[]>;
  /** Limits of one model; a safe guess if the source does not say. */
  limits(model: string): Promise<ModelLimits>;
}

export interface ModelInfo {
  id: string;
  name: string;
  /** Tokens. */
  maxInput: number | null;
  maxOutput: number | null;
}

/** Tokens. */
export interface ModelLimits {
  context: number;
  output: number;
}

/** A request in the Messages API's own shape. */
export interface ModelCall {
  model: string;
  max_tokens: number;
  system: string;
  messages: ModelMessage[];
  tools: { name: string; description: string; input_schema: { type: 'object'; [key: string]: unknown } }[];
  effort?: string;
}

export type { ModelBlock, ModelMessage };

export interface ModelListener {
  /** A block begins; `index` counts from 0 within the reply. */
  onStart(index: number, block: { type: string; name?: string }): void;
  /** More of it: text, thinking, or a piece of a tool input's JSON. */
  onDelta(index: number, text: string): void;
  /** The source failed in a way that passes; it will be asked again by the SDK in about `retryInMs`. */
  onRetry(error: SessionError, cause: ErrorCause, retryInMs: number): void;
}

export interface ModelReply {
  /** The reply's blocks as the API would have them in one message. `tool_use` blocks have parsed input. */
  blocks: ModelBlock[];
  /** By block index: the input text of a tool call that was no valid JSON object. */
  malformed: Map<number, string>;
  stopReason: string | null;
  stopDetails: unknown;
  usage: ModelUsage;
  /** List price of the request, and the version of the table it was taken from; 0 and "unknown" for a model without a price. */
  costUsd: Usd;
  priceTable: string;
  requestId: string | null;
  /** ms from the call to the first content. */
  ttftMs: number | null;
}

/** A request that brought no reply. */
export class ModelFailure extends Error {
  readonly error: SessionError;
  readonly reason: ErrorCause;
  /** What had been used by then, as far as the stream said. */
  readonly usage: ModelUsage | null;
  /** List price of `usage`. */
  readonly costUsd: Usd;

  constructor(
    error: SessionError,
    reason: ErrorCause,
    usage: ModelUsage | null,
    costUsd: Usd,
    options?: { cause?: unknown },
  ) {
    super(error.message, options);
    this.name = 'ModelFailure';
    this.error = error;
    this.reason = reason;
    this.usage = usage;
    this.costUsd = costUsd;
  }
}
