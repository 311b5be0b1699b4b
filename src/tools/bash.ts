import { text } from '../protocol/content.ts';
import { mint } from '../protocol/ids.ts';
import type { RunRequest, RunResult, Sandbox } from '../sandbox/sandbox.ts';
import { bashOutcome } from './bash-output.ts';
import { IN_BASH, IN_SH, RESET, START } from './bash-shell.ts';
import { BashInput, DEFAULT_TIMEOUT_MS, inputSchema } from './schemas.ts';
import { oneLine, type Tool } from './tool.ts';
import type { Outcome, Recovery, ToolContext } from './tools.ts';

/** Bytes per stream fetched from the sandbox: what `Outcome.whole` can hold. */
const FETCHED = 32 * 1024 * 1024;
const RESET_MS = 15_000;

/** Bytes of a command that are handed over as a variable; the system takes 128 KiB of one. */
const AS_VARIABLE = 64 * 1024;

const stateName = (context: ToolContext): string => context.thread.replaceAll(/[^A-Za-z0-9_]/g, '_');

export const bash: Tool<typeof BashInput> = {
  spec: {
    name: 'bash',
    description:
      'Runs a shell command in the sandbox, with bash where it is installed. What it leaves in its shell stays for the next call: the working directory, variables, and in bash functions, aliases and options; it starts in the workspace. There is no terminal and no standard input. Output and exit code come back when the command has ended; start servers in the background with their output sent to a file.',
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
      argv: ['sh', '-c', START, 'drover', stateName(context), IN_BASH, IN_SH],
      inShell: true,
      ...handedOver(input.command ?? ''),
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
    const found = await sandbox.lookup(context.executionId, FETCHED);
    const finish = (result: RunResult): Outcome => ({ ...bashOutcome(result, timeoutMs), sandbox: sandbox.id });
    if (found.found === 'absent') return { found: 'absent' };
    if (found.found === 'finished') return { found: 'finished', outcome: Promise.resolve(finish(found.result)) };
    const decoder = new TextDecoder();
    const waiting = found.wait(context.signal, (chunk) => context.onOutput(decoder.decode(chunk, { stream: true })));
    return { found: 'running', outcome: waiting.then(finish) };
  },
};

function handedOver(command: string): Pick<RunRequest, 'env' | 'stdin'> {
  const bytes = new TextEncoder().encode(command);
  const fits = bytes.byteLength <= AS_VARIABLE && !command.includes('\0');
  return fits ? { env: { DROVER_COMMAND: command } } : { stdin: bytes };
}

async function reset(sandbox: Sandbox, context: ToolContext): Promise<void> {
  await sandbox.run({
    executionId: mint.execution(),
    argv: ['sh', '-c', RESET, 'drover', stateName(context)],
    inShell: true,
    timeoutMs: RESET_MS,
    signal: context.signal,
  });
}
