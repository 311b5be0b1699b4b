import type { TranscriptBlock } from '../../session/transcript.ts';
import { type Assembled, estimateTokens, type Strategy, type ThreadView, verbatim } from './strategy.ts';

/** Results smaller than this, in estimated tokens, are not worth a stub. */
const SMALL = 400;
/** Share of the context window at which old results begin to give way, and the share they give way down to. */
const FULL = 0.6;
const TARGET = 0.4;
/** Results of the newest messages always stay. */
const KEEP_MESSAGES = 6;
/** Results give way in groups, so that the beginning of the request changes seldom and its cache holds. */
const GROUP = 8;

/**
 * Old large tool results become one line that names their event, so that the model can call them back with `get_events`.
 * The log keeps everything; only the view shrinks.
 */
export const elide: Strategy = {
  name: 'elide',
  assemble(view) {
    const tokens = total(view);
    if (tokens <= FULL * view.limits.context) {
      return { messages: verbatim(view.messages), leftOut: [], estimatedTokens: tokens };
    }
    return without(view, tokens, chosen(view, tokens - TARGET * view.limits.context));
  },
};

function total(view: ThreadView): number {
  let tokens = view.fixedTokens;
  for (const message of view.messages) for (const one of message.blocks) tokens += estimateTokens(one.block);
  return tokens;
}

/** The oldest large results that together free `wanted` tokens, rounded up to whole groups. */
function chosen(view: ThreadView, wanted: number): Set<TranscriptBlock> {
  const large = view.messages
    .slice(0, -KEEP_MESSAGES)
    .flatMap((message) => message.blocks)
    .filter((one) => one.kind === 'result' && estimateTokens(one.block) > SMALL);
  let count = 0;
  for (let freed = 0; count < large.length && freed < wanted; count += 1) {
    const one = large[count];
    if (one) freed += estimateTokens(one.block) - estimateTokens(stub(one));
  }
  return new Set(large.slice(0, Math.ceil(count / GROUP) * GROUP));
}

function without(view: ThreadView, tokens: number, out: ReadonlySet<TranscriptBlock>): Assembled {
  const leftOut: Assembled['leftOut'] = [];
  let estimatedTokens = tokens;
  const messages = view.messages.map((message) => ({
    role: message.role,
    content: message.blocks.map((one) => {
      if (!out.has(one)) return one.block;
      const short = stub(one);
      estimatedTokens -= estimateTokens(one.block) - estimateTokens(short);
      leftOut.push({ event_id: one.event, bytes: bytesOf(one), why: 'an old large result, elided to make room' });
      return short;
    }),
  }));
  return { messages, leftOut, estimatedTokens };
}

const bytesOf = (one: TranscriptBlock): number => JSON.stringify(one.block.content ?? '').length;

function stub(one: TranscriptBlock): TranscriptBlock['block'] {
  const text = `[Result of ${bytesOf(one)} bytes left out of this view; get_events with event_ids ["${one.event}"] gives it back.]`;
  return { ...one.block, content: [{ type: 'text', text }] };
}
