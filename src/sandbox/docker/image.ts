import type Docker from 'dockerode';
import type { SandboxId } from '../../protocol/ids.ts';
import { type SandboxOwner, SandboxUnavailable } from '../sandbox.ts';
import { type Engine, reasonOf, statusOf } from './client.ts';
import { protectedPaths } from './hardening.ts';
import { LABEL, labelsFor } from './labels.ts';

const WORKSPACE = '/workspace';
/** Keeps the container alive and ends at once when told to. */
const IDLE = 'trap "exit 0" TERM INT; while :; do sleep 3600 & wait $!; done';

/** Starts a container of a named image with the workspace mounted. Throws `SandboxUnavailable`. */
export async function startImage(
  engine: Engine,
  owner: SandboxOwner,
  id: SandboxId,
  image: string,
): Promise<Docker.Container> {
  const options = createOptions(owner, id, image);
  let container: Docker.Container;
  try {
    container = await createContainer(engine, owner, options, image);
  } catch (error) {
    if (error instanceof SandboxUnavailable) throw error;
    throw new SandboxUnavailable('container', `The container could not be made: ${reasonOf(error)}.`, { cause: error });
  }
  try {
    await container.start();
  } catch (error) {
    await container.remove({ force: true, v: true }).catch(() => {});
    const reason = reasonOf(error);
    const why = /"sh"|exec: .?sh/.test(reason)
      ? `The image ${image} has no shell (sh), which every tool needs; use an image with sh and coreutils.`
      : `The container of ${image} could not start: ${reason}.`;
    throw new SandboxUnavailable('container', why, { cause: error });
  }
  return container;
}

async function createContainer(
  engine: Engine,
  owner: SandboxOwner,
  options: Docker.ContainerCreateOptions,
  image: string,
): Promise<Docker.Container> {
  try {
    return await engine.docker.createContainer(options);
  } catch (error) {
    if (statusOf(error) !== 404 || !/image/i.test(reasonOf(error))) throw error;
  }
  await pull(engine, image, owner.onProgress);
  return await engine.docker.createContainer(options);
}

async function pull(engine: Engine, image: string, onProgress?: (line: string) => void): Promise<void> {
  onProgress?.(`Pulling the image ${image}`);
  try {
    const stream = await engine.docker.pull(image);
    await new Promise<void>((resolve, reject) => {
      engine.docker.modem.followProgress(
        stream,
        (error: Error | null) => (error ? reject(error) : resolve()),
        (event: { status?: string; id?: string }) => {
          if (event.status && !event.id) onProgress?.(event.status);
        },
      );
    });
  } catch (error) {
    throw new SandboxUnavailable(
      'container',
      `The image ${image} is not on this machine and could not be pulled (${reasonOf(error)}); check its name in the environment, or pull or build it yourself.`,
      { cause: error },
    );
  }
}

function createOptions(owner: SandboxOwner, id: SandboxId, image: string): Docker.ContainerCreateOptions {
  const { limits } = owner.environment;
  const memory = limits?.memory_mib === undefined ? undefined : limits.memory_mib * 1024 * 1024;
  return {
    Image: image,
    Entrypoint: ['sh', '-c', IDLE],
    Cmd: [],
    WorkingDir: WORKSPACE,
    Labels: { ...labelsFor(owner, id), [LABEL.inside]: WORKSPACE },
    HostConfig: {
      Init: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Mounts: mounts(owner.workspaceFolder),
      // Swap equal to memory means none on top of it.
      ...(memory === undefined ? {} : { Memory: memory, MemorySwap: memory }),
      ...(limits?.cpus === undefined ? {} : { NanoCpus: Math.round(limits.cpus * 1e9) }),
      ...(limits?.pids === undefined ? {} : { PidsLimit: limits.pids }),
    },
  };
}

function mounts(workspaceFolder: string): Docker.MountConfig {
  const inner = protectedPaths(workspaceFolder).map(({ path, hidden }): Docker.MountSettings => {
    const Target = `${WORKSPACE}/${path}`;
    if (hidden) return { Type: 'tmpfs', Source: '', Target, ReadOnly: true };
    return { Type: 'bind', Source: `${workspaceFolder}/${path}`, Target, ReadOnly: true };
  });
  return [{ Type: 'bind', Source: workspaceFolder, Target: WORKSPACE }, ...inner];
}
