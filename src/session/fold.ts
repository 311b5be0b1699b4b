import { type EventOf, isKnown, type KnownEvent } from '../protocol/event.ts';
import type { EventId, ThreadId } from '../protocol/ids.ts';
import type { LogRecord } from '../protocol/record.ts';
import { noUsage } from '../protocol/usage.ts';
import { foldCheckpoint, foldForked, foldRestored } from './fold-files.ts';
import { foldListed, foldServerFailed, foldTurn, isOfServer } from './fold-mcp.ts';
import { foldAnswer, foldQuestion, openQuestions } from './fold-question.ts';
import { foldReply, foldRequestEnd, foldRequestStart, foldToolUse } from './fold-reply.ts';
import { foldInterrupt, foldStatus, foldWoke, type Statuses } from './fold-status.ts';
import { newThread } from './new-thread.ts';
import type { Asking, SessionState, ThreadInput, ThreadState, ToolCall } from './state.ts';

/** Folds a whole log. The first record must be `drover.session_created`; throws a TypeError otherwise. */
export function fold(records: Iterable<LogRecord>): SessionState {
  let state: SessionState | undefined;
  for (const record of records) state = state ? apply(state, record) : begin(record);
  if (!state) throw new TypeError('An empty log is no session.');
  return state;
}

/** Applies one more record IN PLACE and returns the same state; records at or before `state.head.seq` are passed over. */
export function apply(state: SessionState, record: LogRecord): SessionState {
  if (record.seq <= state.head.seq) return state;
  if (record.fence < state.fence) {
    state.stale += 1;
    return state;
  }
  const previousAt = state.updatedAt;
  state.fence = record.fence;
  state.head = { seq: record.seq, hash: record.hash };
  state.updatedAt = record.at;
  state.seqOf.set(record.event.id, record.seq);
  const thread = record.thread ? state.threads.get(record.thread) : undefined;
  if (thread) thread.updatedAt = record.at;
  if (isKnown(record.event)) foldEvent(state, record, record.event, thread, previousAt);
  return state;
}

function begin(record: LogRecord): SessionState {
  const event = record.event;
  if (!isKnown(event) || event.type !== 'drover.session_created') {
    throw new TypeError('The first record of a session must be drover.session_created.');
  }
  const primary = newThread({
    id: event.primary_thread_id,
    parent: null,
    createdBy: null,
    at: record.at,
    agent: event.agent,
    name: event.agent.name,
  });
  return {
    id: event.session_id,
    title: event.title,
    createdAt: record.at,
    updatedAt: record.at,
    agent: event.agent,
    roster: event.roster ?? [],
    environment: event.environment,
    vaultIds: event.vault_ids,
    strategy: event.strategy,
    budgetUsd: event.budget_usd ?? null,
    archived: false,
    status: 'idle',
    stopReason: null,
    primary: primary.id,
    threads: new Map([[primary.id, primary]]),
    calls: new Map(),
    seqOf: new Map([[event.id, record.seq]]),
    standing: (event.rules ?? []).map(({ tool, input_sha256 }) => ({
      tool,
      ...(input_sha256 ? { input_sha256 } : {}),
    })),
    questions: [],
    revealed: [],
    sandboxes: new Map(),
    sandbox: null,
    checkpoint: null,
    checkpointProblem: null,
    forkedFrom: null,
    reserved: new Map(),
    usage: noUsage(),
    costUsd: 0,
    activeMs: 0,
    runningSince: null,
    head: { seq: record.seq, hash: record.hash },
    fence: record.fence,
    stale: 0,
  };
}

