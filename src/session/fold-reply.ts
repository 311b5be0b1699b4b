import type { EventOf } from '../protocol/event.ts';
import type { EventId } from '../protocol/ids.ts';
import { mcpRuleTool } from '../protocol/mcp.ts';
import type { Local, LogRecord } from '../protocol/record.ts';
import { addUsage } from '../protocol/usage.ts';
import type { ModelRequest, ReplyBlock, SessionState, ThreadState, ToolCall } from './state.ts';

/*
 * A reply counts once its end record, with `is_error` false, is in the log. Until then its blocks are only collected,
 * so a torn batch, or a request that a later waker closes, leaves nothing behind that could run.
 */

export function foldRequestStart(thread: ThreadState, record: LogRecord): void {
  const request: ModelRequest = {
    type: 'request',
    id: record.event.id,
    seq: record.seq,
    at: record.at,
    model: record.local?.model ?? null,
    state: 'open',
    endedAt: null,
    blocks: [],
    usage: null,
    costUsd: 0,
    stopReason: null,
    ttftMs: null,
    cause: null,
  };
  thread.entries.push(request);
  thread.open = request;
}

/** The open request a block belongs to; a block of any other one does not count. */
function openRequest(thread: ThreadState, record: LogRecord): ModelRequest | undefined {
  const span = record.local?.reply?.span;
  return span !== undefined && thread.open?.id === span ? thread.open : undefined;
}

function place(request: ModelRequest, record: LogRecord, block: ReplyBlock): void {
  request.blocks[record.local?.reply?.index ?? request.blocks.length] = block;
}

export function foldReply(
  thread: ThreadState,
  record: LogRecord,
  event: EventOf<'agent.message' | 'agent.thinking'>,
): void {
  const request = openRequest(thread, record);
  if (!request) return;
  const raw = record.local?.raw;
  if (event.type === 'agent.message')
    place(request, record, { type: 'message', id: event.id, content: event.content, raw });
  else place(request, record, { type: 'thinking', id: event.id, raw });
}

export function foldToolUse(
  state: SessionState,
  thread: ThreadState,
  record: LogRecord,
  event: EventOf<'agent.tool_use' | 'agent.mcp_tool_use' | 'agent.custom_tool_use'>,
): void {
  const request = openRequest(thread, record);
  if (!request || state.calls.has(event.id)) return;
  const local = record.local ?? {};
  place(request, record, { type: 'tool_use', id: event.id });
  state.calls.set(event.id, {
    id: event.id,
    seq: record.seq,
    at: record.at,
    thread: thread.id,
    request: request.id,
    ...named(thread, event, local),
    input: event.input,
    modelToolUseId: local.model_tool_use_id ?? null,
    permission: event.type === 'agent.custom_tool_use' ? 'allow' : (event.evaluated_permission ?? 'ask'),
    evaluation: event.type === 'agent.custom_tool_use' ? null : (event.evaluation ?? null),
    why: local.why ?? null,
    refused: local.refused ?? null,
    confirmation: null,
    execution: null,
    recovered: null,
    child: null,
    result: null,
    checkpoints: [],
  });
}

/** A tool of a server has two names: its own, which the event has, and the one the model knows it by. */
function named(
  thread: ThreadState,
  event: EventOf<'agent.tool_use' | 'agent.mcp_tool_use' | 'agent.custom_tool_use'>,
  local: Local,
): Pick<ToolCall, 'name' | 'mcp'> {
  if (event.type !== 'agent.mcp_tool_use') return { name: event.name, mcp: null };
  const { mcp_server_name: server, name: tool } = event;
  const name = local.shown_as ?? `mcp__${server}__${tool}`;
  const rule = mcpRuleTool(
    name,
    thread.agent.mcp_servers?.find((one) => one.name === server),
  );
  return { name, mcp: { server, tool, rule } };
}

export function foldRequestEnd(
  state: SessionState,
  thread: ThreadState,
  record: LogRecord,
  event: EventOf<'span.model_request_end'>,
): void {
  const request = thread.open;
  if (request?.id !== event.model_request_start_id) return;
  const local = record.local ?? {};
  thread.open = null;
  request.endedAt = record.at;
  request.usage = event.model_usage;
  request.costUsd = local.cost_usd ?? 0;
  request.stopReason = local.stop_reason ?? null;
  request.ttftMs = local.ttft_ms ?? null;
  request.cause = local.cause ?? null;
  addUsage(thread.usage, event.model_usage);
  addUsage(state.usage, event.model_usage);
  thread.costUsd += request.costUsd;
  state.costUsd += request.costUsd;
  if (event.is_error !== false) {
    request.state = 'failed';
    // What ended on our side says nothing of the model's: no reason to wait before it is asked again, or to give up.
    if (request.cause !== 'crashed' && request.cause !== 'interrupted') thread.failures += 1;
    return;
  }
  request.state = 'done';
  request.blocks = request.blocks.filter((block) => block !== undefined);
  thread.last = request;
  thread.calls = toolUses(request);
  thread.failures = 0;
  thread.failure = null;
  // What came while the model was thinking is still news to it; so is a reply that says it will go on.
  if (thread.unseenAt < request.seq) thread.unseenAt = -1;
  if (request.stopReason === 'pause_turn') thread.unseenAt = record.seq;
  thread.cuts = request.stopReason === 'max_tokens' && thread.calls.length > 0 ? thread.cuts + 1 : 0;
}

function toolUses(request: ModelRequest): EventId[] {
  const ids: EventId[] = [];
  for (const block of request.blocks) if (block.type === 'tool_use') ids.push(block.id);
  return ids;
}
