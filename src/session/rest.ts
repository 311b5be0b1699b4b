import type { ThreadState } from './state.ts';

/** A thread rests when its turn is over and nobody is waited for: idle, for any reason but `requires_action`. */
export const atRest = (thread: ThreadState): boolean =>
  thread.status === 'terminated' || (thread.status === 'idle' && thread.stopReason?.type !== 'requires_action');
