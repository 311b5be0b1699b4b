import type Docker from 'dockerode';
import { SandboxId } from '../../protocol/ids.ts';
import { SandboxUnavailable } from '../sandbox.ts';
import type { Engine } from './client.ts';
import type { KeptSandbox } from './kept-sandbox.ts';
import { LABEL } from './labels.ts';

/** How many sandboxes may live, and how long one that nobody uses does. */
export interface Limits {
  /** Running containers of all windows on the engine; 0 = as many as there are asked for. */
  living: number;
  /** Minutes without a call until a container is stopped; 0 = never. */
  idleMinutes: number;
}

/** As long as no one says otherwise. A container without work costs little but its memory. */
export const USUAL_LIMITS: Limits = { living: 12, idleMinutes: 30 };

const MINUTE_MS = 60_000;

/** Stops those that nobody has used for so long. Never throws. */
export async function stopIdle(kept: Iterable<KeptSandbox>, idleMinutes: number): Promise<void> {
  if (idleMinutes <= 0) return;
  const idle = [...kept].filter((sandbox) => (sandbox.idleMs ?? 0) >= idleMinutes * MINUTE_MS);
  await Promise.allSettled(idle.map((sandbox) => sandbox.rest()));
}

/**
 * Sees to it that one more container may run: the one that was idle the longest makes room.
 * Throws `SandboxUnavailable` if all are at work.
 */
export async function makeRoom(engine: Engine, kept: Iterable<KeptSandbox>, living: number): Promise<void> {
  if (living <= 0) return;
  const running = await engine.docker.listContainers({ filters: { label: [LABEL.sandbox] } });
  let over = running.length - living + 1;
  const idle = [...kept]
    .filter((sandbox) => (sandbox.idleMs ?? 0) > 0)
    .sort((a, b) => (b.idleMs ?? 0) - (a.idleMs ?? 0));
  for (const sandbox of idle) {
    if (over <= 0) return;
    await sandbox.rest();
    over -= 1;
  }
  if (over <= 0) return;
  throw new SandboxUnavailable(
    'container',
    `${running.length} sandboxes are running and all are in use, and the limit is ${living} (drover.sandboxes.maxLiving); let a session come to its end, archive one, or raise the limit.`,
  );
}

/** Removes containers with what only they use. Returns the sandboxes that are gone. */
export async function removeContainers(docker: Docker, containers: Docker.ContainerInfo[]): Promise<SandboxId[]> {
  const removed = containers.map(async (info) => {
    await docker.getContainer(info.Id).remove({ force: true, v: true });
    return SandboxId.parse(info.Labels[LABEL.sandbox]);
  });
  return (await Promise.allSettled(removed)).flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
}
