import { estimateTokens, type Strategy, verbatim } from './strategy.ts';

/** The whole thread, nothing left out. */
export const everything: Strategy = {
  name: 'everything',
  assemble(view) {
    let estimatedTokens = view.fixedTokens;
    for (const message of view.messages) for (const one of message.blocks) estimatedTokens += estimateTokens(one.block);
    return { messages: verbatim(view.messages), leftOut: [], estimatedTokens };
  },
};
