import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import type Docker from 'dockerode';
import type { Environment } from '../../protocol/environment.ts';
import { SandboxId, type SessionId } from '../../protocol/ids.ts';
import type { GuardNotes } from '../guard-notes.ts';
import type { Cleaned } from '../sandbox.ts';
import { composeProject } from './devcontainer.ts';
import type { ImageNotes } from './image-notes.ts';
import { LABEL, withLabels } from './labels.ts';
import { removePackages } from './packages.ts';

/** Removes containers with what only they use. Returns the sandboxes that are gone. */
export async function removeContainers(docker: Docker, containers: Docker.ContainerInfo[]): Promise<SandboxId[]> {
  const removed = containers.map(async (info) => {
    await docker.getContainer(info.Id).remove({ force: true, v: true });
    return SandboxId.parse(info.Labels[LABEL.sandbox]);
  });
  const done = await Promise.allSettled(removed);
  const gone = [...new Set(done.flatMap((result) => (result.status === 'fulfilled' ? result.value : [])))];
  await Promise.allSettled(gone.map((id) => removeBelongings(docker, id)));
  return gone;
}

/** Networks, volumes and images that were made for one sandbox. What is still in use stays. Returns how many are gone. */
async function removeBelongings(docker: Docker, sandbox: SandboxId): Promise<number> {
  const filters = withLabels({ sandbox });
  const [networks, { Volumes: volumes }, images] = await Promise.all([
    docker.listNetworks({ filters }),
    docker.listVolumes({ filters }),
    // Compose names what it builds after its project.
    docker.listImages({ filters: { reference: [`${composeProject(sandbox)}*`] } }),
  ]);
  const done = await Promise.allSettled([
    ...networks.map((network) => docker.getNetwork(network.Id).remove()),
    ...(volumes ?? []).map((volume) => docker.getVolume(volume.Name).remove()),
    ...images.flatMap((image) => image.RepoTags ?? []).map((tag) => docker.getImage(tag).remove()),
  ]);
  return done.filter(({ status }) => status === 'fulfilled').length;
}

export interface CleanUpInput {
  docker: Docker;
  notes: GuardNotes;
  images: ImageNotes;
  workspaceFolder: string;
  keep: ReadonlySet<SessionId>;
  /** Images too that were used lately: a person asked for it. Of those with packages, those of `environments` stay. */
  all: boolean;
  environments: readonly Environment[];
}

/**
 * Removes what nobody needs any more: sandboxes of this folder's sessions but those to `keep`; of this machine's
 * folders that do not exist any more; what sandboxes left that are gone; unused images. `here`: how many of the
 * sandboxes were this folder's; `kept`: the containers it still has.
 */
export async function cleanUp(input: CleanUpInput): Promise<Cleaned & { here: number; kept: Docker.ContainerInfo[] }> {
  const { docker, notes, images, workspaceFolder, keep, all, environments } = input;
  const containers = await docker.listContainers({ all: true, filters: { label: [LABEL.sandbox] } });
  const unneeded = containers.filter(({ Labels }) => {
    const { [LABEL.workspace]: folder, [LABEL.session]: session, [LABEL.host]: host } = Labels;
    if (folder === workspaceFolder) return ![...keep].some((one) => one === session);
    // Whether a folder is gone, only the machine can say that it was on: others may use the same engine.
    return host === hostname() && folder !== undefined && !existsSync(folder);
  });
  const gone = await removeContainers(docker, unneeded);
  for (const id of gone) notes.forget(id);
  const left = new Set(containers.flatMap(({ Labels }) => SandboxId.safeParse(Labels[LABEL.sandbox]).data ?? []));
  for (const id of notes.old()) if (!left.has(id)) notes.forget(id);
  const others = await removeOrphans(docker, left);
  const ours = containers.filter(({ Labels }) => Labels[LABEL.workspace] === workspaceFolder);
  const isGone = ({ Labels }: Docker.ContainerInfo) => gone.some((id) => id === Labels[LABEL.sandbox]);
  const packages = all ? await removePackages(docker, environments) : { removed: 0, kept: 0 };
  return {
    sandboxes: gone.length,
    images: (await images.removeUnused(docker, all, existsSync)) + packages.removed,
    others,
    packages: packages.kept,
    here: new Set(ours.filter(isGone).map(({ Labels }) => Labels[LABEL.sandbox])).size,
    kept: ours.filter((info) => !isGone(info)),
  };
}

/** Networks and volumes of ours on this machine whose container is gone. */
async function removeOrphans(docker: Docker, living: ReadonlySet<SandboxId>): Promise<number> {
  const filters = { label: [`${LABEL.host}=${hostname()}`] };
  const [networks, { Volumes: volumes }] = await Promise.all([
    docker.listNetworks({ filters }),
    docker.listVolumes({ filters }),
  ]);
  const owners = [...networks, ...(volumes ?? [])].flatMap(
    ({ Labels }) => SandboxId.safeParse(Labels?.[LABEL.sandbox]).data ?? [],
  );
  const orphans = new Set(owners.filter((id) => !living.has(id)));
  const counts = await Promise.all([...orphans].map((id) => removeBelongings(docker, id).catch(() => 0)));
  return counts.reduce((sum, count) => sum + count, 0);
}
