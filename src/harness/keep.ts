import type { SessionWriter } from '../log/log.ts';
import { FOLD_VERSION, pagesOf } from '../session/snapshot.ts';
import type { SessionState } from '../session/state.ts';

/** Fewer records than this are folded in no time, so they need no kept state. */
const MIN_RECORDS = 500;
/** Of a long log more must have come: writing the state down costs as much as the log is long. */
const MIN_SHARE = 0.05;

/** Keeps the state beside the log, if that makes the next opening faster. Never throws: it is a shortcut, nothing else. */
export async function keepState(writer: SessionWriter, state: SessionState): Promise<void> {
  if (writer.sinceKept < Math.max(MIN_RECORDS, state.head.seq * MIN_SHARE)) return;
  await writer.keep(state.head, FOLD_VERSION, pagesOf(state));
}
