import { plainText } from '../../src/protocol/content.ts';
import { type ExecutionId, mint, type ThreadId } from '../../src/protocol/ids.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { createToolbox } from '../../src/tools/toolbox.ts';
import type { Outcome, ToolContext } from '../../src/tools/tools.ts';

export const toolbox = createToolbox({ agent: { name: 'tester', model: 'none' }, roster: [], depth: 0 });

export interface CallOptions {
  thread?: ThreadId;
  executionId?: ExecutionId;
  signal?: AbortSignal;
  onOutput?: (text: string) => void;
}

const THREAD = mint.thread();

export const contextFor = (sandbox: () => Promise<Sandbox>, options: CallOptions = {}): ToolContext => ({
  executionId: options.executionId ?? mint.execution(),
  thread: options.thread ?? THREAD,
  signal: options.signal ?? new AbortController().signal,
  sandbox,
  onOutput: options.onOutput ?? (() => {}),
  seen: () => undefined,
  readLog: async () => [],
});

/** Calls one tool in a sandbox, as the harness does. */
export const call = (
  sandbox: Sandbox,
  name: string,
  input: Record<string, unknown>,
  options: CallOptions = {},
): Promise<Outcome> =>
  toolbox.execute(
    name,
    input,
    contextFor(() => Promise.resolve(sandbox), options),
  );

export const said = (outcome: Outcome): string => plainText(outcome.content);