function foldEvent(
  state: SessionState,
  record: LogRecord,
  event: KnownEvent,
  thread: ThreadState | undefined,
  previousAt: string,
): void {
  switch (event.type) {
    case 'user.message':
      if (thread) foldInput(thread, record, event.content, null);
      return;
    case 'agent.thread_message_received':
      if (thread) foldInput(thread, record, event.content, event.from_session_thread_id);
      return;
    case 'drover.event_processed':
      if (thread) foldProcessed(thread, event.event_id, record);
      return;
    case 'user.interrupt':
      foldInterrupt(state, record, event);
      return;
    case 'user.tool_confirmation':
      if (!foldAnswer(state, record, event)) foldConfirmation(state, record, event);
      return;
    case 'span.model_request_start':
      if (thread) foldRequestStart(thread, record);
      return;
    case 'span.model_request_end':
      if (thread) foldRequestEnd(state, thread, record, event);
      return;
    case 'agent.message':
    case 'agent.thinking':
      if (thread) foldReply(thread, record, event);
      return;
    case 'agent.tool_use':
    case 'agent.mcp_tool_use':
    case 'agent.custom_tool_use':
      if (thread) foldToolUse(state, thread, record, event);
      return;
    case 'agent.tool_result':
      foldResult(state, record, event.tool_use_id, event);
      return;
    case 'agent.mcp_tool_result':
      foldResult(state, record, event.mcp_tool_use_id, event);
      return;
    case 'user.custom_tool_result':
      foldResult(state, record, event.custom_tool_use_id, event);
      return;
    case 'user.tool_result':
      foldResult(state, record, event.tool_use_id, event);
      return;
    case 'session.thread_created':
      foldThreadCreated(state, record, event);
      return;
    case 'session.error':
      foldError(state, thread, record, event);
      return;
    case 'session.updated':
      if (typeof event.title === 'string') state.title = event.title;
      return;
    case 'drover.woke':
      foldWoke(state, record, previousAt);
      return;
    case 'drover.session_archived':
      state.archived = event.archived;
      return;
    case 'drover.budget_reserved':
      if (thread) state.reserved.set(event.id, { amountUsd: event.amount_usd, thread: thread.id });
      return;
    case 'drover.budget_settled':
      state.reserved.delete(event.reservation_id);
      return;
    case 'drover.tool_started':
      foldStarted(state, record, event);
      return;
    case 'drover.mcp_tools_listed':
      if (!thread) return;
      foldListed(thread, record, event);
      notice(state, record, mcpNotice(event), thread);
      return;
    case 'drover.tool_recovered': {
      const call = state.calls.get(event.tool_use_id);
      if (call) call.recovered = event.found;
      return;
    }
    case 'drover.checkpoint':
      foldCheckpoint(state, record, event);
      return;
    case 'drover.checkpoint_failed':
      state.checkpointProblem = event.message;
      notice(state, record, { kind: 'no_checkpoint', text: event.message });
      return;
    case 'drover.files_restored':
      foldRestored(state, record, event);
      return;
    case 'drover.forked_from':
      foldForked(state, record, event);
      return;
    case 'drover.question':
      foldQuestion(state, record, event);
      return;
    case 'drover.secret_revealed':
      if (!state.revealed.includes(event.finding)) state.revealed.push(event.finding);
      return;
    case 'drover.secret_alarm':
      notice(state, record, { kind: 'secret', name: event.name, where: event.where, event: event.event_id }, thread);
      return;
    case 'drover.log_damaged':
      notice(state, record, {
        kind: 'damaged',
        bytes: event.range[1] - event.range[0],
        reason: event.reason,
      });
      return;
    case 'drover.sandbox_provisioning':
    case 'drover.sandbox_ready':
    case 'drover.sandbox_failed':
    case 'drover.sandbox_lost':
    case 'drover.sandbox_removed':
      foldSandbox(state, record, event);
      return;
    default:
      if (isStatus(event)) foldStatus(state, record, event);
  }
}

const isStatus = (event: KnownEvent): event is Statuses => /^session\.(thread_)?status_/.test(event.type);

function foldInput(
  thread: ThreadState,
  record: LogRecord,
  content: ThreadInput['content'],
  from: ThreadId | null,
): void {
  const input: ThreadInput = {
    type: 'input',
    id: record.event.id,
    seq: record.seq,
    at: record.at,
    from: from ? 'thread' : 'person',
    fromThread: from,
    content,
    processedAt: record.event.processed_at,
  };
  thread.entries.push(input);
  if (input.processedAt === null) thread.queue.push(input.id);
  else taken(thread, record);
}

