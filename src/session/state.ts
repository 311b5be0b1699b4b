import type { ContentBlock } from '../protocol/content.ts';
import type { AgentSnapshot } from '../protocol/drover-event.ts';
import type { Environment } from '../protocol/environment.ts';
import type { Evaluation, EventOf, Permission, SessionError, StopReason } from '../protocol/event.ts';
import type { CredentialId, EventId, ExecutionId, SandboxId, SessionId, ThreadId, VaultId } from '../protocol/ids.ts';
import type { McpTool } from '../protocol/mcp.ts';
import type { Actor, BlobRef, ErrorCause, Masked, OutcomeKind, Scope, Seq, StandingRule } from '../protocol/record.ts';
import type { ModelUsage, Usd } from '../protocol/usage.ts';

export type Status = 'idle' | 'running' | 'rescheduling' | 'terminated';

/** Something said to a thread: by a person, or by another thread. */
export interface ThreadInput {
  type: 'input';
  id: EventId;
  seq: Seq;
  at: string;
  from: 'person' | 'thread';
  fromThread: ThreadId | null;
  content: ContentBlock[];
  /** null while it waits in the queue. */
  processedAt: string | null;
}

export type ReplyBlock =
  | { type: 'message'; id: EventId; content: ContentBlock[]; raw: unknown }
  | { type: 'thinking'; id: EventId; raw: unknown }
  | { type: 'tool_use'; id: EventId };

/** One request to the model and, once its end is in the log, the reply it brought. */
export interface ModelRequest {
  type: 'request';
  /** Id of the `span.model_request_start`. */
  id: EventId;
  seq: Seq;
  at: string;
  model: string | null;
  /** open: no end in the log. done: the reply counts. failed: closed with an error, its blocks do not count. */
  state: 'open' | 'done' | 'failed';
  endedAt: string | null;
  /** In the order of the reply, complete only when `done`. */
  blocks: ReplyBlock[];
  usage: ModelUsage | null;
  costUsd: Usd;
  stopReason: string | null;
  /** ms from the request to the first streamed content. */
  ttftMs: number | null;
  cause: ErrorCause | null;
}

/** Something a person should know that is no part of the model's conversation. */
export interface Notice {
  type: 'notice';
  id: EventId;
  seq: Seq;
  at: string;
  notice:
    | { kind: 'error'; error: SessionError; cause: ErrorCause | null; retryInMs: number | null }
    | { kind: 'damaged'; bytes: number; reason: string }
    | { kind: 'interrupted'; actor: Actor | null }
    /** Something is asked that is no call; `questions` has it. */
    | { kind: 'question'; question: EventId }
    /** A secret was taken out of what was about to be stored or sent. */
    | { kind: 'secret'; name: string; where: 'record' | 'blob' | 'model_request'; event: EventId | null }
    | { kind: 'sandbox'; state: 'provisioning' | 'ready' | 'failed' | 'lost' | 'removed'; text: string }
    /** What an MCP server offers from now on; of `leftOut` the model is shown nothing, each says why. */
    | { kind: 'mcp'; server: string; tools: number; leftOut: string[] }
    | { kind: 'restored'; files: number; names: string[]; actor: Actor | null }
    | { kind: 'no_checkpoint'; text: string }
    | { kind: 'forked'; from: SessionId; fromSeq: Seq };
}

export type Entry = ThreadInput | ModelRequest | Notice;

export interface Confirmation {
  id: EventId;
  result: 'allow' | 'deny';
  denyMessage: string | null;
  at: string;
  actor: Actor | null;
  standing: StandingRule | null;
}

export interface CallResult {
  id: EventId;
  seq: Seq;
  at: string;
  content: ContentBlock[];
  isError: boolean;
  outcome: OutcomeKind;
  exitCode: number | null;
  durationMs: number | null;
  realPath: string | null;
  /** SHA-256, hex, of that file as the call saw or left it. */
  fileSha256: string | null;
  blobs: BlobRef[];
  /** What looks like a secret in it and was masked. */
  masked: Masked[];
}

export interface ToolCall {
  /** Id of the tool-use event. */
  id: EventId;
  seq: Seq;
  at: string;
  thread: ThreadId;
  /** Span of the reply it came in. It counts only if that request is `done`. */
  request: EventId;
  /** What the model called. */
  name: string;
  /** Of a tool of an MCP server: whose, its own name, and what a standing rule calls it. */
  mcp: { server: string; tool: string; rule: string } | null;
  input: Record<string, unknown>;
  modelToolUseId: string | null;
  permission: Permission;
  evaluation: Evaluation | null;
  why: string | null;
  /** Set where the harness refused the call before any policy ran: the text the model gets. */
  refused: string | null;
  confirmation: Confirmation | null;
  /** `owner`: the thread whose sandbox it runs in; null where the log does not say. */
  execution: { id: ExecutionId; sandbox: SandboxId | null; owner: ThreadId | null; at: string; seq: Seq } | null;
  recovered: EventOf<'drover.tool_recovered'>['found'] | null;
  /** The thread a `create_agent` call made. */
  child: ThreadId | null;
  result: CallResult | null;
  /** Those that name it, oldest first: more than one where it ran beside others. */
  checkpoints: CallCheckpoint[];
}

