import type { ThreadId } from '../protocol/ids.ts';
import type { Toolbox } from '../tools/tools.ts';
import type { Awake } from './awake.ts';

/**
 * The model begins to write a call. Whether it will run is not known yet, but what it would run in takes longer to make
 * than the rest of the call takes to come. A tool that the agent does not have is refused in any case.
 */
export function lookAhead(awake: Awake, thread: ThreadId, toolbox: Toolbox, tool: string): void {
  if (!awake.stopped && toolbox.find(tool)?.sandboxed) awake.deps.sandboxes.prepare(awake.ownerFor(thread));
}
