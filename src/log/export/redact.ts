import { createHash } from 'node:crypto';
import { canonicalJson } from '../../protocol/canonical.ts';
import { type ContentBlock, text } from '../../protocol/content.ts';
import { type AnyEvent, isKnown } from '../../protocol/event.ts';
import type { Local, LogRecord } from '../../protocol/record.ts';
import { HASH_MARK, hashOf } from '../serialize.ts';

/** The record without what tools were given and gave, its hash still the one it was written with. */
export function redactedRecord(record: LogRecord): LogRecord {
  const event = redactEvent(record.event);
  if (event === record.event) return record;
  const { local: before, event: _, hash, ...rest } = record;
  const local = redactLocal(before);
  return { ...rest, event, ...(local ? { local } : {}), hash };
}

/** The line of the same in an export. A record that has nothing to be taken out stays as it is. */
export function redactedLine(record: LogRecord): { line: string; redacted: boolean; local: Local | undefined } {
  const kept = redactedRecord(record);
  if (kept === record) return { line: JSON.stringify(record), redacted: false, local: record.local };
  const { hash, ...fields } = kept;
  const body = JSON.stringify({ ...fields, redacted: { hash } }).slice(0, -1);
  return { line: `${body}${HASH_MARK}${hashOf(body)}"}`, redacted: true, local: kept.local };
}

/** The same event if there is nothing to take out. */
function redactEvent(event: AnyEvent): AnyEvent {
  // Nobody knows what an event of a newer version holds.
  if (!isKnown(event)) return { id: event.id, type: event.type, processed_at: event.processed_at };
  switch (event.type) {
    case 'agent.tool_use':
    case 'agent.mcp_tool_use':
    case 'agent.custom_tool_use':
      return {
        ...event,
        input: Object.fromEntries(Object.entries(event.input).map(([name, value]) => [name, digest(value)])),
      };
    case 'agent.tool_result':
    case 'agent.mcp_tool_result':
    case 'user.tool_result':
    case 'user.custom_tool_result':
      return { ...event, content: (event.content ?? []).map(redactBlock) };
    // What a thread is told is the input of the call that made it, and its answer that call's output.
    case 'agent.thread_message_sent':
    case 'agent.thread_message_received':
      return { ...event, content: event.content.map(redactBlock) };
    // It may quote what a server's program said before it died.
    case 'session.error':
      if (!event.error.type.startsWith('mcp_')) return event;
      return { ...event, error: { ...event.error, message: digest(event.error.message) } };
    default:
      return event;
  }
}

/** What is kept beside a call or a result: numbers and names, nothing that may quote what was taken out. */
function redactLocal(local: Local | undefined): Local | undefined {
  if (!local) return undefined;
  const { raw: _raw, blobs: _blobs, malformed_input, real_path, why, refused, ...kept } = local;
  const digests = { malformed_input, real_path, why, refused };
  for (const [name, value] of Object.entries(digests))
    if (value !== undefined) Object.assign(kept, { [name]: digest(value) });
  return kept;
}

const redactBlock = (block: ContentBlock) => text(digest(block.type === 'text' ? block.text : block));

/** In place of a value: what tells it from others, and nothing more. Text is hashed as it is, anything else as JSON. */
function digest(value: unknown): string {
  const bytes = Buffer.from(typeof value === 'string' ? value : canonicalJson(value));
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return `[redacted: ${bytes.length} bytes, SHA-256 ${sha256}]`;
}
