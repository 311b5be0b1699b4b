import type Docker from 'dockerode';
import { SandboxUnavailable } from '../sandbox.ts';
import { type Engine, reasonOf, statusOf } from './client.ts';
import { type CreationPlan, createOptions } from './plan.ts';

/** Where the workspace is in a container of a plain image. */
export const IMAGE_TARGET = '/workspace';
/** Keeps the container alive and ends at once when told to. */
const IDLE = 'trap "exit 0" TERM INT; while :; do sleep 3600 & wait $!; done';

/** Starts a container of a named image, made as planned. Throws `SandboxUnavailable`. */
export async function startImage(
  engine: Engine,
  plan: CreationPlan,
  image: string,
  onProgress?: (line: string) => void,
): Promise<Docker.Container> {
  const options: Docker.ContainerCreateOptions = {
    ...createOptions(plan),
    Image: image,
    Entrypoint: ['sh', '-c', IDLE],
    Cmd: [],
    WorkingDir: IMAGE_TARGET,
  };
  let container: Docker.Container;
  try {
    container = await createContainer(engine, options, image, onProgress);
  } catch (error) {
    if (error instanceof SandboxUnavailable) throw error;
    throw new SandboxUnavailable('container', `The container could not be made: ${reasonOf(error)}.`, { cause: error });
  }
  try {
    await container.start();
  } catch (error) {
    await container.remove({ force: true, v: true }).catch(() => {});
    throw notStarted(image, error);
  }
  return container;
}

function notStarted(image: string, error: unknown): SandboxUnavailable {
  const reason = reasonOf(error);
  const why = /"sh"|exec: .?sh/.test(reason)
    ? `The image ${image} has no shell (sh), which every tool needs; use an image with sh and coreutils.`
    : `The container of ${image} could not start: ${reason}.`;
  return new SandboxUnavailable('container', why, { cause: error });
}

/** Sees that the image is on the engine; pulls it if it is not. Throws `SandboxUnavailable`. */
export async function needImage(engine: Engine, image: string, onProgress?: (line: string) => void): Promise<void> {
  try {
    await engine.docker.getImage(image).inspect();
  } catch (error) {
    if (statusOf(error) !== 404) throw error;
    await pull(engine, image, onProgress);
  }
}

async function createContainer(
  engine: Engine,
  options: Docker.ContainerCreateOptions,
  image: string,
  onProgress?: (line: string) => void,
): Promise<Docker.Container> {
  try {
    return await engine.docker.createContainer(options);
  } catch (error) {
    if (/container-init binary/i.test(reasonOf(error)))
      return await engine.docker.createContainer(withoutInit(options));
    if (statusOf(error) !== 404 || !/image/i.test(reasonOf(error))) throw error;
  }
  await pull(engine, image, onProgress);
  return await engine.docker.createContainer(options);
}

/** Podman may come without the small program that is to be process 1. The shell that idles there reaps children, too. */
const withoutInit = (options: Docker.ContainerCreateOptions): Docker.ContainerCreateOptions => ({
  ...options,
  HostConfig: { ...options.HostConfig, Init: false },
});

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
