import type { SandboxId, ThreadId } from '../protocol/ids.ts';
import type { Local } from '../protocol/record.ts';
import type { Awake } from './awake.ts';

/**
 * Who acts and in whose sandbox, as a call's start and result say it. A sandbox is its first user's: where a child acts
 * in its parent's, both names stand. Without a sandbox a thread acts on its own.
 */
export function attribution(awake: Awake, acting: ThreadId, sandbox: SandboxId | null): Local {
  const owner = sandbox === null ? null : awake.state.sandboxes.get(sandbox)?.owner;
  return { acting_thread: acting, owner_thread: owner ?? acting };
}
