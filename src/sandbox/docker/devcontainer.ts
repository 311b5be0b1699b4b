import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { z } from 'zod';
import type { SandboxId } from '../../protocol/ids.ts';
import { type SandboxOwner, SandboxUnavailable } from '../sandbox.ts';
import type { Engine } from './client.ts';
import { findConfig, readConfig } from './devcontainer-config.ts';
import { harden } from './devcontainer-harden.ts';
import { protectedPaths } from './hardening.ts';
import { labelsFor } from './labels.ts';

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

export interface UpResult {
  containerId: string;
  user?: string;
  /** Where the workspace is inside. */
  inside: string;
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

/**
 * Brings up the folder's own devcontainer, closed off as `harden` says, through the reference implementation.
 * Throws `SandboxUnavailable`: with file and line for a broken devcontainer.json, else with the phase that failed
 * and its last lines. A container left behind by a failure carries our labels.
 */
export async function upDevcontainer(
  tools: DevcontainerTools,
  engine: Engine,
  owner: SandboxOwner,
  id: SandboxId,
): Promise<UpResult> {
  const { config: environment, limits } = owner.environment;
  const file = findConfig(owner.workspaceFolder, environment.type === 'devcontainer' ? environment.path : undefined);
  const config = readConfig(file, relative(owner.workspaceFolder, file));
  const protect = protectedPaths(owner.workspaceFolder);
  const hardened = harden({ config, file, workspaceFolder: owner.workspaceFolder, protect, limits: limits ?? {} });
  if (hardened.leftOut.length > 0)
    owner.onProgress?.(`Left out of ${relative(owner.workspaceFolder, file)}: ${hardened.leftOut.join('; ')}`);

  await mkdir(tools.cacheFolder, { recursive: true });
  const folder = await mkdtemp(join(tools.cacheFolder, 'devcontainer-'));
  try {
    const override = join(folder, 'devcontainer.json');
    await writeFile(override, JSON.stringify(hardened.config));
    const labels = Object.entries(labelsFor(owner, id)).flatMap(([name, value]) => ['--id-label', `${name}=${value}`]);
    const argv = [
      ...[tools.devcontainerCli, 'up', '--workspace-folder', owner.workspaceFolder],
      ...['--config', file, '--override-config', override, ...labels],
      ...['--mount-workspace-git-root', 'false', '--no-lockfile', '--log-format', 'json'],
      ...['--user-data-folder', join(tools.cacheFolder, 'devcontainer-data')],
    ];
    const ran = await runCli(tools, engine, argv, owner.onProgress);
    if (ran.outcome?.outcome === 'success') {
      const { containerId, remoteUser, remoteWorkspaceFolder } = ran.outcome;
      return { containerId, inside: remoteWorkspaceFolder, ...(remoteUser ? { user: remoteUser } : {}) };
    }
    throw new SandboxUnavailable('container', failure(ran));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface CliRun {
  outcome: z.infer<typeof UpOutcome> | undefined;
  lines: string[];
  /** What the CLI was doing last, such as "Run in container: …". */
  doing: string;
  exit: string;
}

/** Runs the CLI with the host's Node and reads its log lines (JSON, on stderr) and its verdict (JSON, on stdout). */
function runCli(
  tools: DevcontainerTools,
  engine: Engine,
  argv: string[],
  onProgress?: (line: string) => void,
): Promise<CliRun> {
  return new Promise((resolve, reject) => {
    const run: CliRun = { outcome: undefined, lines: [], doing: '', exit: '' };
    const child = spawn(tools.nodePath, argv, {
      env: cliEnv(tools.env, engine),
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

const LogLine = z.object({ type: z.string(), text: z.string().optional(), name: z.string().optional() });

function readLogLine(line: string, run: CliRun, onProgress?: (line: string) => void): void {
  let text = line;
  try {
    const entry = LogLine.parse(JSON.parse(line));
    text = entry.text ?? entry.name ?? '';
    if (entry.type === 'start') run.doing = text;
    // The tool's own docker and shell commands are noise; a container's build and lifecycle output is not.
    if (entry.type === 'start' || entry.type === 'stop') return;
  } catch {
    // Some engines write plain text in between: shown as it is.
  }
  for (const part of text.split(/\r?\n|\r/)) {
    const shown = stripVTControlCharacters(part).trimEnd();
    if (!shown) continue;
    run.lines.push(shown);
    if (run.lines.length > KEPT_LINES) run.lines.shift();
    onProgress?.(shown);
  }
}

function lineSplitter(on: (line: string) => void): (chunk: string) => void {
  let rest = '';
  return (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) on(line);
  };
}

/** One sentence on what went wrong, then the last lines of output. */
function failure(run: CliRun): string {
  const outcome = run.outcome?.outcome === 'error' ? run.outcome : undefined;
  const what = outcome?.description ?? outcome?.message ?? `the devcontainer tool ${run.exit}`;
  const last = run.lines.slice(-SHOWN_LINES).join('\n');
  return `The devcontainer could not be started: ${what.trim().replace(/\.$/, '')}. Correct devcontainer.json (or what it names) and try again.${last ? `\n${last}` : ''}`;
}

/** Of the host's environment only what the CLI needs: `${localEnv:…}` must not carry a secret into the sandbox. */
const PASSED =
  /^(PATH|HOME|USER|LOGNAME|LANG|LC_.*|TMPDIR|TEMP|TMP|SystemRoot|USERPROFILE|APPDATA|LOCALAPPDATA|ProgramData|ComSpec|PATHEXT|XDG_.*|DOCKER_.*|HTTPS?_PROXY|NO_PROXY|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS)$/i;

function cliEnv(env: NodeJS.ProcessEnv, engine: Engine): NodeJS.ProcessEnv {
  const passed = Object.fromEntries(Object.entries(env).filter(([name]) => PASSED.test(name)));
  const { host, certificates } = engine.endpoint;
  return {
    ...passed,
    DOCKER_HOST: host,
    ...(certificates ? { DOCKER_CERT_PATH: certificates, DOCKER_TLS_VERIFY: '1' } : {}),
    // An Electron host runs as Node only if told to.
    ELECTRON_RUN_AS_NODE: '1',
  };
}
