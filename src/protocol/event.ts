import { z } from 'zod';
import { ContentBlock, DocumentBlock, ImageBlock, SearchResultBlock, TextBlock } from './content.ts';
import { droverEvents } from './drover-event.ts';
import { EventId, ThreadId } from './ids.ts';
import { ModelUsage, Money, SessionUsage } from './usage.ts';

/*
 * The events of Claude Managed Agents, with the public names and shapes, and our own `drover.*` ones.
 * A schema here checks what it names and ignores the rest: what a newer service adds passes through untouched.
 */

const event = <T extends string, S extends z.ZodRawShape>(type: T, shape: S) =>
  z.object({ id: EventId, type: z.literal(type), processed_at: z.string().nullable(), ...shape });

const InputBlock = z.union([TextBlock, ImageBlock, DocumentBlock]);
const ResultBlock = z.union([TextBlock, ImageBlock, DocumentBlock, SearchResultBlock]);
const Input = z.record(z.string(), z.unknown());

export const StopReason = z.union([
  z.object({ type: z.literal('end_turn') }),
  z.object({ type: z.literal('requires_action'), event_ids: z.array(EventId) }),
  z.object({ type: z.literal('retries_exhausted') }),
  z.object({ type: z.literal('budget_reached') }),
  z.object({ type: z.literal('refusal') }),
]);
export type StopReason = z.infer<typeof StopReason>;

export const StopDetails = z
  .object({
    type: z.literal('refusal'),
    category: z.string().nullable(),
    explanation: z.string().nullable(),
  })
  .nullable();
export type StopDetails = z.infer<typeof StopDetails>;

export const Permission = z.enum(['allow', 'ask', 'deny']);
export type Permission = z.infer<typeof Permission>;

export const Evaluation = z.union([
  z.object({ type: z.literal('always_allow') }),
  z.object({ type: z.literal('always_ask') }),
  z.object({
    type: z.literal('auto'),
    evaluated_permission: z.object({ type: Permission, reason_code: z.string().optional() }),
  }),
]);
export type Evaluation = z.infer<typeof Evaluation>;

export const RetryStatus = z.object({ type: z.enum(['retrying', 'exhausted', 'terminal']) });
export const SessionError = z.object({
  /** A public error type such as `model_overloaded_error`; others pass through. */
  type: z.string(),
  message: z.string(),
  retry_status: RetryStatus,
  /** Of an `mcp_*` error. */
  mcp_server_name: z.string().optional(),
});
export type SessionError = z.infer<typeof SessionError>;

const idle = { stop_reason: StopReason, stop_details: StopDetails.optional() };
const threadStatus = { session_thread_id: ThreadId, agent_name: z.string() };
const toolUse = {
  name: z.string(),
  input: Input,
  evaluated_permission: Permission.optional(),
  evaluation: Evaluation.optional(),
  session_thread_id: ThreadId.nullish(),
};
const outcome = { outcome_id: z.string(), iteration: z.number() };
const run = { workflow_run_id: z.string() };
const WorkflowError = z.looseObject({ type: z.string(), message: z.string().optional() });

