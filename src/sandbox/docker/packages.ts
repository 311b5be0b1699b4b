import { createHash, randomBytes } from 'node:crypto';
import type Docker from 'dockerode';
import type { Environment, Packages } from '../../protocol/environment.ts';
import { INSIDE } from '../../vault/egress.ts';
import { SandboxUnavailable } from '../sandbox.ts';
import { type Engine, reasonOf, statusOf } from './client.ts';
import { demultiplexer } from './demultiplex.ts';
import { LABEL } from './labels.ts';
import type { WayOut } from './network.ts';

type Manager = keyof Packages;

/**
 * How each manager installs, in this order; `"$@"` are the entries as they stand in the environment. As root, for all
 * users of the image, without questions.
 */
const INSTALL: readonly (readonly [Manager, program: string, script: string])[] = [
  [
    'apt',
    'apt-get',
    // Of all managers it alone looks at no variable for whom to trust.
    `export DEBIAN_FRONTEND=noninteractive; apt() { apt-get -q \${SSL_CERT_FILE:+-o "Acquire::https::CaInfo=$SSL_CERT_FILE"} "$@"; }; apt update && apt install -y --no-install-recommends -o APT::Sandbox::User=root -- "$@" && rm -rf /var/lib/apt/lists/*`,
  ],
  ['cargo', 'cargo', 'cargo install --root /usr/local -- "$@"'],
  ['gem', 'gem', 'gem install --no-document "$@"'],
  ['go', 'go', 'for one; do GOBIN=/usr/local/bin go install "$one" || exit; done'],
  ['npm', 'npm', 'npm install --global --no-audit --no-fund --no-update-notifier -- "$@"'],
  [
    'pip',
    'python3',
    'PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --no-input --disable-pip-version-check -- "$@"',
  ],
];

/** Raised when the scripts above change what they leave. */
const VERSION = 2;
const INSTALL_MS = 20 * 60_000;
const SHOWN_LINES = 6;
const KEPT_LINES = 200;
/** Package managers give files to other users and make links; nothing more is given back of what root usually may. */
const INSTALLING = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'SETGID', 'SETUID'];
/** It ends by itself, and is removed then, also if nobody is left to do it. Seconds. */
const IDLE = ['sleep', String(INSTALL_MS / 1000 + 60)];

export interface PackagesRequest {
  engine: Engine;
  /** An image that is on the engine. */
  image: string;
  packages: Packages;
  /** The way to the registries; undefined: there is none, and only what is in the image can be installed. */
  way: WayOut | undefined;
  signal: AbortSignal;
  onProgress: ((line: string) => void) | undefined;
}

/** The managers that are asked for something, in their order. */
export const managersOf = (packages: Packages | undefined): [Manager, readonly string[]][] =>
  INSTALL.flatMap(([manager]): [Manager, readonly string[]][] => {
    const entries = packages?.[manager] ?? [];
    return entries.length > 0 ? [[manager, entries]] : [];
  });

const making = new Map<string, Promise<void>>();

/**
 * The image with the packages installed: made once for each image and list, then found by its name. They are installed
 * in a container that has neither the workspace nor a secret. Throws `SandboxUnavailable` naming the manager that failed.
 */
export async function imageWithPackages(request: PackagesRequest): Promise<string> {
  const { engine, image } = request;
  const wanted = managersOf(request.packages);
  if (wanted.length === 0) return image;
  const name = await nameFor(engine.docker, image, wanted);
  const key = `${engine.endpoint.host} ${name}`;
  const one = making.get(key) ?? ensure(request, name, wanted).finally(() => making.delete(key));
  making.set(key, one);
  await one;
  return name;
}

async function nameFor(
  docker: Docker,
  image: string,
  wanted: readonly (readonly [Manager, readonly string[]])[],
): Promise<string> {
  const { Id: id } = await docker.getImage(image).inspect();
  const hash = createHash('sha256')
    .update(JSON.stringify([VERSION, id, wanted]))
    .digest('hex')
    .slice(0, 24);
  return `drover-packages:${hash}`;
}

/**
 * Removes the images with installed packages that neither a container nor one of these environments uses. An image
 * that was installed onto another version of an environment's image goes, too: it would never be found again.
 */
export async function removePackages(
  docker: Docker,
  environments: readonly Environment[],
): Promise<{ removed: number; kept: number }> {
  const wanted = await Promise.all(
    environments.map(async ({ config }) => {
      if (config.type !== 'image' || managersOf(config.packages).length === 0) return undefined;
      // An image that is not there has none made from it.
      return await nameFor(docker, config.image, managersOf(config.packages)).catch(() => undefined);
    }),
  );
  const images = await docker.listImages({ filters: { label: [LABEL.packages] } });
  const tags = images.flatMap(({ RepoTags }) => RepoTags ?? []).filter((tag) => /(^|\/)drover-packages:/.test(tag));
  const isWanted = (tag: string) => wanted.some((name) => name !== undefined && tag.endsWith(name));
  // Without force the engine refuses to remove what a container uses.
  const done = await Promise.allSettled(
    tags.filter((tag) => !isWanted(tag)).map((tag) => docker.getImage(tag).remove()),
  );
  return {
    removed: done.filter(({ status }) => status === 'fulfilled').length,
    kept: tags.filter(isWanted).length,
  };
}

