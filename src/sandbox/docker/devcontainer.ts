import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { SandboxId } from '../../protocol/ids.ts';
import type { GuardedPath } from '../guard-rails.ts';
import { type SandboxOwner, SandboxUnavailable } from '../sandbox.ts';
import { BuildSteps } from './build-steps.ts';
import { type Engine, userName } from './client.ts';
import { type ComposeWhere, hardenCompose } from './compose.ts';
import { type CliRun, type CliTools, failure, runCli } from './devcontainer-cli.ts';
import { type DevcontainerConfig, findConfig, readConfig } from './devcontainer-config.ts';
import { type Hardened, harden } from './devcontainer-harden.ts';
import { LABEL } from './labels.ts';
import type { CreationPlan } from './plan.ts';

export interface DevcontainerTools extends CliTools {
  /** The entry file of the devcontainer CLI. */
  devcontainerCli: string;
  env: NodeJS.ProcessEnv;
  cacheFolder: string;
}

export interface UpRequest {
  owner: SandboxOwner;
  id: SandboxId;
  /** What is mounted, absolute: the workspace folder, or the session's own copy of it. */
  folder: string;
  guarded: readonly GuardedPath[];
  planAt(target: string): CreationPlan;
  onProgress: ((line: string) => void) | undefined;
}

export interface UpResult {
  containerId: string;
  user?: string;
}

/** Each sandbox has services of its own, whatever the folder is called. */
export const composeProject = (id: SandboxId): string => `drover-${id.toLowerCase().replaceAll(/[^a-z0-9-]/g, '-')}`;

/** Name of the network of a sandbox's services. */
export const composeNetwork = (id: SandboxId): string => `${composeProject(id)}_default`;

/** The devcontainer.json that an environment means. Throws as `findConfig` does. */
export function configFile(owner: Pick<SandboxOwner, 'environment' | 'workspaceFolder'>): string {
  const { config } = owner.environment;
  return findConfig(owner.workspaceFolder, config.type === 'devcontainer' ? config.path : undefined);
}

/**
 * Brings up the folder's own devcontainer, closed off as `harden` says, through the reference implementation; one that
 * was stopped is started again, with its postStartCommand.
 * Throws `SandboxUnavailable`: with file and line for a broken devcontainer.json, else with the phase that failed
 * and its last lines. A container left behind by a failure carries our labels.
 */
export async function upDevcontainer(tools: DevcontainerTools, engine: Engine, request: UpRequest): Promise<UpResult> {
  const { owner, id, folder, onProgress } = request;
  const file = configFile(owner);
  const shown = relative(owner.workspaceFolder, file);
  const config = readConfig(file, shown);
  await mkdir(tools.cacheFolder, { recursive: true });
  const temporary = await mkdtemp(join(tools.cacheFolder, 'devcontainer-'));
  try {
    const env = { ...cliEnv(tools.env, engine, temporary), COMPOSE_PROJECT_NAME: composeProject(id) };
    const hardened = await closedOff(config, file, { ...request, elsewhere: engine.elsewhere }, { env, temporary });
    if (hardened.leftOut.length > 0) onProgress?.(`Left out of ${shown}: ${hardened.leftOut.join('; ')}`);
    // There only the user 0 inside is the person outside; all others may not write to the person's files.
    if (engine.kind === 'docker' && engine.rootless && !engine.elsewhere) {
      hardened.config.remoteUser = 'root';
      onProgress?.('Working as root inside, who is you outside: this engine runs without root');
    }
    const override = join(temporary, 'devcontainer.json');
    await writeFile(override, JSON.stringify(hardened.config));
    if (!('features' in hardened.config)) await seedManifest(temporary);
    // The last one tells it from what only holds its volume, on an engine elsewhere.
    const own = { [LABEL.session]: owner.session, [LABEL.sandbox]: id, [LABEL.inside]: hardened.target };
    const labels = Object.entries(own).flatMap(([name, value]) => ['--id-label', `${name}=${value}`]);
    const argv = [
      ...[tools.devcontainerCli, 'up', '--workspace-folder', folder],
      ...['--config', file, '--override-config', override, ...labels],
      ...['--mount-workspace-git-root', 'false', '--no-lockfile', '--log-format', 'json'],
      ...['--user-data-folder', join(tools.cacheFolder, 'devcontainer-data')],
      ...(engine.kind === 'podman' ? ['--docker-path', 'podman'] : []),
    ];
    const steps = new BuildSteps();
    const telling = (line: string) => {
      steps.read(line);
      onProgress?.(line);
    };
    const attempt = () =>
      runCli(tools, env, argv, telling).catch(async (error: unknown) => {
        await steps.clear(engine.docker);
        throw error;
      });
    let ran = await attempt();
    if (hasNoInit(ran)) {
      await writeFile(override, JSON.stringify({ ...hardened.config, init: false }));
      ran = await attempt();
    }
    if (ran.outcome?.outcome === 'success') {
      const { containerId, remoteUser } = ran.outcome;
      return { containerId, ...(remoteUser ? { user: remoteUser } : {}) };
    }
    await steps.clear(engine.docker);
    throw new SandboxUnavailable('container', failure(ran));
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** Podman may come without the small program that is to be process 1. */
const hasNoInit = (ran: CliRun): boolean =>
  ran.outcome?.outcome !== 'success' && ran.lines.some((line) => /container-init binary not found/.test(line));

async function closedOff(
  config: DevcontainerConfig,
  file: string,
  { folder, guarded, elsewhere, planAt }: UpRequest & { elsewhere: boolean },
  where: ComposeWhere,
): Promise<Hardened> {
  const input = { config, file, folder, guarded, elsewhere, planAt };
  return config.dockerComposeFile ? await hardenCompose(input, where) : harden(input);
}

/**
 * The tool asks a web site for a list of withdrawn features whenever its copy is older than five minutes. Where no
 * feature is used the list is not needed: an empty fresh copy spares the question, and the wait when offline.
 */
async function seedManifest(temporary: string): Promise<void> {
  const name = process.platform === 'linux' ? `devcontainercli-${userName()}` : 'devcontainercli';
  const folder = join(temporary, name);
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, 'control-manifest.json'),
    JSON.stringify({ disallowedFeatures: [], featureAdvisories: [] }),
  );
}

/** Of the host's environment only what the CLI needs: `${localEnv:…}` must not carry a secret into the sandbox. */
const PASSED =
  /^(PATH|HOME|USER|LOGNAME|LANG|LC_.*|TEMP|TMP|SystemRoot|USERPROFILE|APPDATA|LOCALAPPDATA|ProgramData|ComSpec|PATHEXT|XDG_.*|DOCKER_.*|HTTPS?_PROXY|NO_PROXY|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS)$/i;

function cliEnv(env: NodeJS.ProcessEnv, engine: Engine, temporary: string): NodeJS.ProcessEnv {
  const passed = Object.fromEntries(Object.entries(env).filter(([name]) => PASSED.test(name)));
  const { host, certificates, unverified } = engine.endpoint;
  return {
    ...passed,
    TMPDIR: temporary,
    DOCKER_HOST: host,
    ...(certificates ? { DOCKER_CERT_PATH: certificates, [unverified ? 'DOCKER_TLS' : 'DOCKER_TLS_VERIFY']: '1' } : {}),
    // An Electron host runs as Node only if told to.
    ELECTRON_RUN_AS_NODE: '1',
  };
}