/** A checkpoint that holds what a call changed, perhaps together with others. */
export interface CallCheckpoint {
  /** Id of the event. */
  id: EventId;
  commit: string;
  /** Files that changed since the one before it. */
  files: number;
}

/** What an MCP server offered a thread last. */
export interface McpListing {
  server: string;
  /** Empty if it could not be reached last. */
  tools: McpTool[];
  /** It could not be reached in this turn: it is tried again in the next. */
  failed: boolean;
  seq: Seq;
}

export interface ThreadState {
  id: ThreadId;
  parent: ThreadId | null;
  createdBy: EventId | null;
  createdAt: string;
  agentName: string;
  agent: AgentSnapshot;
  status: Status;
  stopReason: StopReason | null;
  /** What happened in this thread, in log order. */
  entries: Entry[];
  /** Inputs not yet processed, oldest first. */
  queue: EventId[];
  /** Interrupts not yet applied, oldest first. */
  interrupts: EventId[];
  /** The request without an end, if any. A thread has at most one. */
  open: ModelRequest | null;
  /** The last request whose reply counts. */
  last: ModelRequest | null;
  /** Calls of `last`, in the order of the reply. */
  calls: EventId[];
  /** Seq of the newest thing in this turn that the model has not seen yet, or -1: see `unseen()` in decide.ts. */
  unseenAt: Seq;
  /** Requests that the model's side failed in a row since the last reply or input. */
  failures: number;
  /** Of each server that was asked, in the order in which they first were: so the model is shown their tools. */
  mcp: McpListing[];
  /** Replies in a row whose tool call was cut off by the output limit. */
  cuts: number;
  /** The turn ended because a person interrupted it. */
  interrupted: boolean;
  /** Where the last failure left the turn. */
  failure: { error: SessionError; cause: ErrorCause | null } | null;
  usage: ModelUsage;
  costUsd: Usd;
  /** ms the thread was running, closed stretches only; `runningSince` is the open one. */
  activeMs: number;
  runningSince: string | null;
  updatedAt: string;
}

export interface SandboxState {
  id: SandboxId;
  state: 'provisioning' | 'ready' | 'failed' | 'lost' | 'removed';
  kind: 'container' | 'os' | 'host' | null;
  detail: string;
  at: string;
  /** ms it took to provision. */
  durationMs: number | null;
  /** The thread whose call it was made for; null where the log does not say. */
  owner: ThreadId | null;
}

/** Something a person is asked: to let a call run, or a question that is no call. */
export type Asking = Pick<ToolCall, 'id' | 'seq' | 'at' | 'thread' | 'name' | 'input' | 'why'>;

/** A question that is no call; see `drover.question`. `name` and `input` are for those who show it in a list. */
export interface Question extends Asking {
  kind: 'canary' | 'host';
  /** The sentence to show. */
  why: string;
  call: EventId | null;
  credential: CredentialId | null;
  host: { name: string; port: number } | null;
  answer: { result: 'allow' | 'deny'; scope: Scope; at: string; actor: Actor | null } | null;
}

/** What a session is: the fold of its log. Rebuilt from the log at any time, so nothing else is kept in step with it. */
export interface SessionState {
  id: SessionId;
  title: string;
  createdAt: string;
  updatedAt: string;
  agent: AgentSnapshot;
  roster: AgentSnapshot[];
  environment: Environment;
  /** What the sandbox may use placeholders of; the first that has a thing counts. */
  vaultIds: VaultId[];
  strategy: string;
  budgetUsd: Usd | null;
  archived: boolean;
  status: Status;
  stopReason: StopReason | null;
  primary: ThreadId;
  /** In order of creation; the primary is the first. */
  threads: Map<ThreadId, ThreadState>;
  calls: Map<EventId, ToolCall>;
  /** Where each event stands, for the inspector and for recall. */
  seqOf: Map<EventId, Seq>;
  standing: StandingRule[];
  /** In log order, answered ones too. */
  questions: Question[];
  /** Findings of masked values that the model may see. */
  revealed: string[];
  sandboxes: Map<SandboxId, SandboxState>;
  /** The sandbox in use, or null if none was needed yet or the last one is gone. */
  sandbox: SandboxId | null;
  /** The last checkpoint of its files, or null. */
  checkpoint: { commit: string; seq: Seq } | null;
  /** Why no checkpoint could be taken last, or null. */
  checkpointProblem: string | null;
  /** Where its log was copied from, up to which record; null for a session of its own. */
  forkedFrom: { session: SessionId; seq: Seq } | null;
  /** Reservations without a settlement. */
  reserved: Map<EventId, { amountUsd: Usd; thread: ThreadId }>;
  usage: ModelUsage;
  costUsd: Usd;
  activeMs: number;
  runningSince: string | null;
  /** The last live record. */
  head: { seq: Seq; hash: string };
  fence: number;
  /** Records of a stale writer, passed over. */
  stale: number;
}
