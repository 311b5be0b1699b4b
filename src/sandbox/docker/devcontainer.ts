import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { z } from 'zod';
import type { SandboxId } from '../../protocol/ids.ts';
import type { GuardedPath } from '../guard-rails.ts';
import { type SandboxOwner, SandboxUnavailable } from '../sandbox.ts';
import { BuildSteps } from './build-steps.ts';
import { type Engine, userName } from './client.ts';
import { type ComposeWhere, hardenCompose } from './compose.ts';
import { type DevcontainerConfig, findConfig, readConfig } from './devcontainer-config.ts';
import { type Hardened, harden } from './devcontainer-harden.ts';
import { LABEL } from './labels.ts';
import type { CreationPlan } from './plan.ts';

/** ms. A build may take long; one that takes longer has hung. */
const UP_MS = 30 * 60_000;
const KEPT_LINES = 200;
const SHOWN_LINES = 6;

export interface DevcontainerTools {
  /** The Node program that runs the CLI. */
  nodePath: string;
  /** The entry file of the devcontainer CLI. */
  devcontainerCli: string;
  env: NodeJS.ProcessEnv;
  cacheFolder: string;
  /** Aborted when the provider is disposed: a half-made container is reaped by its labels. */
  signal: AbortSignal;
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

const UpOutcome = z.discriminatedUnion('outcome', [
  z.object({
    outcome: z.literal('success'),
    containerId: z.string(),
    remoteUser: z.string().optional(),
    remoteWorkspaceFolder: z.string(),
  }),
  z.object({
    outcome: z.literal('error'),
    message: z.string(),
    description: z.string().optional(),
    containerId: z.string().optional(),
  }),
]);

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
  if (config.dockerComposeFile && engine.elsewhere)
    throw new SandboxUnavailable(
      'container',
      `${shown} uses Docker Compose, and the engine at ${engine.endpoint.host} is on another machine: that can't be had together yet; use an engine on this machine, or a devcontainer.json with an image or a Dockerfile.`,
    );
  await mkdir(tools.cacheFolder, { recursive: true });
  const temporary = await mkdtemp(join(tools.cacheFolder, 'devcontainer-'));
  try {
    const env = { ...cliEnv(tools.env, engine, temporary), COMPOSE_PROJECT_NAME: composeProject(id) };
    const hardened = await closedOff(config, file, request, { env, temporary });
    if (hardened.leftOut.length > 0) onProgress?.(`Left out of ${shown}: ${hardened.leftOut.join('; ')}`);
    const override = join(temporary, 'devcontainer.json');
    await writeFile(override, JSON.stringify(hardened.config));
    if (!('features' in hardened.config)) await seedManifest(temporary);
    const labels = [`${LABEL.session}=${owner.session}`, `${LABEL.sandbox}=${id}`].flatMap((one) => [
      '--id-label',
      one,
    ]);
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
  { folder, guarded, planAt }: UpRequest,
  where: ComposeWhere,
): Promise<Hardened> {
  const input = { config, file, folder, guarded, planAt };
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

interface CliRun {
  outcome: z.infer<typeof UpOutcome> | undefined;
  lines: string[];
  exit: string;
  /** What it was doing when it was last heard, in words. */
  phase: string;
}

/** Runs the CLI with the host's Node and reads its log lines (JSON, on stderr) and its verdict (JSON, on stdout). */
function runCli(
  tools: DevcontainerTools,
  env: NodeJS.ProcessEnv,
  argv: string[],
  onProgress?: (line: string) => void,
): Promise<CliRun> {
  return new Promise((resolve, reject) => {
    const run: CliRun = { outcome: undefined, lines: [], exit: '', phase: 'reading devcontainer.json' };
    const child = spawn(tools.nodePath, argv, {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      signal: AbortSignal.any([tools.signal, AbortSignal.timeout(UP_MS)]),
    });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk;
    });
    const take = lineSplitter((line) => readLogLine(line, run, onProgress));
    child.stderr.setEncoding('utf8').on('data', take);
    child.on('error', (error) =>
      reject(
        new SandboxUnavailable(
          'container',
          `The devcontainer tool could not run to its end (${error.message}); try again.`,
          { cause: error },
        ),
      ),
    );
    child.on('close', (code, signal) => {
      run.exit = signal ? `was ended by ${signal}` : `ended with code ${code}`;
      run.outcome = readOutcome(stdout);
      resolve(run);
    });
  });
}

function readOutcome(stdout: string): z.infer<typeof UpOutcome> | undefined {
  for (const line of stdout.trim().split('\n').reverse()) {
    try {
      return UpOutcome.parse(JSON.parse(line));
    } catch {
      // Not the verdict: the tool may print other lines before it.
    }
  }
  return undefined;
}

const LogLine = z.object({
  type: z.string(),
  level: z.number().optional(),
  text: z.string().optional(),
  name: z.string().optional(),
  status: z.string().optional(),
});
/** The tool's level of what is meant for people: a build's and a lifecycle command's output; below are its own probes. */
const INFO = 3;

function readLogLine(line: string, run: CliRun, onProgress?: (line: string) => void): void {
  const { text, phase } = readEntry(line);
  if (phase && phase !== run.phase) {
    run.phase = phase;
    // What a failure shows are the last lines of what failed.
    run.lines.length = 0;
  }
  for (const part of text.split(/\r?\n|\r/)) {
    const shown = stripVTControlCharacters(part).trimEnd();
    if (!shown) continue;
    run.lines.push(shown);
    if (run.lines.length > KEPT_LINES) run.lines.shift();
    onProgress?.(shown);
  }
}

function readEntry(line: string): { text: string; phase?: string } {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    // The tool's own stack trace follows its last message, and says nothing more.
    return { text: /^\s+at |^Error: /.test(line) ? '' : line };
  }
  const entry = LogLine.safeParse(value).data;
  if (entry?.type === 'progress') {
    if (entry.status !== 'running') return { text: '' };
    const command = /\b(\w+Command)\b/.exec(entry.name ?? '')?.[1];
    return { text: entry.name ?? '', ...(command ? { phase: `running ${command}` } : {}) };
  }
  const phase = entry?.type === 'start' ? phaseOf(entry.text ?? '') : undefined;
  const shown = (entry?.type === 'raw' || entry?.type === 'text') && (entry.level ?? 0) >= INFO;
  return { text: shown ? (entry.text ?? '') : '', ...(phase ? { phase } : {}) };
}

/** The tool says which programs it starts. */
function phaseOf(started: string): string | undefined {
  if (!started.startsWith('Run: ')) return undefined;
  if (/\b(docker|podman)\S* (buildx )?build\b|compose\S* .*\bbuild\b/.test(started)) return 'building the image';
  if (/\b(docker|podman)\S* pull\b/.test(started)) return 'pulling the image';
  if (/\b(docker|podman)\S* (run|start)\b|compose\S* .*\bup\b/.test(started)) return 'creating the container';
  return undefined;
}

function lineSplitter(on: (line: string) => void): (chunk: string) => void {
  let rest = '';
  return (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) on(line);
  };
}

/** One sentence on what went wrong and when, then the last lines of output. */
function failure(run: CliRun): string {
  const outcome = run.outcome?.outcome === 'error' ? run.outcome : undefined;
  const what = outcome?.description ?? outcome?.message ?? `the devcontainer tool ${run.exit}`;
  const last = run.lines.slice(-SHOWN_LINES).join('\n');
  return `The devcontainer could not be started: it failed while ${run.phase} (${what.trim().replace(/\.$/, '')}). Correct devcontainer.json (or what it names) and try again.${last ? `\n${last}` : ''}`;
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
