import Docker from 'dockerode';
import { mint } from '../../src/protocol/ids.ts';
import { ContainerSandbox } from '../../src/sandbox/docker/container-sandbox.ts';

/** A container of the test's own, made as it likes, with a sandbox in it. */
export interface OwnContainer {
  sandbox: ContainerSandbox;
  container: Docker.Container;
  /** Why it was lost, each time it was told. */
  lost: string[];
  /** Another connection to it, as another process has. */
  again(): ContainerSandbox;
  remove(): Promise<void>;
}

export async function ownContainer(
  image: string,
  host: Docker.ContainerCreateOptions['HostConfig'] = {},
  docker = new Docker(),
): Promise<OwnContainer> {
  const container = await docker.createContainer({
    Image: image,
    Cmd: ['sh', '-c', 'while sleep 3600; do :; done'],
    WorkingDir: '/workspace',
    Labels: { 'drover.test': String(process.pid) },
    HostConfig: { NetworkMode: 'none', Init: true, CapDrop: ['ALL'], ...host },
  });
  await container.start();
  const lost: string[] = [];
  const open = () =>
    new ContainerSandbox({
      id: mint.sandbox(),
      container,
      workspace: '/workspace',
      env: {},
      onLost: async (reason) => void lost.push(reason),
    });
  const opened = [open()];
  const [sandbox] = opened;
  if (!sandbox) throw new Error('There is no sandbox.');
  return {
    sandbox,
    container,
    lost,
    again: () => {
      const other = open();
      opened.push(other);
      return other;
    },
    remove: async () => {
      for (const one of opened) one.close();
      await container.remove({ force: true, v: true });
    },
  };
}
