import { relative } from 'node:path';
import type { EventId, ThreadId } from '../../protocol/ids.ts';
import type { BytePath } from '../../sandbox/checkpoints/byte-path.ts';
import type { FileChange } from '../../sandbox/checkpoints/raw-diff.ts';
import type { SessionState, ToolCall } from '../../session/state.ts';
import { changedFile } from '../file-call.ts';
import type { Taken } from './points.ts';

/** Whose changes are wanted: one call's, one thread's, or those of the whole session's agents. */
export type Whose = { call: EventId } | { thread: ThreadId } | 'session';

/** One file as it was and as it became; null where there was or is none. */
export interface Changed {
  path: BytePath;
  before: string | null;
  after: string | null;
}

const wants = (whose: Whose, call: ToolCall): boolean =>
  whose === 'session' || ('call' in whose ? call.id === whose.call : call.thread === whose.thread);

/** The checkpoints that may hold such changes; those of nobody of the session never do. */
export const candidates = (state: SessionState, taken: readonly Taken[], whose: Whose): Taken[] =>
  taken.filter(({ checkpoint }) =>
    checkpoint.tool_use_ids.some((id) => {
      const call = state.calls.get(id);
      return call !== undefined && wants(whose, call);
    }),
  );

/**
 * Whose a change is, where calls ran side by side: a file that one of them was to write is that one's; any other is of
 * those that may write anything, and of all where there is none such.
 */
function owners(folder: string, calls: readonly ToolCall[], path: BytePath): ToolCall[] {
  if (calls.length < 2) return [...calls];
  const files = new Map(calls.map((call) => [call, fileOf(folder, call)]));
  const writers = calls.filter((call) => files.get(call) === path);
  if (writers.length > 0) return writers;
  const free = calls.filter((call) => files.get(call) === undefined);
  return free.length > 0 ? free : [...calls];
}

function fileOf(folder: string, call: ToolCall): BytePath | undefined {
  const path = changedFile(folder, call);
  return path && Buffer.from(relative(folder, path).replaceAll('\\', '/')).toString('latin1');
}

/**
 * The changes of these checkpoints that are wanted, put together: a file that several of them changed stands once, as
 * it was before the first and became by the last. Where somebody else changed it in between it stands once for each
 * stretch, so that nobody's change is taken for another's.
 * @param folder absolute path of the work folder
 * @param changes what each of `taken` changed, in their order
 */
export function joined(
  state: SessionState,
  folder: string,
  taken: readonly Taken[],
  changes: readonly (readonly FileChange[])[],
  whose: Whose,
): Changed[] {
  const stretches = new Map<BytePath, Changed[]>();
  for (const [at, { checkpoint }] of taken.entries()) {
    const calls = checkpoint.tool_use_ids.flatMap((id) => state.calls.get(id) ?? []);
    for (const { path, before, after } of changes[at] ?? []) {
      if (!owners(folder, calls, path).some((call) => wants(whose, call))) continue;
      const known = stretches.get(path) ?? [];
      stretches.set(path, known);
      const last = known.at(-1);
      if (last && last.after === before) last.after = after;
      else known.push({ path, before, after });
    }
  }
  return [...stretches.values()].flat().filter(({ before, after }) => before !== after);
}