const publicEvents = [
  event('user.message', { content: z.array(InputBlock) }),
  event('user.interrupt', { session_thread_id: ThreadId.nullish() }),
  event('user.tool_confirmation', {
    tool_use_id: EventId,
    result: z.enum(['allow', 'deny']),
    deny_message: z.string().nullish(),
    session_thread_id: ThreadId.nullish(),
  }),
  event('user.custom_tool_result', {
    custom_tool_use_id: EventId,
    content: z.array(ResultBlock).optional(),
    is_error: z.boolean().nullish(),
    session_thread_id: ThreadId.nullish(),
  }),
  event('user.tool_result', {
    tool_use_id: EventId,
    content: z.array(ResultBlock).optional(),
    is_error: z.boolean().nullish(),
    session_thread_id: ThreadId.nullish(),
  }),
  event('user.define_outcome', {
    description: z.string(),
    rubric: z.union([
      z.object({ type: z.literal('text'), content: z.string().max(262_144) }),
      z.object({ type: z.literal('file'), file_id: z.string() }),
    ]),
    max_iterations: z.number().int().min(1).max(20).nullish(),
    outcome_id: z.string().optional(),
  }),
  event('system.message', { content: z.array(TextBlock) }),

  event('agent.message', { content: z.array(ContentBlock) }),
  event('agent.thinking', {}),
  event('agent.tool_use', toolUse),
  event('agent.mcp_tool_use', { ...toolUse, mcp_server_name: z.string() }),
  event('agent.custom_tool_use', { name: z.string(), input: Input, session_thread_id: ThreadId.nullish() }),
  event('agent.tool_result', {
    tool_use_id: EventId,
    content: z.array(ResultBlock).optional(),
    is_error: z.boolean().nullish(),
  }),
  event('agent.mcp_tool_result', {
    mcp_tool_use_id: EventId,
    content: z.array(ResultBlock).optional(),
    is_error: z.boolean().nullish(),
  }),
  event('agent.thread_message_sent', {
    to_session_thread_id: ThreadId,
    to_agent_name: z.string().nullish(),
    content: z.array(ContentBlock),
  }),
  event('agent.thread_message_received', {
    from_session_thread_id: ThreadId,
    from_agent_name: z.string().nullish(),
    content: z.array(ContentBlock),
  }),
  event('agent.thread_context_compacted', {}),

  event('session.status_running', {}),
  event('session.status_rescheduled', {}),
  event('session.status_terminated', {}),
  event('session.status_idle', idle),
  event('session.error', { error: SessionError }),
  event('session.updated', {
    title: z.string().nullish(),
    metadata: z.record(z.string(), z.string()).nullish(),
    agent: z.looseObject({}).nullish(),
    budget: z.object({ type: z.literal('limit'), max_list_cost: Money }).nullish(),
  }),
  event('session.usage', { usage: SessionUsage }),
  event('session.deleted', {}),
  event('session.thread_created', {
    session_thread_id: ThreadId,
    agent_name: z.string(),
    workflow_run_id: z.string().nullish(),
  }),
  event('session.thread_status_running', threadStatus),
  event('session.thread_status_rescheduled', threadStatus),
  event('session.thread_status_terminated', threadStatus),
  event('session.thread_status_idle', { ...threadStatus, ...idle }),

  event('span.model_request_start', {}),
  event('span.model_request_end', {
    model_request_start_id: EventId,
    is_error: z.boolean().nullable(),
    model_usage: ModelUsage,
  }),
  event('span.outcome_evaluation_start', outcome),
  event('span.outcome_evaluation_ongoing', outcome),
  event('span.outcome_evaluation_end', {
    ...outcome,
    outcome_evaluation_start_id: EventId,
    result: z.string(),
    explanation: z.string().nullish(),
    usage: ModelUsage.nullish(),
  }),

  event('workflow_run.created', {
    ...run,
    name: z.string(),
    description: z.string().nullish(),
    phases: z.array(z.object({ id: z.string(), name: z.string(), description: z.string().nullish() })),
  }),
  event('workflow_run.status_running', run),
  event('workflow_run.status_idle', run),
  event('workflow_run.status_ended', {
    ...run,
    result: z.looseObject({ type: z.string() }),
  }),
  event('workflow_run.error', { error: WorkflowError, workflow_run_id: z.string().nullable() }),
  event('workflow_run.phase_started', { ...run, workflow_run_phase_id: z.string() }),
  event('workflow_run.phase_ended', {
    ...run,
    workflow_run_phase_id: z.string(),
    phase_started_id: EventId,
  }),
] as const;

const schemas = [...publicEvents, ...droverEvents] as const;
const KnownEvent = z.discriminatedUnion('type', schemas);

/** An event of a type this version knows. */
export type KnownEvent = z.infer<typeof KnownEvent>;
export type EventType = KnownEvent['type'];
export type EventOf<T extends EventType> = Extract<KnownEvent, { type: T }>;
/** An event as it may stand in a log: of a known type, or of one a newer version will know. */
export type AnyEvent = KnownEvent | { id: EventId; type: `${string}.${string}`; processed_at: string | null };

const byType = new Map<string, z.ZodType>(schemas.map((schema) => [schema.shape.type.value, schema]));

/** True if this version knows the event's type. The fields of a record's event were checked when it was written. */
export const isKnown = (event: AnyEvent): event is KnownEvent => byType.has(event.type);

/** A call of a tool that Drover runs: its own, or a server's. */
export const isCall = (event: AnyEvent): boolean =>
  event.type === 'agent.tool_use' || event.type === 'agent.mcp_tool_use';

/** The call whose result from an agent's tool this is, if it is one. */
export function resultFor(event: AnyEvent): EventId | undefined {
  if (!isKnown(event)) return undefined;
  if (event.type === 'agent.tool_result') return event.tool_use_id;
  return event.type === 'agent.mcp_tool_result' ? event.mcp_tool_use_id : undefined;
}

/** Why `event` is not valid, in one line, or undefined. An unknown type is valid: it passes through. */
export function eventProblem(event: AnyEvent): string | undefined {
  const schema = byType.get(event.type);
  if (!schema) return undefined;
  const result = schema.safeParse(event);
  if (result.success) return undefined;
  const issue = result.error.issues[0];
  return `${event.type}: ${issue?.path.join('.') || 'event'}: ${issue?.message ?? 'invalid'}`;
}
