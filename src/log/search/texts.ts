import { plainText } from '../../protocol/content.ts';
import { isKnown, type KnownEvent } from '../../protocol/event.ts';
import type { BlobRef, Local, LogRecord } from '../../protocol/record.ts';

/** What a hit is, for the person who reads the list. */
export type HitKind =
  | 'title'
  | 'user'
  | 'agent'
  | 'thinking'
  | 'tool input'
  | 'tool output'
  | 'answer'
  | 'error'
  | 'between agents';

export interface Searched {
  kind: HitKind;
  texts: string[];
}

/** A value inside a tool's input deeper than this is not looked at. */
const DEEPEST = 20;

/** What of a record can be found, or null if nothing. Large values are in blobs: see `textBlobs`. */
export function searched(record: LogRecord): Searched | null {
  if (!isKnown(record.event)) return null;
  const found = ofEvent(record.event, record.local ?? {});
  const texts = found?.texts.filter((text) => text !== '') ?? [];
  return found && texts.length > 0 ? { kind: found.kind, texts } : null;
}

/** A server's tool by both names. */
const nameOf = (event: { name: string; mcp_server_name?: string }): string =>
  event.mcp_server_name === undefined ? event.name : `${event.mcp_server_name}: ${event.name}`;

function ofEvent(event: KnownEvent, local: Local): Searched | null {
  switch (event.type) {
    case 'drover.session_created':
      return { kind: 'title', texts: [event.title] };
    case 'session.updated':
      return { kind: 'title', texts: [event.title ?? ''] };
    case 'user.message':
    case 'system.message':
      return { kind: 'user', texts: [plainText(event.content)] };
    case 'user.define_outcome':
      return { kind: 'user', texts: [event.description, 'content' in event.rubric ? event.rubric.content : ''] };
    case 'user.tool_confirmation':
      return { kind: 'answer', texts: [event.deny_message ?? ''] };
    case 'agent.message':
      return { kind: 'agent', texts: [plainText(event.content)] };
    case 'agent.thinking':
      return { kind: 'thinking', texts: [thought(local.raw)] };
    case 'agent.thread_message_received':
      return { kind: 'between agents', texts: [plainText(event.content)] };
    case 'agent.tool_use':
    case 'agent.mcp_tool_use':
    case 'agent.custom_tool_use':
      return { kind: 'tool input', texts: [nameOf(event), ...leaves(event.input), local.malformed_input ?? ''] };
    case 'agent.tool_result':
    case 'agent.mcp_tool_result':
    case 'user.tool_result':
    case 'user.custom_tool_result':
      return { kind: 'tool output', texts: [plainText(event.content)] };
    case 'session.error':
      return { kind: 'error', texts: [event.error.type, event.error.message] };
    case 'drover.sandbox_failed':
      return { kind: 'error', texts: [event.message] };
    case 'drover.sandbox_lost':
    case 'drover.log_damaged':
      return { kind: 'error', texts: [event.reason] };
    default:
      return null;
  }
}

/** The blobs of a record that may hold text. */
export const textBlobs = (record: LogRecord): BlobRef[] =>
  (record.local?.blobs ?? []).filter(({ media_type }) => /^text\/|json|xml|javascript/.test(media_type));

function thought(raw: unknown): string {
  return typeof raw === 'object' && raw !== null && 'thinking' in raw ? String(raw.thinking) : '';
}

/** The texts, numbers and names in a value, in order. */
function leaves(value: unknown, depth = 0): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value === 'number' || typeof value === 'boolean') return [String(value)];
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return [];
  if (Array.isArray(value)) return value.flatMap((one) => leaves(one, depth + 1));
  return Object.entries(value).flatMap(([key, one]) =>
    typeof one === 'object' ? [key, ...leaves(one, depth + 1)] : leaves(one, depth + 1),
  );
}
