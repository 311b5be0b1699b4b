import type { ContentBlock } from '../protocol/content.ts';
import type { ExecutionId, SandboxId, ThreadId } from '../protocol/ids.ts';
import type { McpServer } from '../protocol/mcp.ts';
import type { LogRecord, OutcomeKind, Seq } from '../protocol/record.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';

/** The interface of `tools/`: `execute(name, input)` gives one honest outcome, and never throws for what a tool did. */
export interface Toolbox {
  /** The tools an agent has, in a stable order (the model's cache depends on it). */
  specs(): readonly ToolSpec[];
  find(name: string): ToolSpec | undefined;
  /** Why `input` does not fit the tool's schema, in words for the model; undefined if it fits. */
  inputProblem(name: string, input: unknown): string | undefined;
  execute(name: string, input: Readonly<Record<string, unknown>>, context: ToolContext): Promise<Outcome>;
  /** Turns what the sandbox kept of an execution into the call's outcome. */
  recover(name: string, input: Readonly<Record<string, unknown>>, context: ToolContext): Promise<Recovery>;
}

export interface ToolSpec {
  name: string;
  /** For the model. */
  description: string;
  /** JSON Schema of the input, `type: "object"`. */
  input_schema: { type: 'object'; [key: string]: unknown };
  /** Running it twice is as good as once: it may be re-run after a crash. */
  idempotent: boolean;
  /** It needs a sandbox. The harness provisions nothing for the others. */
  sandboxed: boolean;
  /** Of a tool of an MCP server: whose, and its own name. */
  mcp?: { server: McpServer; tool: string };
  /** For people: what this call would do, one line, such as the command or the path. */
  summary(input: Readonly<Record<string, unknown>>): string;
}

export interface ToolContext {
  executionId: ExecutionId;
  thread: ThreadId;
  signal: AbortSignal;
  /** The session's sandbox, provisioned at the first call of this. Throws `SandboxUnavailable`. */
  sandbox(): Promise<Sandbox>;
  /** Live output for the panel. */
  onOutput(text: string): void;
  /**
   * SHA-256, hex, of a file as this thread last read or wrote it, by the log; undefined if it never did.
   * `path` is relative to the workspace, links resolved.
   */
  seen(path: string): string | undefined;
  /** The session's log, for recall. `full` puts whole values back where a record has only a preview and a blob. */
  readLog(range: { from?: Seq; to?: Seq; ids?: readonly string[]; full?: boolean }): Promise<LogRecord[]>;
}

export interface Outcome {
  kind: OutcomeKind;
  content: ContentBlock[];
  exitCode?: number | null;
  durationMs?: number;
  sandbox?: SandboxId;
  /** The file that was touched, after links, relative to the workspace. */
  realPath?: string;
  /** SHA-256, hex, of that file's bytes as they are now for all this call knows. */
  fileSha256?: string;
  /** The whole output where `content` has only head and tail. The log stores it as a blob. */
  whole?: { media_type: string; bytes: Uint8Array };
}

export type Recovery = { found: 'finished' | 'running'; outcome: Promise<Outcome> } | { found: 'absent' };
