import { messageOf } from '../protocol/errors.ts';
import { mint, type SandboxId } from '../protocol/ids.ts';
import { draft } from '../protocol/record.ts';
import type { Hands, LivingSandbox } from './hands.ts';
import { ensureCopy } from './isolated/copy.ts';
import { loggingProgress } from './progress.ts';
import { type SandboxOwner, SandboxUnavailable } from './sandbox.ts';

/** Makes a sandbox: logged before anything is made, and how it went. What a failure leaves is removed. */
export async function makeLogged(owner: SandboxOwner, hands: Hands, id = mint.sandbox()): Promise<LivingSandbox> {
  const took = stopwatch();
  const recipe = hands.recipe(owner.environment);
  await owner.record([draft('drover.sandbox_provisioning', { sandbox_id: id, recipe })]);
  const telling = loggingProgress(owner, id);
  try {
    if (owner.environment.workspace === 'isolated') await ensureCopy(owner);
    const { sandbox, detail } = await hands.make(telling.owner, id);
    await telling.end();
    const ready = { sandbox_id: id, kind: sandbox.kind, detail, duration_ms: took() };
    await owner.record([draft('drover.sandbox_ready', ready)]);
    return sandbox;
  } catch (error) {
    await telling.end();
    await hands.discard(owner.session, id);
    const unavailable = asUnavailable(error);
    await owner.record([draft('drover.sandbox_failed', { sandbox_id: id, message: unavailable.message })]);
    throw unavailable;
  }
}

/** The session's sandbox that a former process left, logged as found; null if there is none. */
export async function adoptLogged(owner: SandboxOwner, hands: Hands): Promise<LivingSandbox | null> {
  const took = stopwatch();
  const found = await hands.adopt(owner, undefined);
  if (!found) return null;
  const { sandbox, detail } = found;
  const ready = { sandbox_id: sandbox.id, kind: sandbox.kind, detail: `found again: ${detail}`, duration_ms: took() };
  await owner.record([draft('drover.sandbox_ready', ready)]);
  return sandbox;
}

/** Tells that a sandbox the log believes in was found to be gone. */
export async function recordGone(owner: SandboxOwner, sandbox_id: SandboxId): Promise<void> {
  if (owner.inUse?.() !== sandbox_id) return;
  const reason = 'It was gone when the session went on.';
  await owner.record([draft('drover.sandbox_lost', { sandbox_id, reason })]);
}

function stopwatch(): () => number {
  const from = performance.now();
  return () => Math.round(performance.now() - from);
}

const asUnavailable = (error: unknown): SandboxUnavailable =>
  error instanceof SandboxUnavailable
    ? error
    : new SandboxUnavailable('container', `The sandbox could not be made: ${messageOf(error)}.`, { cause: error });