/** An input has reached the agent: a turn is open, whatever failed before is over. */
function taken(thread: ThreadState, record: LogRecord): void {
  thread.unseenAt = record.seq;
  thread.failures = 0;
  thread.failure = null;
  thread.interrupted = false;
  thread.cuts = 0;
  foldTurn(thread);
}

/** A queued input takes its place in the conversation when it is processed, not when it was typed: so the model saw it. */
function foldProcessed(thread: ThreadState, id: EventId, record: LogRecord): void {
  const queued = thread.queue.indexOf(id);
  if (queued >= 0) {
    thread.queue.splice(queued, 1);
    const at = thread.entries.findLastIndex((entry) => entry.type === 'input' && entry.id === id);
    const [input] = thread.entries.splice(at, 1);
    if (input?.type === 'input') {
      input.processedAt = record.at;
      thread.entries.push(input);
    }
    taken(thread, record);
    return;
  }
  const interrupt = thread.interrupts.indexOf(id);
  if (interrupt >= 0) {
    thread.interrupts.splice(interrupt, 1);
    thread.interrupted = true;
    thread.unseenAt = -1;
  }
}

function foldConfirmation(state: SessionState, record: LogRecord, event: EventOf<'user.tool_confirmation'>): void {
  const call = state.calls.get(event.tool_use_id);
  // The first answer counts: a second one, from a stale view, changes nothing.
  if (!call || call.confirmation || call.result || call.permission !== 'ask') return;
  const local = record.local ?? {};
  call.confirmation = {
    id: event.id,
    result: event.result,
    denyMessage: event.deny_message ?? null,
    at: record.at,
    actor: local.actor ?? null,
    standing: local.standing ?? null,
  };
  if (event.result === 'allow' && local.standing) state.standing.push(local.standing);
}

function foldStarted(state: SessionState, record: LogRecord, event: EventOf<'drover.tool_started'>): void {
  const call = state.calls.get(event.tool_use_id);
  if (!call || call.result) return;
  call.execution = {
    id: event.execution_id,
    sandbox: event.sandbox_id,
    owner: record.local?.owner_thread ?? null,
    at: record.at,
    seq: record.seq,
  };
}

type AnyResult = Pick<EventOf<'agent.tool_result'>, 'content' | 'is_error'>;

function foldResult(state: SessionState, record: LogRecord, id: EventId, event: AnyResult): void {
  const call = state.calls.get(id);
  // One call, one result: the first that got into the log is the one the model was told.
  if (!call || call.result) return;
  const local = record.local ?? {};
  call.result = {
    id: record.event.id,
    seq: record.seq,
    at: record.at,
    content: event.content ?? [],
    isError: event.is_error === true,
    outcome: local.outcome ?? (event.is_error === true ? 'failed' : 'ok'),
    exitCode: local.exit_code ?? null,
    durationMs: local.duration_ms ?? null,
    realPath: local.real_path ?? null,
    fileSha256: local.file_sha256 ?? null,
    blobs: local.blobs ?? [],
    masked: local.masked ?? [],
  };
  const thread = state.threads.get(call.thread);
  if (thread && call.request === thread.last?.id) thread.unseenAt = record.seq;
}

function foldThreadCreated(state: SessionState, record: LogRecord, event: EventOf<'session.thread_created'>): void {
  if (state.threads.has(event.session_thread_id)) return;
  const call = record.local?.created_by ? state.calls.get(record.local.created_by) : undefined;
  const agent = [state.agent, ...state.roster].find((one) => one.name === record.local?.agent) ?? state.agent;
  const thread = newThread({
    id: event.session_thread_id,
    parent: record.thread ?? state.primary,
    createdBy: call?.id ?? null,
    at: record.at,
    agent,
    name: event.agent_name,
  });
  state.threads.set(thread.id, thread);
  if (call) call.child = thread.id;
}

function foldError(
  state: SessionState,
  thread: ThreadState | undefined,
  record: LogRecord,
  event: EventOf<'session.error'>,
): void {
  const cause = record.local?.cause ?? null;
  const entry = {
    kind: 'error',
    error: event.error,
    cause,
    retryInMs: record.local?.retry_in_ms ?? null,
  } as const;
  notice(state, record, entry, thread);
  // A server's fault is none of the model's: the turn goes on without its tools.
  if (thread && isOfServer(event.error)) foldServerFailed(thread, record, event.error);
  else if (thread) thread.failure = { error: event.error, cause };
}

