import type { ReplyBlock } from './reply.ts';

type Json = Record<string, unknown>;

/** Characters of JSON to a token: a rough figure, good for believable numbers only. */
const CHARS_PER_TOKEN = 4;
/** A prompt shorter than this is not cached, as with the real models. */
const LEAST_CACHED = 512;
/** Tokens after the last cache mark. */
const AFTER_MARK = 3;

export const tokensOf = (value: unknown): number =>
  value === undefined ? 0 : Math.ceil((JSON.stringify(value)?.length ?? 0) / CHARS_PER_TOKEN);

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** Tokens of everything a request says to the model. */
export const promptTokens = (body: Json): number =>
  tokensOf(body.system) + tokensOf(body.tools) + listOf(body.messages).reduce<number>((sum, m) => sum + tokensOf(m), 0);

/** Tokens of one request, in disjoint classes as the API counts them. */
export interface Usage {
  input_tokens: number;
  cache_creation_input_tokens: number;
  cache_read_input_tokens: number;
  output_tokens: number;
}

/**
 * Believable usage. The server keeps no cache; it supposes that the request before this one was made with the same
 * beginning and a mark at its end, so what stood before the last reply is read and the rest is written.
 */
export function usageOf(body: Json, blocks: readonly ReplyBlock[]): Usage {
  const output_tokens = blocks.reduce((sum, block) => sum + tokensOf(block), 0);
  const total = promptTokens(body);
  if (!body.cache_control || total < LEAST_CACHED) {
    return { input_tokens: total, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens };
  }
  const messages = listOf(body.messages);
  const lastReply = messages.findLastIndex((message) => (message as Json | null)?.role === 'assistant');
  const before = lastReply < 0 ? 0 : promptTokens({ ...body, messages: messages.slice(0, lastReply) });
  const read = before < LEAST_CACHED ? 0 : before - AFTER_MARK;
  return {
    input_tokens: AFTER_MARK,
    cache_creation_input_tokens: total - read - AFTER_MARK,
    cache_read_input_tokens: read,
    output_tokens,
  };
}
