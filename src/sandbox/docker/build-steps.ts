import type Docker from 'dockerode';

/** What the engine's own builder says of each step that runs a program. */
const RUNNING = /^\s*-+> Running in ([0-9a-f]{12,64})\s*$/;

/**
 * The containers of a build's steps. An engine without BuildKit leaves that of the step that failed, without a label by
 * which anybody could know it later: only the build's output names it.
 */
export class BuildSteps {
  readonly #containers = new Set<string>();

  /** A line of the tool's output. */
  read(line: string): void {
    const id = RUNNING.exec(line)?.[1];
    if (id) this.#containers.add(id);
  }

  /** Removes what a failed build left. Never throws. */
  async clear(docker: Docker): Promise<void> {
    const all = [...this.#containers].map(async (id) => {
      const container = docker.getContainer(id);
      const { State: state, Mounts: mounts } = await container.inspect();
      // A step's container has no mounts. Without force the engine refuses to remove one that runs.
      if (!state.Running && mounts.length === 0) await container.remove();
    });
    await Promise.allSettled(all);
  }
}
