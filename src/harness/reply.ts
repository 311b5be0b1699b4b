import type { Policy } from '../policy/policy.ts';
import { text } from '../protocol/content.ts';
import type { EventId } from '../protocol/ids.ts';
import { type Draft, draft, type Local } from '../protocol/record.ts';
import type { SessionState, ThreadState } from '../session/state.ts';
import type { Toolbox } from '../tools/tools.ts';
import type { SecretGuard } from '../vault/guard.ts';
import { inputSha256 } from './input-hash.ts';
import type { ModelBlock, ModelReply } from './model.ts';

/** What judges a reply's calls. */
export interface Judges {
  toolbox: Toolbox;
  policy: Policy;
  guard?: SecretGuard | undefined;
}

/** The blocks of one reply as events, in their order, each call with the verdict on it. `ids` are those of the previews. */
export function replyDrafts(
  state: SessionState,
  thread: ThreadState,
  span: EventId,
  reply: ModelReply,
  ids: (index: number) => EventId,
  judges: Judges,
): Draft[] {
  let children = 0;
  return reply.blocks.map((block, index) => {
    const local: Local = { reply: { span, index } };
    const at = { thread: thread.id, id: ids(index) };
    if (block.type === 'text') {
      // What carries more than its text, such as citations, must go back as it came.
      const more = Object.keys(block).some((key) => key !== 'type' && key !== 'text' && block[key] != null);
      const content = [text(String(block.text ?? ''))];
      return draft('agent.message', { content }, { ...at, local: more ? { ...local, raw: block } : local });
    }
    if (block.type !== 'tool_use') return draft('agent.thinking', {}, { ...at, local: { ...local, raw: block } });
    const drafted = toolUse(state, thread, reply, block, index, judges, children);
    if (block.name === 'create_agent') children += 1;
    const more = { ...at, local: { ...local, ...drafted.local } };
    const mcp = judges.toolbox.find(drafted.fields.name)?.mcp;
    if (!mcp) return draft('agent.tool_use', drafted.fields, more);
    const fields = { ...drafted.fields, name: mcp.tool, mcp_server_name: mcp.server.name };
    return draft('agent.mcp_tool_use', fields, { ...more, local: { ...more.local, shown_as: drafted.fields.name } });
  });
}

function toolUse(
  state: SessionState,
  thread: ThreadState,
  reply: ModelReply,
  block: ModelBlock,
  index: number,
  judges: Judges,
  childrenBefore: number,
) {
  const name = String(block.name);
  const input = asInput(block.input);
  const local: Local = { model_tool_use_id: String(block.id) };
  const refused = refusal(reply, name, input, index, judges.toolbox) ?? judges.guard?.inputProblem(name, input);
  if (refused !== undefined) {
    const malformed = reply.malformed.get(index);
    return {
      fields: { name, input, evaluated_permission: 'deny' as const },
      local: { ...local, refused, ...(malformed === undefined ? {} : { malformed_input: malformed }) },
    };
  }
  const verdict = judges.policy.evaluate({
    agent: thread.agent,
    tool: name,
    mcp: judges.toolbox.find(name)?.mcp,
    input,
    inputSha256: inputSha256(input),
    standing: state.standing,
    livingThreads: living(state) + childrenBefore,
    onHost: state.environment.config.type === 'host',
  });
  return {
    fields: { name, input, evaluated_permission: verdict.permission, evaluation: verdict.evaluation },
    local: { ...local, why: verdict.why, ...(verdict.rule ? { rule: verdict.rule } : {}) },
  };
}

/** Threads that have not ended: the primary, and children whose turn is open. */
const living = (state: SessionState): number =>
  [...state.threads.values()].filter((one) => one.parent === null || one.status === 'running').length;

const asInput = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};

/** Why a call can't even be judged, in words for the model; undefined if it can. */
function refusal(
  reply: ModelReply,
  name: string,
  input: Record<string, unknown>,
  index: number,
  toolbox: Toolbox,
): string | undefined {
  const malformed = reply.malformed.get(index);
  const cut = reply.stopReason === 'max_tokens' && index === reply.blocks.length - 1;
  if (cut) return `The call to ${name} was cut off by the output limit, so it was not run. Make it smaller.`;
  if (malformed !== undefined) {
    return `The input of ${name} was not a valid JSON object, so it was not run. It began: ${malformed.slice(0, 200)}`;
  }
  if (!toolbox.find(name)) {
    const names = toolbox.specs().map((spec) => spec.name);
    return `There is no tool named "${name}". The tools are: ${names.join(', ')}.`;
  }
  return toolbox.inputProblem(name, input);
}
