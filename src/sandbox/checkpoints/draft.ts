import type { EventOf } from '../../protocol/event.ts';
import type { EventId } from '../../protocol/ids.ts';
import { type Draft, draft } from '../../protocol/record.ts';
import { shown } from './byte-path.ts';
import type { FileChange } from './raw-diff.ts';
import type { Skipped } from './work-tree.ts';

/** Files an event names; their number is always there, and the repository knows all of them. */
const FILES = 100;
const SKIPPED = 20;

export const namedFiles = (changes: readonly FileChange[]) =>
  changes.slice(0, FILES).map(({ path, change }) => ({ path: shown(path), change }));

/** The event of a checkpoint. */
export function checkpointDraft(of: {
  commit: string;
  parent: string | null;
  why: EventOf<'drover.checkpoint'>['why'];
  calls: readonly EventId[];
  changes: readonly FileChange[];
  skipped: readonly Skipped[];
}): Draft {
  return draft('drover.checkpoint', {
    commit: of.commit,
    parent: of.parent,
    why: of.why,
    tool_use_ids: [...of.calls],
    files_changed: of.changes.length,
    files: namedFiles(of.changes),
    skipped: of.skipped.slice(0, SKIPPED).map(({ path, why, bytes }) => ({ path: shown(path), why, bytes })),
    skipped_count: of.skipped.length,
  });
}