async function ensure(
  request: PackagesRequest,
  name: string,
  wanted: readonly (readonly [Manager, readonly string[]])[],
): Promise<void> {
  const { docker } = request.engine;
  try {
    await docker.getImage(name).inspect();
    return;
  } catch (error) {
    if (statusOf(error) !== 404) throw error;
  }
  const { container, user } = await start(request);
  try {
    for (const [manager, entries] of wanted) await install(request, container, manager, entries);
    await forgetWay(request, container);
    const [repo = '', tag = ''] = name.split(':');
    // The image's own user comes back; what else was said for installing is said anew for each container.
    const changes = [`USER ${user || '0'}`, `LABEL ${LABEL.packages}=${tag}`].join('\n');
    await container.commit({ repo, tag, changes });
  } catch (error) {
    if (error instanceof SandboxUnavailable) throw error;
    throw unavailable(`The packages could not be installed: ${reasonOf(error)}`, error);
  } finally {
    await container.remove({ force: true, v: true }).catch(() => undefined);
  }
}

async function start({ engine, image, way }: PackagesRequest): Promise<{ container: Docker.Container; user: string }> {
  try {
    const { Config: config } = await engine.docker.getImage(image).inspect();
    const container = await engine.docker.createContainer({
      Image: image,
      Entrypoint: IDLE,
      Cmd: [],
      User: '0',
      // A label would stay on the image, and on every sandbox made from it.
      name: `drover-installing-${randomBytes(6).toString('hex')}`,
      HostConfig: {
        Init: true,
        AutoRemove: true,
        CapDrop: ['ALL'],
        CapAdd: INSTALLING,
        SecurityOpt: ['no-new-privileges'],
        NetworkMode: 'none',
        ...(way?.mount?.type === 'bind'
          ? { Mounts: [{ Type: 'bind', Source: way.mount.source, Target: way.mount.target, ReadOnly: true }] }
          : {}),
      },
    });
    await container.start();
    await way?.enter(container, { becomesImage: true });
    return { container, user: config.User };
  } catch (error) {
    if (error instanceof SandboxUnavailable) throw error;
    throw unavailable(`No container could be started to install the packages in: ${reasonOf(error)}`, error);
  }
}

/** What was put in to get out belongs to this container alone. Throws if it can't be taken away. */
async function forgetWay(request: PackagesRequest, container: Docker.Container): Promise<void> {
  if (!request.way || request.way.mount) return;
  const code = await runIn(request, container, ['rm', '-rf', INSIDE.folder], {}, () => undefined);
  if (code !== 0) throw new Error(`the way to the registries could not be taken out of the image again (code ${code})`);
}

async function install(
  request: PackagesRequest,
  container: Docker.Container,
  manager: Manager,
  entries: readonly string[],
): Promise<void> {
  const [, program = '', script = ''] = INSTALL.find(([name]) => name === manager) ?? [];
  const { onProgress, way, image } = request;
  onProgress?.(`Installing with ${manager}: ${entries.join(' ')}`);
  const lines: string[] = [];
  const check = `command -v ${program} >/dev/null 2>&1 || exit 127; ${script}`;
  const code = await runIn(request, container, ['sh', '-c', check, 'install', ...entries], way?.env ?? {}, (line) => {
    lines.push(line);
    if (lines.length > KEPT_LINES) lines.shift();
    onProgress?.(line);
  });
  if (code === 0) return;
  if (code === 127 && lines.length === 0)
    throw unavailable(`The image ${image} has no ${program}, so nothing can be installed with ${manager}`);
  const last = lines.slice(-SHOWN_LINES).join('\n');
  throw unavailable(
    `${manager} could not install ${entries.join(', ')} (it ended with code ${code ?? 'unknown'})`,
    undefined,
    `${last ? `\n${last}` : ''}`,
    manager,
  );
}

/** Runs a program to its end, or kills the container it runs in. Resolves to its exit code. */
async function runIn(
  { signal }: PackagesRequest,
  container: Docker.Container,
  argv: string[],
  env: Readonly<Record<string, string>>,
  onLine: (line: string) => void,
): Promise<number | null> {
  const exec = await container.exec({
    Cmd: argv,
    User: '0',
    AttachStdout: true,
    AttachStderr: true,
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
  });
  const stream = await exec.start({ hijack: true, stdin: false });
  const give = () => void container.remove({ force: true }).catch(() => undefined);
  const limit = AbortSignal.any([signal, AbortSignal.timeout(INSTALL_MS)]);
  limit.addEventListener('abort', give, { once: true });
  let rest = '';
  await new Promise<void>((resolve) => {
    stream.on(
      'data',
      demultiplexer((_kind, chunk) => {
        const parts = (rest + chunk.toString('utf8')).split(/\r?\n|\r/);
        rest = parts.pop() ?? '';
        for (const part of parts) if (part.trim()) onLine(part.trimEnd());
      }),
    );
    for (const event of ['end', 'close', 'error']) stream.once(event, () => resolve());
  });
  if (rest.trim()) onLine(rest.trimEnd());
  limit.removeEventListener('abort', give);
  stream.on('error', () => undefined).destroy();
  return (await exec.inspect()).ExitCode;
}

function unavailable(what: string, cause?: unknown, more = '', manager?: Manager): SandboxUnavailable {
  const where = manager ? `"packages.${manager}"` : 'the packages';
  return new SandboxUnavailable(
    'container',
    `${what}, so no sandbox was made; correct ${where} or the network of the environment, or use an image that has them.${more}`,
    { cause },
  );
}
