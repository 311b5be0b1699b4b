import type { AnyEvent, EventOf, EventType } from './event.ts';
import { type EventId, type ExecutionId, mint, type SandboxId, type ThreadId } from './ids.ts';
import type { Usd } from './usage.ts';

/** The log format this version writes. Older ones are read for ever; a newer one makes a session read-only. */
export const FORMAT_VERSION = 1;

/** Position in a log: 0, 1, 2 … without gaps. */
export type Seq = number;

/**
 * What became of one tool call, honestly.
 * `lost`: the sandbox died under it. `unknown`: it was started and nobody can say whether it happened.
 */
export type OutcomeKind = 'ok' | 'failed' | 'timed_out' | 'cancelled' | 'denied' | 'lost' | 'unknown';

/** A value too large for a record, kept whole beside the log. `path` is relative to the session's folder. */
export interface BlobRef {
  path: string;
  /** Hex. */
  sha256: string;
  bytes: number;
  media_type: string;
}

/** Who did or decided something. */
export type Actor =
  | { type: 'person'; via: 'panel' | 'sidebar' | 'notification' | 'command' }
  | { type: 'agent'; thread: ThreadId }
  | { type: 'harness' };

/**
 * "Allow this from now on", given with one answer and good for this session.
 * With `input_sha256` only the very same input is allowed: the only form there is for a shell command.
 */
export interface StandingRule {
  tool: string;
  input_sha256?: string;
}

/** Something in a result that looks like a secret and was masked. `finding` tells it from others and not what it is. */
export interface Masked {
  kind: string;
  finding: string;
  count: number;
}

/** How far the yes to a question goes. */
export type Scope = 'once' | 'session' | 'always';

/** Why a model request failed, finer than the public error types, so that the panel can offer the right way out. */
export type ErrorCause =
  | 'no_key'
  | 'bad_key'
  | 'permission'
  | 'unknown_model'
  | 'billing'
  | 'overloaded'
  | 'rate_limited'
  | 'network'
  | 'timeout'
  | 'dropped'
  | 'bad_request'
  | 'too_large'
  | 'server'
  | 'interrupted'
  | 'crashed';

/** What only this program needs to know of an event; the public shape has none of it. */
export interface Local {
  /** The model reply a block belongs to: the span's start event, and the block's index in the reply. */
  reply?: { span: EventId; index: number };
  /** A model block to be sent back exactly as it came (thinking with its signature, text with citations). */
  raw?: unknown;
  /** The model's own id of a tool call (`toolu_…`). */
  model_tool_use_id?: string;
  /** On a call of an MCP tool: the name the model was shown it under, and called it by. */
  shown_as?: string;
  /** The model's tool input as text, when it was no valid JSON. */
  malformed_input?: string;
  /** Why a call was refused before any policy ran: unknown tool, input that does not fit the schema. */
  refused?: string;
  /** Why the policy decided as it did, one sentence. */
  why?: string;
  rule?: StandingRule;
  outcome?: OutcomeKind;
  exit_code?: number | null;
  duration_ms?: number;
  execution_id?: ExecutionId;
  sandbox_id?: SandboxId | null;
  /** On a call's start and result: the thread that acts, and the one whose sandbox it acts in (its own, without a sandbox). */
  acting_thread?: ThreadId;
  owner_thread?: ThreadId;
  /** The real path a file tool touched, after links. */
  real_path?: string;
  /** SHA-256, hex, of that file as the call saw or left it: what a later change of it is held against. */
  file_sha256?: string;
  blobs?: BlobRef[];
  actor?: Actor;
  /** On a result: what was masked in it. */
  masked?: Masked[];
  /** On a confirmation. */
  standing?: StandingRule;
  /** On the answer to a question. Absent = once. */
  scope?: Scope;
  /** SHA-256, hex, of what the person was shown when they answered. */
  shown_sha256?: string;
  /** On `session.thread_created`: the call that made the thread, and the agent it runs. */
  created_by?: EventId;
  agent?: unknown;
  /** On `span.model_request_start`. */
  model?: string;
  /** On `span.model_request_end`. */
  request_id?: string | null;
  stop_reason?: string | null;
  stop_details?: unknown;
  cost_usd?: Usd;
  price_table?: string;
  /** ms from request to first streamed content. */
  ttft_ms?: number;
  estimated?: boolean;
  cause?: ErrorCause;
  /** On a retrying error: ms until the next attempt. */
  retry_in_ms?: number;
}

/** An event as stored: one line of the log. */
export interface LogRecord {
  v: number;
  seq: Seq;
  /** Append time, UTC, RFC 3339 with milliseconds. */
  at: string;
  /** Whose stream the event belongs to; absent = the session itself. */
  thread?: ThreadId;
  /** The writer's lease token: it only rises, so a stale writer's records show. */
  fence: number;
  /** The hash of the live record before it, "" in record 0. */
  prev: string;
  event: AnyEvent;
  local?: Local;
  /** First 22 characters of the base64url SHA-256 of the line's bytes before `,"hash":`. */
  hash: string;
}

type Distribute<E> = E extends AnyEvent ? Omit<E, 'processed_at'> & { processed_at?: string | null } : never;

/**
 * An event about to be appended: the log adds seq, time, fence and the hash chain.
 * `processed_at` absent means "now" (the log stamps its append time); null means queued.
 */
export interface Draft {
  thread?: ThreadId;
  event: Distribute<AnyEvent>;
  local?: Local;
}

type Fields<T extends EventType> = Omit<EventOf<T>, 'id' | 'type' | 'processed_at'>;

/** A draft of a known type with a fresh id. `queued` leaves `processed_at` null. */
export function draft<T extends EventType>(
  type: T,
  fields: Fields<T>,
  more: { thread?: ThreadId; local?: Local; id?: EventId; queued?: boolean } = {},
): Draft {
  const event = { id: more.id ?? mint.event(), type, ...fields, ...(more.queued ? { processed_at: null } : {}) };
  return {
    ...(more.thread ? { thread: more.thread } : {}),
    event: event as Distribute<AnyEvent>,
    ...(more.local ? { local: more.local } : {}),
  };
}
