import type { Reply, ReplyBlock } from './reply.ts';
import type { Usage } from './tokens.ts';

/** A whole reply, ready to go out. */
export interface Message {
  id: string;
  model: string;
  reply: Reply;
  blocks: readonly ReplyBlock[];
  usage: Usage;
}

/** One server-sent event. `pause`: a moment passes before it, as when a model writes. */
export interface Frame {
  event: string;
  data: Record<string, unknown>;
  pause: boolean;
}

const head = (message: Message) => ({
  id: message.id,
  type: 'message',
  role: 'assistant',
  model: message.model,
  content: [],
  container: null,
  stop_reason: null,
  stop_sequence: null,
});

const usageAtStart = (usage: Usage) => ({
  ...usage,
  output_tokens: 1,
  cache_creation: {
    ephemeral_5m_input_tokens: usage.cache_creation_input_tokens,
    ephemeral_1h_input_tokens: 0,
  },
  service_tier: 'standard',
  speed: 'standard',
});

const frame = (event: string, data: Record<string, unknown>, pause = false): Frame => ({
  event,
  data: { type: event, ...data },
  pause,
});

/** What goes out before the model has thought of anything. */
export const openingFrames = (message: Message): Frame[] => [
  frame('message_start', { message: { ...head(message), usage: usageAtStart(message.usage) } }),
  frame('ping', {}),
];

/** The reply itself, piece by piece. */
export function* contentFrames(message: Message): Generator<Frame> {
  for (const [index, block] of message.blocks.entries()) {
    yield frame('content_block_start', { index, content_block: emptied(block) });
    for (const delta of deltasOf(block)) yield frame('content_block_delta', { index, delta }, true);
    yield frame('content_block_stop', { index });
  }
  const { stopReason, stopDetails = null } = message.reply;
  yield frame('message_delta', {
    delta: { stop_reason: stopReason, stop_sequence: null, stop_details: stopDetails, container: null },
    usage: { ...message.usage, output_tokens_details: null, server_tool_use: null },
  });
  yield frame('message_stop', {});
}

/** The reply in one piece, as a request that does not stream gets it. */
export const wholeMessage = (message: Message) => ({
  ...head(message),
  content: message.blocks.map((block) => {
    if (block.type !== 'tool_use') return block;
    const { json: _, ...rest } = block;
    return rest;
  }),
  stop_reason: message.reply.stopReason,
  stop_details: message.reply.stopDetails ?? null,
  usage: { ...usageAtStart(message.usage), output_tokens: message.usage.output_tokens },
});

function emptied(block: ReplyBlock): Record<string, unknown> {
  switch (block.type) {
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '' };
    case 'text':
      return { type: 'text', text: '', citations: null };
    case 'tool_use':
      return { type: 'tool_use', id: block.id, name: block.name, input: {} };
  }
}

function deltasOf(block: ReplyBlock): Record<string, unknown>[] {
  switch (block.type) {
    case 'thinking':
      return [
        ...words(block.thinking).map((thinking) => ({ type: 'thinking_delta', thinking })),
        { type: 'signature_delta', signature: block.signature },
      ];
    case 'text':
      return words(block.text).map((text) => ({ type: 'text_delta', text }));
    case 'tool_use':
      return ['', ...pieces(block.json)].map((partial_json) => ({ type: 'input_json_delta', partial_json }));
  }
}

/** A text in runs of one to three words with the white space after them. */
function words(text: string): string[] {
  const all = text.match(/\s*\S+\s*/g) ?? (text ? [text] : []);
  const runs: string[] = [];
  for (let at = 0; at < all.length; ) {
    const size = 1 + (runs.length % 3);
    runs.push(all.slice(at, at + size).join(''));
    at += size;
  }
  return runs;
}

/** JSON in uneven pieces that never part a surrogate pair. */
function pieces(json: string): string[] {
  const points = Array.from(json);
  const out: string[] = [];
  for (let at = 0; at < points.length; ) {
    const size = 7 + ((out.length * 5) % 16);
    out.push(points.slice(at, at + size).join(''));
    at += size;
  }
  return out;
}
