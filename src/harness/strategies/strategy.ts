import type { EventId } from '../../protocol/ids.ts';
import type { ModelBlock, ModelMessage, TranscriptMessage } from '../../session/transcript.ts';
import type { ModelLimits } from '../model.ts';

/** What a strategy looks at: the whole conversation of a thread, and how much fits. */
export interface ThreadView {
  messages: readonly TranscriptMessage[];
  /** Tokens that the system prompt and the tools take, estimated. */
  fixedTokens: number;
  limits: ModelLimits;
}

/** The view of the log that is sent, and by name what it leaves out. */
export interface Assembled {
  messages: ModelMessage[];
  leftOut: { event_id: EventId; bytes: number; why: string }[];
  estimatedTokens: number;
}

/** Decides what of a thread the model sees. Pure: the same view gives the same request, byte for byte, so caches hold. */
export interface Strategy {
  name: string;
  assemble(view: ThreadView): Assembled;
}

/** About 4 bytes of JSON make a token in English text and code; an estimate, only ever compared with limits. */
export const estimateTokens = (block: ModelBlock): number => Math.ceil(JSON.stringify(block).length / 4);

/** All blocks as they are. */
export const verbatim = (messages: readonly TranscriptMessage[]): ModelMessage[] =>
  messages.map((message) => ({ role: message.role, content: message.blocks.map((one) => one.block) }));
