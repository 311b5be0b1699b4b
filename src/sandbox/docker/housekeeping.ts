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
  const running = await engine.docker.listContainers({ filters: { label: [LABEL.inside] } });
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

/**
 * Containers of sessions that may still want them, which nobody has asked for since this process began: a crash left
 * them running. They are stopped in the end, as if they were in use here and idle.
 */
export class Strays {
  readonly #noticed = new Map<SandboxId, { container: string; at: number }>();

  notice(containers: readonly Docker.ContainerInfo[]): void {
    for (const { Id, Labels, State } of containers) {
      const id = SandboxId.safeParse(Labels[LABEL.sandbox]).data;
      if (id && State === 'running' && Labels[LABEL.inside] !== undefined)
        this.#noticed.set(id, { container: Id, at: performance.now() });
    }
  }

  /** Stops those of which `looked` says that no process has used them for so long. Never throws. */
  async stop(docker: Docker, idleMinutes: number, looked: Look): Promise<void> {
    if (idleMinutes <= 0) return;
    for (const [id, { container, at }] of [...this.#noticed]) {
      const unusedMs = Math.min(performance.now() - at, looked.unusedMs(id));
      if (unusedMs < idleMinutes * MINUTE_MS) continue;
      this.#noticed.delete(id);
      looked.rest(id);
      await docker
        .getContainer(container)
        .stop()
        .catch(() => {});
    }
  }
}

interface Look {
  /** ms since any process said that it uses the sandbox. */
  unusedMs(id: SandboxId): number;
  /** Told before it is stopped. */
  rest(id: SandboxId): void;
}
