import type { ContentBlock } from '../protocol/content.ts';
import type { EventId, ThreadId } from '../protocol/ids.ts';
import type { ModelRequest, Notice, SessionState, ThreadState, ToolCall } from './state.ts';

/** A block in the Messages API's own shape. */
export type ModelBlock = { type: string; [key: string]: unknown };

/** A transcript's block: what would be sent, and the event it comes from, so that a strategy can name what it leaves out. */
export interface TranscriptBlock {
  event: EventId;
  kind: 'input' | 'reply' | 'result' | 'note';
  block: ModelBlock;
}

export interface TranscriptMessage {
  role: 'user' | 'assistant';
  blocks: TranscriptBlock[];
}

export interface ModelMessage {
  role: 'user' | 'assistant';
  content: ModelBlock[];
}

/**
 * The whole conversation of a thread as messages the Messages API accepts, from any state: each tool_use has exactly one
 * tool_result in the message right after it, roles alternate, replies are verbatim, the first message is the user's.
 * A call that is still open is closed honestly here; that is only the safety net, the log closes calls itself.
 */
export function transcript(state: SessionState, id: ThreadId): TranscriptMessage[] {
  const thread = state.threads.get(id);
  const messages: TranscriptMessage[] = [];
  for (const entry of thread?.entries ?? []) {
    if (entry.type === 'input' && entry.processedAt !== null) {
      addTo(
        messages,
        'user',
        entry.content.filter(says).map((block) => ({ event: entry.id, kind: 'input', block })),
      );
    } else if (entry.type === 'request' && entry.state === 'done') {
      addReply(state, messages, entry);
    } else if (entry.type === 'notice') {
      addTo(messages, 'user', note(entry));
    }
  }
  // A reply cannot come first: what preceded it was lost with a damaged part of the log.
  const first = messages[0]?.role === 'assistant' ? messages[0].blocks[0] : undefined;
  if (first) messages.unshift({ role: 'user', blocks: [lostStart(first)] });
  return messages;
}

function lostStart(first: TranscriptBlock): TranscriptBlock {
  const text = '[The beginning of this conversation could not be read from the log.]';
  return { event: first.event, kind: 'note', block: { type: 'text', text } };
}

function addTo(messages: TranscriptMessage[], role: TranscriptMessage['role'], blocks: TranscriptBlock[]): void {
  if (blocks.length === 0) return;
  const last = messages.at(-1);
  if (last?.role === role) last.blocks.push(...blocks);
  else messages.push({ role, blocks: [...blocks] });
}

/** The API refuses text that is empty or only blanks. */
const says = (block: { type: string }): boolean =>
  block.type !== 'text' || !('text' in block) || String(block.text).trim() !== '';

function addReply(state: SessionState, messages: TranscriptMessage[], request: ModelRequest): void {
  const reply: TranscriptBlock[] = [];
  const results: TranscriptBlock[] = [];
  for (const block of request.blocks) {
    if (block.type === 'tool_use') {
      const call = state.calls.get(block.id);
      if (!call) continue;
      const id = call.modelToolUseId ?? `toolu_${call.id}`;
      reply.push({
        event: call.id,
        kind: 'reply',
        block: { type: 'tool_use', id, name: call.name, input: call.input },
      });
      results.push(resultOf(call, id));
    } else {
      const verbatim = isBlock(block.raw) ? [block.raw] : block.type === 'message' ? block.content.map(asBlock) : [];
      for (const one of verbatim) if (says(one)) reply.push({ event: block.id, kind: 'reply', block: one });
    }
  }
  addTo(messages, 'assistant', reply);
  addTo(messages, 'user', results);
}

const isBlock = (value: unknown): value is ModelBlock =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';

const asBlock = (block: ContentBlock): ModelBlock => ({ ...block });

function resultOf(call: ToolCall, id: string): TranscriptBlock {
  const result = call.result;
  const content = result ? result.content.filter(says).map(asBlock) : [{ type: 'text', text: openText(call) }];
  return {
    event: result?.id ?? call.id,
    kind: 'result',
    block: {
      type: 'tool_result',
      tool_use_id: id,
      // An empty result is refused by nobody, but tells the model nothing.
      content: content.length > 0 ? content : [{ type: 'text', text: '(no output)' }],
      ...((result ? result.isError : true) ? { is_error: true } : {}),
    },
  };
}

const openText = (call: ToolCall): string =>
  call.execution
    ? 'This call was started and its result is not known yet; it may have taken effect.'
    : 'Tool execution was interrupted before completion. Please retry.';

/** What the model should know of a notice. */
function note(entry: Notice): TranscriptBlock[] {
  const text = noteText(entry.notice);
  return text === null ? [] : [{ event: entry.id, kind: 'note', block: { type: 'text', text } }];
}

function noteText(notice: Notice['notice']): string | null {
  switch (notice.kind) {
    case 'damaged':
      return `[About ${notice.bytes} bytes of this session's log could not be read (${notice.reason}). Part of the conversation may be missing here; check before you rely on it.]`;
    case 'restored': {
      const names = notice.names.map((name) => JSON.stringify(name)).join(', ');
      const more = notice.files > notice.names.length ? ` and ${notice.files - notice.names.length} more` : '';
      return `[The user put files back to how they were earlier in this session: ${notice.files} changed (${names}${more}). What you wrote or read of them since then no longer holds; read a file again before you change it.]`;
    }
    case 'forked':
      return '[From here on this session is a fork: a copy of another one up to this point. The files may have changed since you last saw them; read a file again before you change it.]';
    default:
      return null;
  }
}

/** The text of a thread's last reply: what a parent gets from its child. */
export function lastWords(thread: ThreadState): string {
  const texts: string[] = [];
  for (const block of thread.last?.blocks ?? []) {
    if (block.type !== 'message') continue;
    for (const one of block.content) if (one.type === 'text') texts.push(one.text);
  }
  return texts.join('\n');
}
