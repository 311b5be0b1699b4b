import { plainText } from '../../src/protocol/content.ts';
import { type ExecutionId, mint, type ThreadId } from '../../src/protocol/ids.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import type { Desk } from '../../src/tools/desk.ts';
import { createToolbox } from '../../src/tools/toolbox.ts';
import type { Outcome, ToolContext } from '../../src/tools/tools.ts';

const AGENT = { agent: { name: 'tester', model: 'none' }, roster: [], depth: 0 };
export const toolbox = createToolbox(AGENT);

export interface CallOptions {
  thread?: ThreadId;
  executionId?: ExecutionId;
  signal?: AbortSignal;
  onOutput?: (text: string) => void;
  /** What the log says the thread last saw of a file. */
  seen?: (path: string) => string | undefined;
  desk?: Desk;
}

const THREAD = mint.thread();

export const contextFor = (sandbox: () => Promise<Sandbox>, options: CallOptions = {}): ToolContext => ({
  executionId: options.executionId ?? mint.execution(),
  thread: options.thread ?? THREAD,
  signal: options.signal ?? new AbortController().signal,
  sandbox,
  onOutput: options.onOutput ?? (() => {}),
  seen: options.seen ?? (() => undefined),
  readLog: async () => [],
});

/** Calls one tool in a sandbox, as the harness does. */
export const call = (
  sandbox: Sandbox,
  name: string,
  input: Record<string, unknown>,
  options: CallOptions = {},
): Promise<Outcome> =>
  (options.desk ? createToolbox({ ...AGENT, desk: options.desk }) : toolbox).execute(
    name,
    input,
    contextFor(() => Promise.resolve(sandbox), options),
  );

export const said = (outcome: Outcome): string => plainText(outcome.content);
