import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import type Docker from 'dockerode';
import type { SandboxId } from '../../protocol/ids.ts';
import { guardRails } from '../guard-rails.ts';
import { type Archives, Sync } from '../remote/sync.ts';
import { type SandboxOwner, SandboxUnavailable } from '../sandbox.ts';
import { workFolder } from '../work-folder.ts';
import { type Engine, reasonOf } from './client.ts';
import { needImage } from './image.ts';
import { LABEL, labelsFor } from './labels.ts';
import type { PlannedMount } from './plan.ts';

/** Small, and has what little is needed: a container that never runs. */
const ANY_IMAGE = 'busybox:stable';
/** Where the container that fills the volume has it; nobody sees it. */
const FILLING = '/filling';

/** The volume that holds a sandbox's copy of the workspace on an engine that can't see the folder. */
export const copyVolume = (id: SandboxId): string => `drover-${id}`;

export const copyMount = (id: SandboxId, target: string): PlannedMount => ({
  type: 'volume',
  source: copyVolume(id),
  target,
});

/** The copies of workspaces on an engine elsewhere, and what is known of them from one process to the next. */
export class Copies {
  readonly #folder: string;
  /** What holds each volume until the sandbox's own container does: one that nobody holds is cleaned up by any window. */
  readonly #holders = new Map<SandboxId, Docker.Container>();

  constructor(cacheFolder: string) {
    this.#folder = join(cacheFolder, 'copies');
  }

  /**
   * Makes a sandbox's volume and fills it, before its container is made; `held` is to follow when that has been made.
   * `image`: one that the sandbox needs anyway. Throws `SandboxUnavailable`.
   */
  async make(engine: Engine, owner: SandboxOwner, id: SandboxId, image: string | undefined): Promise<void> {
    const { docker } = engine;
    const labels = labelsFor(owner, id);
    owner.onProgress?.(`The engine at ${engine.endpoint.host} does not see this folder: it gets a copy`);
    const some = image ?? (await anyImage(docker)) ?? ANY_IMAGE;
    await needImage(engine, some, owner.onProgress);
    try {
      await docker.createVolume({ Name: copyVolume(id), Labels: labels });
      const filler = await docker.createContainer({
        Image: some,
        Entrypoint: ['sh'],
        Labels: labels,
        HostConfig: { Mounts: [{ Type: 'volume', Source: copyVolume(id), Target: FILLING }], NetworkMode: 'none' },
      });
      this.#holders.set(id, filler);
      await this.#sync(owner, id, filler, FILLING).fill();
    } catch (error) {
      throw new SandboxUnavailable('container', `The folder could not be copied to the engine: ${reasonOf(error)}.`, {
        cause: error,
      });
    }
  }

  /**
   * The sandbox's container holds the volume now. Throws `SandboxUnavailable` if it is another one than was filled: an
   * engine makes an empty one in place of what is missing, without a label.
   */
  async held({ docker }: Engine, id: SandboxId): Promise<void> {
    const { Labels: labels } = await docker.getVolume(copyVolume(id)).inspect();
    await this.#letGo(id);
    if (labels?.[LABEL.sandbox] !== id)
      throw new SandboxUnavailable(
        'container',
        'The copy of the folder was removed on the engine before the sandbox had it; try again.',
      );
  }

  async #letGo(id: SandboxId): Promise<void> {
    const holder = this.#holders.get(id);
    this.#holders.delete(id);
    await holder?.remove({ force: true }).catch(() => undefined);
  }

  /** For a container that has the copy at `target`. */
  sync(owner: SandboxOwner, id: SandboxId, container: Docker.Container, target: string): Sync {
    return this.#sync(owner, id, container, target);
  }

  forget(id: SandboxId): void {
    void this.#letGo(id);
    rmSync(this.#stateFile(id), { force: true });
  }

  #sync(owner: SandboxOwner, id: SandboxId, container: Docker.Container, target: string): Sync {
    const folder = workFolder(owner);
    return new Sync({
      folder,
      target,
      guarded: guardRails(folder).guarded,
      archives: archivesOf(container),
      stateFile: this.#stateFile(id),
      tell: (message) => owner.onProgress?.(message),
    });
  }

  #stateFile(id: SandboxId): string {
    return join(this.#folder, `${id}.json`);
  }
}

/** One that is there already. Those that are left over from a build have no name. */
async function anyImage(docker: Docker): Promise<string | undefined> {
  const names = (await docker.listImages()).flatMap(({ RepoTags: tags }) => tags ?? []);
  return names.find((name) => !name.includes('<none>'));
}

function archivesOf(container: Docker.Container): Archives {
  return {
    put: async (target, archive) => {
      // The engine's client wants a stream of Node's own making.
      await container.putArchive(archive.pipe(new PassThrough()), { path: target });
    },
    get: async (path) => (await container.getArchive({ path })) as Readable,
  };
}
