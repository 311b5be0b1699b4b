/** The door of `session/`: what a log means. Pure: no I/O, no clock, no randomness. */
export { decide, type InHand, nothingInHand, type Step } from './decide.ts';
export { apply, type CallPhase, callPhase, fold, pendingApprovals } from './fold.ts';
export type * from './state.ts';
export { lastWords, type TranscriptBlock, type TranscriptMessage, transcript } from './transcript.ts';
