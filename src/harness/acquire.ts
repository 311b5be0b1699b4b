import { AppendFailed, LeaseLost } from '../log/log.ts';
import type { ThreadId } from '../protocol/ids.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { Awake } from './awake.ts';

/** Only once the result is durable: until then the sandbox may be the one place that has it. */
export function release(awake: Awake, sandbox: Sandbox | null): void {
  if (sandbox) awake.deps.sandboxes.release(awake.owner, sandbox.id);
}

/** Provisioning goes on after an interrupt, for the next call; only this call stops waiting for it. */
export async function acquire(awake: Awake, thread: ThreadId, signal: AbortSignal): Promise<Sandbox> {
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  const acquiring = acquireShared(awake, thread);
  // If nobody waits for it any more, its failure is in the log already.
  acquiring.then(
    (sandbox) => signal.aborted && release(awake, sandbox),
    () => undefined,
  );
  return Promise.race([acquiring, aborted]);
}

/**
 * One that is being made is shared, also with the harness that began it, which may have been stopped since: it can't say
 * in the log what it has made, and so has made nothing. Then one is made anew for us.
 */
async function acquireShared(awake: Awake, thread: ThreadId): Promise<Sandbox> {
  const owner = awake.ownerFor(thread);
  try {
    return await awake.deps.sandboxes.acquire(owner);
  } catch (error) {
    const unsaid = error instanceof LeaseLost || error instanceof AppendFailed;
    if (!unsaid || awake.stopped) throw error;
    return awake.deps.sandboxes.acquire(owner);
  }
}
