import { createHash } from 'node:crypto';

/** A part of a reply, before ids and signatures. */
export type Part =
  | { type: 'thinking'; text: string }
  | { type: 'text'; text: string }
  /** `json`: the input as it is streamed, where that is not what `input` would give. */
  | { type: 'call'; name: string; input: Readonly<Record<string, unknown>>; json?: string };

export interface Reply {
  parts: readonly Part[];
  stopReason: 'end_turn' | 'tool_use' | 'max_tokens' | 'refusal';
  stopDetails?: unknown;
}

export const think = (text: string): Part => ({ type: 'thinking', text });
export const say = (text: string): Part => ({ type: 'text', text });
export const call = (name: string, input: Readonly<Record<string, unknown>>): Part => ({ type: 'call', name, input });

/** A reply that stops for its calls, or is the end of the turn if it has none. */
export const replyOf = (parts: readonly Part[]): Reply => ({
  parts,
  stopReason: parts.some((part) => part.type === 'call') ? 'tool_use' : 'end_turn',
});

/** A block of a reply, as the API gives it out. */
export type ReplyBlock =
  | { type: 'thinking'; thinking: string; signature: string }
  | { type: 'text'; text: string; citations: null }
  | { type: 'tool_use'; id: string; name: string; input: Readonly<Record<string, unknown>>; json: string };

/** `prefix` and 24 characters drawn from `seed`: the same request gives the same ids, another one gives others. */
export const idOf = (prefix: string, seed: string): string =>
  `${prefix}_01${createHash('sha256').update(seed).digest('base64url').replace(/[-_]/g, 'x').slice(0, 22)}`;

/** The signature of a thinking text. Anyone can make it: it only shows that a text came back as it was given out. */
export const signThinking = (thinking: string): string =>
  createHash('sha512').update(`drover rehearsal thinking\0${thinking}`).digest('base64');

export const isOurThinking = (thinking: string, signature: string): boolean => signThinking(thinking) === signature;

/** The reply's blocks. `seed` is the text of the request. */
export const blocksOf = (reply: Reply, seed: string): ReplyBlock[] =>
  reply.parts.map((part, index) => blockOf(part, `${index} ${seed}`));

function blockOf(part: Part, seed: string): ReplyBlock {
  switch (part.type) {
    case 'thinking':
      return { type: 'thinking', thinking: part.text, signature: signThinking(part.text) };
    case 'text':
      return { type: 'text', text: part.text, citations: null };
    case 'call': {
      const { name, input, json = JSON.stringify(input) } = part;
      return { type: 'tool_use', id: idOf('toolu', seed), name, input, json };
    }
  }
}
