import { z } from 'zod';
import { AgentDefinition } from './agent.ts';
import { Environment } from './environment.ts';
import { CredentialId, EventId, ExecutionId, SandboxId, SessionId, ThreadId, VaultId } from './ids.ts';
import { McpTool } from './mcp.ts';
import { Rule } from './rule.ts';

/*
 * Our own events. They record what the public ones have no word for, and never leave through the public shape.
 * Each is described in docs/event-log.md.
 */
const event = <T extends string, S extends z.ZodRawShape>(type: T, shape: S) =>
  z.object({ id: EventId, type: z.literal(type), processed_at: z.string().nullable(), ...shape });

/** An agent as a session keeps it: later changes in the catalog do not reach a running session. */
export const AgentSnapshot = AgentDefinition.extend({
  id: z.string().optional(),
  version: z.number().optional(),
});
export type AgentSnapshot = z.infer<typeof AgentSnapshot>;

/** A commit of the repository that keeps the checkpoints: 40 hexadecimal digits. */
const CommitId = z.string().regex(/^[0-9a-f]{40,64}$/);

/** A path inside the work folder; one that is no UTF-8 is written as git quotes it, in double quotes. */
const ChangedFile = z.object({ path: z.string(), change: z.enum(['added', 'modified', 'deleted']) });
export type ChangedFile = z.infer<typeof ChangedFile>;

