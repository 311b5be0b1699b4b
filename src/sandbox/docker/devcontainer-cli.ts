import { spawn } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';
import { z } from 'zod';
import { SandboxUnavailable } from '../sandbox.ts';

/** ms. A build may take long; one that takes longer has hung. */
const UP_MS = 30 * 60_000;
const KEPT_LINES = 200;
const SHOWN_LINES = 6;

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

export interface CliTools {
  /** The Node program that runs the CLI. */
  nodePath: string;
  /** Ends it, as when the provider is disposed: a half-made container is reaped by its labels. */
  signal: AbortSignal;
}

/** One run of the tool. */
export interface CliRun {
  outcome: z.infer<typeof UpOutcome> | undefined;
  lines: string[];
  exit: string;
  /** What it was doing when it was last heard, in words. */
  phase: string;
}

/** Runs the CLI with the host's Node and reads its log lines (JSON, on stderr) and its verdict (JSON, on stdout). */
export function runCli(
  tools: CliTools,
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
  const feature = /^Resolving Feature dependencies for '(.*)'\.\.\.$/.exec(entry?.text ?? '')?.[1];
  const phase = entry?.type === 'start' ? phaseOf(entry.text ?? '') : feature && `fetching the feature ${feature}`;
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

/** What the tool says of what it has no words for; its message then has the error itself. */
const NO_DESCRIPTION = 'An error occurred setting up the container.';

/** One sentence on what went wrong and when, then the last lines of output. */
export function failure(run: CliRun): string {
  const outcome = run.outcome?.outcome === 'error' ? run.outcome : undefined;
  const described = outcome?.description === NO_DESCRIPTION ? undefined : outcome?.description;
  const what = described ?? outcome?.message ?? `the devcontainer tool ${run.exit}`;
  const last = run.lines.slice(-SHOWN_LINES).join('\n');
  return `The devcontainer could not be started: it failed while ${run.phase} (${what.trim().replace(/\.$/, '')}). Correct devcontainer.json (or what it names) and try again.${last ? `\n${last}` : ''}`;
}
