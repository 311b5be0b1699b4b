import { blockProblem } from './validate-block.ts';

/*
 * What the Messages API demands of a conversation, checked as strictly as the API does, with its wording.
 * Pure, and usable on any message list: tests of other rooms hold their transcripts against it.
 */

export interface ValidationOptions {
  /** Whether the signature is the one given out for this thinking text. Default: any signature will do. */
  verifyThinking?: (thinking: string, signature: string) => boolean;
}

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

interface Message {
  role: 'user' | 'assistant';
  blocks: readonly Json[];
  /** Place of each block, as the API would name it. */
  places: readonly string[];
  /** Index of the (first) message in the request. */
  index: number;
}

/** The API's limit on messages in one request. */
const MOST_MESSAGES = 100_000;

/** Why the API would answer 400 to these `messages`, in its words; undefined if it would accept them. */
export function validateMessages(messages: unknown, options: ValidationOptions = {}): string | undefined {
  if (messages === undefined) return 'messages: Field required';
  if (!Array.isArray(messages)) return 'messages: Input should be a valid list';
  if (messages.length === 0) return 'messages: at least one message is required';
  if (messages.length > MOST_MESSAGES) return `messages: at most ${MOST_MESSAGES} messages are allowed`;
  const shape = firstOf(messages, (message, index) => messageProblem(message, index, messages.length, options));
  if (shape) return shape;
  const turns = combine(messages);
  if (turns[0]?.role !== 'user') return 'messages: first message must use the "user" role';
  return pairingProblem(turns) ?? endProblem(turns);
}

function firstOf<T>(items: readonly T[], check: (item: T, index: number) => string | undefined): string | undefined {
  for (const [index, item] of items.entries()) {
    const problem = check(item, index);
    if (problem) return problem;
  }
  return undefined;
}

function messageProblem(
  message: unknown,
  index: number,
  count: number,
  options: ValidationOptions,
): string | undefined {
  const at = `messages.${index}`;
  if (!isObject(message)) return `${at}: Input should be an object`;
  const extra = Object.keys(message).find((key) => key !== 'role' && key !== 'content');
  if (extra) return `${at}.${extra}: Extra inputs are not permitted`;
  const { role, content } = message;
  if (role !== 'user' && role !== 'assistant') {
    return `messages: Unexpected role ${JSON.stringify(role)}. Allowed roles are "user" or "assistant"`;
  }
  if (typeof content !== 'string' && !Array.isArray(content)) return `${at}.content: Input should be a valid list`;
  if (content.length === 0) {
    // The API lets the last one be empty if it is the assistant's; this model takes no prefill, see `endProblem`.
    if (role === 'assistant' && index === count - 1) return undefined;
    return `${at}: all messages must have non-empty content except for the optional final assistant message`;
  }
  if (typeof content === 'string') return blockProblem({ type: 'text', text: content }, `${at}.content`, role, options);
  return firstOf(content, (block, place) => blockProblem(block, `${at}.content.${place}`, role, options));
}

/** Consecutive messages of one role count as one turn. Blocks are known to be well formed by now. */
function combine(messages: readonly unknown[]): Message[] {
  const turns: { role: Message['role']; blocks: Json[]; places: string[]; index: number }[] = [];
  for (const [index, message] of messages.entries()) {
    if (!isObject(message)) continue;
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const content = Array.isArray(message.content) ? message.content : [{ type: 'text', text: message.content }];
    let turn = turns.at(-1);
    if (turn?.role !== role) {
      turn = { role, blocks: [], places: [], index };
      turns.push(turn);
    }
    for (const [place, block] of content.entries()) {
      turn.blocks.push(block);
      turn.places.push(`messages.${index}.content.${place}`);
    }
  }
  return turns;
}

const idsOf = (turn: Message | undefined, type: string, key: string): string[] =>
  (turn?.blocks ?? []).filter((block) => block.type === type).map((block) => String(block[key]));

/** Every tool_use has exactly one tool_result, at the beginning of the turn right after it; no result has none. */
function pairingProblem(turns: readonly Message[]): string | undefined {
  const used = new Set<string>();
  for (const [index, turn] of turns.entries()) {
    if (turn.role === 'assistant') {
      const calls = idsOf(turn, 'tool_use', 'id');
      for (const id of calls) {
        if (used.has(id)) return `messages.${turn.index}: \`tool_use\` ids must be unique: ${id}`;
        used.add(id);
      }
      const unanswered = unansweredProblem(turn, calls, turns[index + 1]);
      if (unanswered) return unanswered;
    } else {
      const orphan = orphanProblem(turn, idsOf(turns[index - 1], 'tool_use', 'id'));
      if (orphan) return orphan;
    }
  }
  return undefined;
}

/** Results count only in front of everything else in their turn. */
function unansweredProblem(turn: Message, calls: readonly string[], next: Message | undefined): string | undefined {
  if (calls.length === 0) return undefined;
  const blocks = next?.blocks ?? [];
  const end = blocks.findIndex((block) => block.type !== 'tool_result');
  const leading = new Set((end < 0 ? blocks : blocks.slice(0, end)).map((block) => block.tool_use_id));
  const missing = calls.filter((id) => !leading.has(id));
  if (missing.length === 0) return undefined;
  return `messages.${turn.index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
}

function orphanProblem(turn: Message, calls: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return firstOf(turn.blocks, (block, index) => {
    if (block.type !== 'tool_result') return undefined;
    const id = String(block.tool_use_id);
    const at = turn.places[index] ?? `messages.${turn.index}`;
    if (!calls.includes(id)) {
      return `${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
    }
    if (seen.has(id)) {
      return `${at}: each \`tool_use\` must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`;
    }
    seen.add(id);
    return undefined;
  });
}

function endProblem(turns: readonly Message[]): string | undefined {
  if (turns.at(-1)?.role !== 'assistant') return undefined;
  return 'This model does not support assistant message prefill. The conversation must end with a user message.';
}