const mcpNotice = (event: EventOf<'drover.mcp_tools_listed'>) => ({
  kind: 'mcp' as const,
  server: event.mcp_server_name,
  tools: event.tools.length,
  leftOut: event.left_out.map(({ name, why }) => `${name}: ${why}`),
});

type SandboxEvent = EventOf<
  | 'drover.sandbox_provisioning'
  | 'drover.sandbox_ready'
  | 'drover.sandbox_failed'
  | 'drover.sandbox_lost'
  | 'drover.sandbox_removed'
>;

function foldSandbox(state: SessionState, record: LogRecord, event: SandboxEvent): void {
  const known = state.sandboxes.get(event.sandbox_id);
  const box = known ?? {
    id: event.sandbox_id,
    state: 'provisioning',
    kind: null,
    detail: '',
    at: record.at,
    durationMs: null,
    owner: null,
  };
  box.at = record.at;
  const actor = record.local?.actor;
  if (actor?.type === 'agent') box.owner ??= actor.thread;
  switch (event.type) {
    case 'drover.sandbox_provisioning':
      box.state = 'provisioning';
      box.detail = event.recipe;
      state.sandbox = box.id;
      break;
    case 'drover.sandbox_ready':
      box.state = 'ready';
      box.kind = event.kind;
      box.detail = event.detail;
      box.durationMs = event.duration_ms;
      state.sandbox = box.id;
      break;
    case 'drover.sandbox_failed':
      box.state = 'failed';
      box.detail = event.message;
      break;
    case 'drover.sandbox_lost':
      box.state = 'lost';
      box.detail = event.reason;
      break;
    case 'drover.sandbox_removed':
      box.state = 'removed';
      box.detail = event.reason;
  }
  state.sandboxes.set(box.id, box);
  if (state.sandbox === box.id && box.state !== 'ready' && box.state !== 'provisioning') state.sandbox = null;
  notice(state, record, { kind: 'sandbox', state: box.state, text: box.detail });
}

function notice(
  state: SessionState,
  record: LogRecord,
  entry: Extract<ThreadState['entries'][number], { type: 'notice' }>['notice'],
  thread = state.threads.get(state.primary),
): void {
  thread?.entries.push({ type: 'notice', id: record.event.id, seq: record.seq, at: record.at, notice: entry });
}

/**
 * Where a call stands. `void`: its reply does not count, so it does not either.
 * `refused` and `denied` calls get their result without running.
 */
export type CallPhase = 'void' | 'asking' | 'approved' | 'denied' | 'refused' | 'running' | 'done';

export function callPhase(state: SessionState, call: ToolCall): CallPhase {
  if (call.result) return 'done';
  if (!counts(state, call)) return 'void';
  if (call.refused !== null) return 'refused';
  if (call.execution) return 'running';
  if (call.permission === 'deny') return 'denied';
  if (call.permission === 'allow') return 'approved';
  if (!call.confirmation) return 'asking';
  return call.confirmation.result === 'allow' ? 'approved' : 'denied';
}

/** A call counts from the moment the end of its reply is in the log; later replies only follow when it is closed. */
const counts = (state: SessionState, call: ToolCall): boolean =>
  state.threads.get(call.thread)?.last?.id === call.request;

/** A call or a question by its id. */
export const askingOf = (state: SessionState, id: EventId): Asking | undefined =>
  state.calls.get(id) ?? state.questions.find((question) => question.id === id);

/** Calls and questions that wait for a person, oldest first, over all threads. */
export function pendingApprovals(state: SessionState): Asking[] {
  const asking: Asking[] = openQuestions(state);
  for (const thread of state.threads.values()) {
    if (thread.status === 'terminated') continue;
    for (const id of thread.calls) {
      const call = state.calls.get(id);
      if (call && callPhase(state, call) === 'asking') asking.push(call);
    }
  }
  return asking.sort((a, b) => a.seq - b.seq);
}
