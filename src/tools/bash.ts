import { text } from '../protocol/content.ts';
import { mint } from '../protocol/ids.ts';
import type { RunResult, Sandbox } from '../sandbox/sandbox.ts';
import { bashOutcome } from './bash-output.ts';
import { BashInput, DEFAULT_TIMEOUT_MS, inputSchema } from './schemas.ts';
import { oneLine, type Tool } from './tool.ts';
import type { Outcome, Recovery, ToolContext } from './tools.ts';

/** Bytes per stream fetched from the sandbox: what `Outcome.whole` can hold. */
const FETCHED = 32 * 1024 * 1024;
const RESET_MS = 15_000;

/*
 * $1 names the thread's state. The command itself comes on standard input, so its length and quoting don't matter, and
 * then has none. Working directory and exported variables are saved when the shell ends, however it ends.
 */
const SHELL = `
__drover=\${TMPDIR:-/tmp}/.drover-shell/$1
shift
__command=$(cat; echo .)
__command=\${__command%.}
exec </dev/null
mkdir -p "\${__drover%/*}"
if [ -f "$__drover.env" ]; then . "$__drover.env"; fi 2>/dev/null
if [ -f "$__drover.cwd" ]; then cd "$(cat "$__drover.cwd")"; fi 2>/dev/null
trap 'export -p >"$__drover.new" && mv "$__drover.new" "$__drover.env"; pwd >"$__drover.cwd"' EXIT
eval "$__command"
`;
const START = `
if command -v bash >/dev/null; then exec bash --noprofile --norc -c "$0" bash "$1"; fi
exec sh -c "$0" sh "$1"
`;
const RESET = `rm -f "\${TMPDIR:-/tmp}/.drover-shell/$0".*`;

const stateName = (context: ToolContext): string => context.thread.replaceAll(/[^A-Za-z0-9_]/g, '_');

export const bash: Tool<typeof BashInput> = {
  spec: {
    name: 'bash',
    description:
      'Runs a shell command in the sandbox, with bash where it is installed. The working directory and exported variables stay for the next call; it starts in the workspace. There is no terminal and no standard input. Output and exit code come back when the command has ended; start servers in the background with their output sent to a file.',
    input_schema: inputSchema(BashInput),
    idempotent: false,
    sandboxed: true,
    summary: (input) => (input.restart === true ? 'Restart the shell' : oneLine(input.command)),
  },
  schema: BashInput,
  changes: true,

  async execute(input, context) {
    const sandbox = await context.sandbox();
    if (input.restart) {
      await reset(sandbox, context);
      if (input.command === undefined)
        return { kind: 'ok', content: [text('The shell was restarted.')], sandbox: sandbox.id };
    }
    const timeoutMs = input.timeout_ms || DEFAULT_TIMEOUT_MS;
    const decoder = new TextDecoder();
    const result = await sandbox.run({
      executionId: context.executionId,
      argv: ['sh', '-c', START, SHELL, stateName(context)],
      stdin: new TextEncoder().encode(input.command),
      timeoutMs,
      signal: context.signal,
      maxBytes: FETCHED,
      onOutput: (chunk) => context.onOutput(decoder.decode(chunk, { stream: true })),
    });
    return { ...bashOutcome(result, timeoutMs), sandbox: sandbox.id };
  },

  async recover(input, context): Promise<Recovery> {
    const sandbox = await context.sandbox();
    const timeoutMs = input.timeout_ms || DEFAULT_TIMEOUT_MS;
    const found = await sandbox.lookup(context.executionId);
    const finish = (result: RunResult): Outcome => ({ ...bashOutcome(result, timeoutMs), sandbox: sandbox.id });
    if (found.found === 'absent') return { found: 'absent' };
    if (found.found === 'finished') return { found: 'finished', outcome: Promise.resolve(finish(found.result)) };
    const decoder = new TextDecoder();
    const waiting = found.wait(context.signal, (chunk) => context.onOutput(decoder.decode(chunk, { stream: true })));
    return { found: 'running', outcome: waiting.then(finish) };
  },
};

async function reset(sandbox: Sandbox, context: ToolContext): Promise<void> {
  await sandbox.run({
    executionId: mint.execution(),
    argv: ['sh', '-c', RESET, stateName(context)],
    timeoutMs: RESET_MS,
    signal: context.signal,
  });
}