export const droverEvents = [
  /** Always record 0. `roster`: the other agents a thread may start by name. */
  event('drover.session_created', {
    session_id: SessionId,
    primary_thread_id: ThreadId,
    title: z.string(),
    agent: AgentSnapshot,
    roster: z.array(AgentSnapshot).optional(),
    environment: Environment,
    vault_ids: z.array(VaultId),
    /** The folder's rules as they were: later changes do not reach a running session. */
    rules: z.array(Rule).optional(),
    /** Name of the context strategy, see harness/strategies. */
    strategy: z.string(),
    /** Ceiling of the list cost of the whole session, US dollars. */
    budget_usd: z.number().positive().nullish(),
  }),
  /** The first record a new lease holder writes. */
  event('drover.woke', {
    why: z.string(),
    holder: z.object({ pid: z.number(), host: z.string() }),
  }),
  /** Fills the null `processed_at` of an earlier event: the log never changes a record. */
  event('drover.event_processed', { event_id: EventId }),
  event('drover.context_assembled', {
    strategy: z.string(),
    messages: z.number(),
    estimated_tokens: z.number(),
    left_out: z.array(z.object({ event_id: EventId, bytes: z.number(), why: z.string() })),
  }),
  event('drover.budget_reserved', {
    amount_usd: z.number(),
    limit_usd: z.number().nullable(),
    /** The thread the money is for, then its parents, up to the primary. */
    thread_ids: z.array(ThreadId),
  }),
  event('drover.budget_settled', {
    reservation_id: EventId,
    amount_usd: z.number(),
    estimated: z.boolean(),
  }),
  event('drover.tool_started', {
    tool_use_id: EventId,
    execution_id: ExecutionId,
    sandbox_id: SandboxId.nullable(),
    /** SHA-256, hex, of the input as canonical JSON. */
    input_sha256: z.string(),
  }),
  /**
   * What an MCP server offers a thread, listed before the model was asked: the model is shown this, and not what the
   * server says by now. A later one of the same server takes its place; an `mcp_*` error that names it takes it away.
   */
  event('drover.mcp_tools_listed', {
    mcp_server_name: z.string(),
    /** What it says it is. */
    server: z.object({ name: z.string(), version: z.string() }).nullable(),
    tools: z.array(McpTool),
    /** Tools the model can't be shown, and why. */
    left_out: z.array(z.object({ name: z.string(), why: z.string() })),
    /** Of a server that runs in the sandbox: what the ledger puts its connections down to. */
    execution_id: ExecutionId.optional(),
  }),
  event('drover.tool_recovered', {
    tool_use_id: EventId,
    execution_id: ExecutionId,
    found: z.enum(['finished', 'running', 'absent']),
  }),
  event('drover.sandbox_provisioning', { sandbox_id: SandboxId, recipe: z.string() }),
  event('drover.sandbox_ready', {
    sandbox_id: SandboxId,
    kind: z.enum(['container', 'os', 'host']),
    /** What a person would look for in the engine: a container id, an image. */
    detail: z.string(),
    duration_ms: z.number(),
  }),
  /** The session works on a copy of its own, which was made now. */
  event('drover.workspace_copied', {
    files: z.number(),
    bytes: z.number(),
    /** What did not come along, in words. */
    left_out: z.array(z.string()),
  }),
  /** A person brought changes from the session's copy into the workspace folder. */
  event('drover.changes_applied', {
    files: z.array(
      z.object({
        /** Relative to the workspace folder, with slashes. */
        path: z.string(),
        change: z.enum(['added', 'modified', 'deleted']),
        /** Of the file as it is now; null if it was deleted. */
        sha256: z.string().nullable(),
      }),
    ),
    refused: z.array(z.object({ path: z.string(), why: z.string() })),
  }),
  /** The session's copy was removed: nothing in it was wanted any more. `unapplied`: changes that went with it. */
  event('drover.workspace_discarded', { unapplied: z.array(z.string()) }),
  /** Lines of what makes the sandbox, as they came: a build's output, a lifecycle command's. */
  event('drover.sandbox_progress', { sandbox_id: SandboxId, lines: z.array(z.string()) }),
  event('drover.sandbox_failed', { sandbox_id: SandboxId, message: z.string() }),
  event('drover.sandbox_lost', { sandbox_id: SandboxId, reason: z.string() }),
  event('drover.sandbox_removed', { sandbox_id: SandboxId, reason: z.string() }),
  /** The files of the session's work folder were kept as they are. See docs/event-log.md for each field. */
  event('drover.checkpoint', {
    commit: CommitId,
    /** The checkpoint before it in this session; null for the first. */
    parent: CommitId.nullable(),
    /** `calls`: calls changed files. `start`: the files before any call. `person`: changed by nobody of the session. */
    why: z.enum(['start', 'calls', 'person', 'restore']),
    /** The calls that ran since the checkpoint before it, whichever thread's; empty unless `why` is `calls`. */
    tool_use_ids: z.array(EventId),
    files_changed: z.number(),
    /** The first of them. */
    files: z.array(ChangedFile),
    /** What is not in it although it is in the folder, the first of them. */
    skipped: z.array(z.object({ path: z.string(), why: z.enum(['large', 'unreadable']), bytes: z.number() })),
    skipped_count: z.number(),
  }),
  /** No checkpoint could be taken. Told once for a reason. */
  event('drover.checkpoint_failed', { message: z.string() }),
  /** A person put the files back to how they were in a checkpoint. `before` is the checkpoint that undoes it. */
  event('drover.files_restored', {
    commit: CommitId,
    before: CommitId,
    files_changed: z.number(),
    files: z.array(ChangedFile),
  }),
  /**
   * The ledger of the network: one connection or request that left the sandbox, or tried to, or that Drover itself made
   * to an MCP server. Written when it has ended.
   * Of a connection that is passed on unread there is no more to say than host, port and bytes; its method is CONNECT.
   */
  event('drover.egress', {
    /** The attempt at a call it is put down to; null: nobody's in particular. */
    execution_id: ExecutionId.nullable(),
    scheme: z.enum(['http', 'https']),
    host: z.string(),
    port: z.number(),
    method: z.string(),
    /** Without its query. */
    path: z.string().nullable(),
    /** Of the answer the sandbox got; null if there was none. */
    status: z.number().nullable(),
    bytes_out: z.number(),
    bytes_in: z.number(),
    duration_ms: z.number(),
    verdict: z.enum(['allowed', 'refused', 'failed']),
    /** Why it was refused or failed, in one word. */
    reason: z.string().nullable(),
    /** Whose value was put in. */
    credential_ids: z.array(z.string()),
    /** Equal ones of the same moment are one event. */
    count: z.number(),
    /** The server it was made to, from outside the sandbox. */
    mcp_server_name: z.string().optional(),
  }),
  /**
   * A value of a vault was about to be stored, or sent to the model, and was taken out: it should be impossible, so it is a
   * fault or an attack. The value itself is nowhere.
   */
  event('drover.secret_alarm', {
    /** Null: the key of the model, which is in no vault. */
    credential_id: CredentialId.nullable(),
    vault_id: VaultId.nullable(),
    name: z.string(),
    where: z.enum(['record', 'blob', 'model_request']),
    /** How it was written there. */
    form: z.enum(['plain', 'json', 'url', 'base64', 'hex']),
    /** The event it was taken out of. */
    event_id: EventId.nullable(),
    event_type: z.string().nullable(),
    /** How often it stood there. */
    count: z.number(),
  }),
  /**
   * A person is asked something that is no tool call. The answer is a `user.tool_confirmation` that names this event.
   * `canary`: a placeholder turned up where it does not belong, and nothing goes on until somebody has looked.
   * `host`: something in the sandbox waits for a host that no rule names.
   */
  event('drover.question', {
    kind: z.enum(['canary', 'host']),
    /** What happened, and what a yes means. For people. */
    text: z.string(),
    /** The call that did it, where that is known. */
    call: EventId.nullable(),
    credential_id: CredentialId.nullish(),
    host: z.string().nullish(),
    port: z.number().nullish(),
  }),
  /** A person lets the model see a value that was masked because it looks like a secret, from the next result on. */
  event('drover.secret_revealed', {
    /** As in `local.masked` of the result. */
    finding: z.string(),
    kind: z.string(),
  }),
  event('drover.log_damaged', {
    /** Byte range in the log file that could not be read, end exclusive. */
    range: z.tuple([z.number(), z.number()]),
    reason: z.string(),
  }),
  event('drover.forked_from', {
    session_id: SessionId,
    seq: z.number(),
    hash: z.string(),
    /** The session this log is now: record 0 is a copy and names the other one. */
    new_session_id: SessionId.optional(),
  }),
  event('drover.session_archived', { archived: z.boolean() }),
] as const;
