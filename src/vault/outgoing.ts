import type { EventId } from '../protocol/ids.ts';
import type { Preview } from '../protocol/panel.ts';
import { alarmsOf } from './door.ts';
import { fileWithPlaceholder, hasPlaceholder } from './file-tripwire.ts';
import type { SecretGuard, Sendable, WorkPlace } from './guard.ts';
import { maskOutput } from './mask-output.ts';
import { MASK, maskSecrets } from './patterns.ts';
import type { Finding, RedactedStream, Redactor } from './redactor.ts';

/** Running calls whose output is looked through at the same moment; more are never shown side by side. */
const MAX_STREAMS = 200;

export interface GuardOptions {
  redactor: Redactor;
  /** Keyed with it, a finding can't be guessed from the log. The same in all windows, for ever. */
  maskKey: Uint8Array;
  /** The host folder of a session's files. */
  workFolder(place: WorkPlace): string;
}

/** Tools whose input becomes a file. */
const WRITERS = new Set(['write', 'edit']);

/** The guard of all that leaves the harness, by what the redactor knows. */
export function createGuard({ redactor, maskKey, workFolder }: GuardOptions): SecretGuard {
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
    mask: (session, output, revealed) => maskOutput(output, (text) => maskSecrets(text, maskKey, session, revealed)),
    inputProblem(tool, input) {
      if (!WRITERS.has(tool) || !MASK.test(JSON.stringify(input))) return undefined;
      return `The ${tool} was not run: its input has a mask where the file has a secret, so the secret would be lost. Change only other parts of the file, or leave it to the user.`;
    },
    writesPlaceholder: (tool, input) => WRITERS.has(tool) && hasPlaceholder(JSON.stringify(input)),
    holdsPlaceholder: (input) => hasPlaceholder(JSON.stringify(input)),
    fileWithPlaceholder: (place, paths) => fileWithPlaceholder(workFolder(place), paths),
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
