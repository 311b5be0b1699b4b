import type { Refused } from './refused.ts';

/** What stands in the body of the proxy's own answers: for the model, which reads it in a command's output. */
export const told = (refused: Refused): string => {
  const advice =
    refused.reason === 'not_listed' ? " The environment's network settings say which hosts may be reached." : '';
  return `Drover: ${refused.message}.${advice}\n`;
};
