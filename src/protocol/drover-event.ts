import { z } from 'zod';
import { AgentDefinition } from './agent.ts';
import { Environment } from './environment.ts';
import { EventId, ExecutionId, SandboxId, SessionId, ThreadId, VaultId } from './ids.ts';
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
  event('drover.tool_recovered', {
    tool_use_id: EventId,
    execution_id: ExecutionId,
    found: z.enum(['finished', 'running', 'absent']),
  }),
  event('drover.sandbox_provisioning', { sandbox_id: SandboxId, recipe: z.string() }),
  event('drover.sandbox_ready', {
    sandbox_id: SandboxId,
    kind: z.enum(['container', 'os']),
    /** What a person would look for in the engine: a container id, an image. */
    detail: z.string(),
    duration_ms: z.number(),
  }),
  event('drover.sandbox_failed', { sandbox_id: SandboxId, message: z.string() }),
  event('drover.sandbox_lost', { sandbox_id: SandboxId, reason: z.string() }),
  event('drover.sandbox_removed', { sandbox_id: SandboxId, reason: z.string() }),
  event('drover.log_damaged', {
    /** Byte range in the log file that could not be read, end exclusive. */
    range: z.tuple([z.number(), z.number()]),
    reason: z.string(),
  }),
  event('drover.forked_from', { session_id: SessionId, seq: z.number(), hash: z.string() }),
  event('drover.session_archived', { archived: z.boolean() }),
] as const;
