import { type Kept, pagesOf } from '../../../src/session/snapshot.ts';
import type { SessionState } from '../../../src/session/state.ts';

/** A state as it would lie beside its log, all of its pages there. */
export function keptOf(state: SessionState): Kept {
  const [first = new Uint8Array(), ...rest] = [...pagesOf(state)].map((page) => new TextEncoder().encode(page));
  const replay = () => {
    throw new Error('The pages are there, so nobody needs the records.');
  };
  return { first, rest: () => rest, replay };
}
