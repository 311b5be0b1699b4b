import type { EventOf } from '../protocol/event.ts';
import { type Draft, draft, type Local } from '../protocol/record.ts';
import type { ToolCall } from '../session/state.ts';

/** The result of a call, in the shape that goes with the call's own. */
export function resultDraft(
  call: Pick<ToolCall, 'id' | 'thread' | 'mcp'>,
  fields: Pick<EventOf<'agent.tool_result'>, 'content' | 'is_error'>,
  local: Local,
): Draft {
  const at = { thread: call.thread, local };
  return call.mcp
    ? draft('agent.mcp_tool_result', { mcp_tool_use_id: call.id, ...fields }, at)
    : draft('agent.tool_result', { tool_use_id: call.id, ...fields }, at);
}
