import type { EventId } from '../protocol/ids.ts';
import type { Preview } from '../protocol/panel.ts';
import { alarmsOf } from './door.ts';
import type { SecretGuard, Sendable } from './guard.ts';
import type { Finding, RedactedStream, Redactor } from './redactor.ts';

/** Running calls whose output is looked through at the same moment; more are never shown side by side. */
const MAX_STREAMS = 200;

/** The guard of all that leaves the harness, by what the redactor knows. */
export function createGuard(redactor: Redactor): SecretGuard {
  return {
    request(request) {
      const found: Finding[] = [];
      const tell = (finding: Finding) => void found.push(finding);
      const kept = {
        ...request,
        system: redactor.text(request.system, tell),
        messages: redactor.value(request.messages, tell),
        tools: redactor.value(request.tools, tell),
      };
      if (found.length === 0) return { request, alarms: [] };
      return {
        request: { ...kept, messages: withoutBrokenThinking(request.messages, kept.messages) },
        alarms: alarmsOf(found, 'model_request'),
      };
    },
    previews: (send) => previews(redactor, send),
  };
}

/** Thinking is signed: what was taken out of it would have the service refuse the whole request. */
function withoutBrokenThinking(before: Sendable['messages'], after: Sendable['messages']): Sendable['messages'] {
  return after.map((message, index) => ({
    ...message,
    content: message.content.map((block, at) =>
      block.type === 'thinking' && block !== before[index]?.content[at]
        ? { type: 'text', text: '[redacted: thinking that held a secret]' }
        : block,
    ),
  }));
}

function previews(redactor: Redactor, send: (preview: Preview) => void): (preview: Preview) => void {
  const streams = new Map<EventId, RedactedStream>();
  const streamOf = (id: EventId): RedactedStream => {
    const known = streams.get(id);
    if (known) return known;
    const [oldest] = streams.keys();
    if (oldest && streams.size >= MAX_STREAMS) streams.delete(oldest);
    // The record that comes after it raises the alarm.
    const stream = redactor.stream(() => undefined);
    streams.set(id, stream);
    return stream;
  };
  return (preview) => {
    if (!redactor.active) return send(preview);
    if (preview.type === 'start') streams.delete(preview.id);
    if (preview.type !== 'delta' && preview.type !== 'output') return send(preview);
    const text = streamOf(preview.id).push(preview.text);
    if (text) send({ ...preview, text });
  };
}
