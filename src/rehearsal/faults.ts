import { createHash } from 'node:crypto';
import { latestWords } from './conversation.ts';
import { type Marker, markersIn, numberArg } from './marker.ts';
import { call, type Part, type Reply, say } from './reply.ts';

/** Everything that can go wrong with a real service, to be had on order. */
export type Fault =
  /** An HTTP error before anything streams. `retryAfterMs` goes out as `retry-after-ms`, or in seconds if it is whole. */
  | { kind: 'status'; status: number; message?: string; type?: string; retryAfterMs?: number }
  /** The connection is reset before any header, as when nothing listens. */
  | { kind: 'reset' }
  /** The connection breaks after so many bytes of the reply's body. */
  | { kind: 'drop'; afterBytes: number }
  /** The stream ends in good order, but before its `message_stop`. */
  | { kind: 'cut_stream'; afterBytes: number }
  /** An `error` event after so many bytes. */
  | { kind: 'error_event'; type: string; message?: string; afterBytes: number }
  /** Silence for `ms` after so many bytes, then the rest. */
  | { kind: 'stall'; afterBytes: number; ms: number }
  /** A tool call whose input is no JSON. */
  | { kind: 'malformed_tool' }
  /** A call of a tool that does not exist. */
  | { kind: 'unknown_tool' }
  /** `max_tokens` in the middle of a tool call's input. */
  | { kind: 'cut_tool' }
  | { kind: 'refusal' };

/** Faults by the number of the request to `POST /v1/messages`, from 0, retries counted. */
export interface FaultPlan {
  requests?: Readonly<Record<number, Fault>>;
  /** For every request that has none of its own. */
  always?: Fault;
}

const SECOND = 1000;
/** Where a stream breaks if nobody says otherwise: after its first words. */
const MIDDLE = 700;

/** A fault by its name in a marker: a status, or a kind. */
export function faultOf({ name, args }: Pick<Marker, 'name' | 'args'>): Fault | undefined {
  const afterBytes = numberArg(args, 'after', MIDDLE, 1e9);
  if (/^\d{3}$/.test(name)) {
    const retryAfterMs = numberArg(args, 'retry_after_ms', 0, 3600 * SECOND);
    return { kind: 'status', status: Number(name), ...(retryAfterMs > 0 ? { retryAfterMs } : {}) };
  }
  switch (name) {
    case 'reset':
    case 'malformed_tool':
    case 'unknown_tool':
    case 'cut_tool':
    case 'refusal':
      return { kind: name };
    case 'drop':
    case 'cut_stream':
      return { kind: name, afterBytes };
    case 'error_event':
      return { kind: 'error_event', type: args.type ?? 'overloaded_error', afterBytes };
    case 'stall':
      return { kind: 'stall', afterBytes, ms: numberArg(args, 'ms', 60 * SECOND, 3600 * SECOND) };
    default:
      return undefined;
  }
}

/**
 * Chooses the fault of each request: ordered ones first, then the plan's, then those of markers in the person's latest
 * words. A marker strikes at the reply that is number `at` (default 0, the first) after those words, at most `times`
 * times (default: always); that count is the only thing this server remembers of a conversation.
 */
export class Faults {
  readonly #plan: FaultPlan;
  readonly #next: Fault[] = [];
  readonly #struck = new Map<string, number>();
  #requests = 0;

  constructor(plan: FaultPlan = {}) {
    this.#plan = plan;
  }

  /** Orders faults for the coming requests, one each. */
  order(faults: readonly Fault[]): void {
    this.#next.push(...faults);
  }

  choose(messages: readonly unknown[]): Fault | undefined {
    const number = this.#requests;
    this.#requests += 1;
    return this.#next.shift() ?? this.#plan.requests?.[number] ?? this.#marked(messages) ?? this.#plan.always;
  }

  #marked(messages: readonly unknown[]): Fault | undefined {
    const { text, repliesSince } = latestWords(messages);
    for (const [index, marker] of markersIn(text).entries()) {
      if (marker.kind !== 'fault' || numberArg(marker.args, 'at', 0, 1e6) !== repliesSince) continue;
      const key = `${index} ${createHash('sha256').update(JSON.stringify(messages)).digest('base64')}`;
      const struck = this.#struck.get(key) ?? 0;
      if (struck >= numberArg(marker.args, 'times', Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)) continue;
      this.#struck.set(key, struck + 1);
      return faultOf(marker);
    }
    return undefined;
  }
}

/** The reply as the fault would have it; untouched by faults of the connection. */
export function spoil(reply: Reply, fault: Fault | undefined): Reply {
  switch (fault?.kind) {
    case 'malformed_tool':
      return {
        parts: [...words(reply), broken(reply, '{"command": "echo \\"hi, "timeout_ms": }')],
        stopReason: 'tool_use',
      };
    case 'unknown_tool':
      return { parts: [...words(reply), call('teleport', { to: 'the answer' })], stopReason: 'tool_use' };
    case 'cut_tool':
      return { parts: [...words(reply), broken(reply, '{"command": "echo the beginn')], stopReason: 'max_tokens' };
    case 'refusal':
      return {
        parts: [],
        stopReason: 'refusal',
        stopDetails: { type: 'refusal', category: 'general_harms', explanation: 'This refusal was rehearsed.' },
      };
    default:
      return reply;
  }
}

const words = (reply: Reply): Part[] => {
  const parts = reply.parts.filter((part) => part.type !== 'call');
  return parts.length > 0 ? parts : [say('Let me see.')];
};

const broken = (reply: Reply, json: string): Part => {
  const name = reply.parts.find((part) => part.type === 'call')?.name ?? 'bash';
  return { type: 'call', name, input: {}, json };
};
