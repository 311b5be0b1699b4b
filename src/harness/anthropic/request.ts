import type Anthropic from '@anthropic-ai/sdk';
import type { ModelCall } from '../model.ts';

type Params = Anthropic.MessageCreateParamsStreaming;
type Effort = NonNullable<Anthropic.OutputConfig['effort']>;

const EPHEMERAL = { type: 'ephemeral' } as const;
const EFFORTS: readonly string[] = ['low', 'medium', 'high', 'xhigh', 'max'] satisfies Effort[];
const isEffort = (effort: string | undefined): effort is Effort => effort !== undefined && EFFORTS.includes(effort);

/** Blocks go out as they came in: the SDK's types know fewer kinds than the service may have sent. */
const verbatim = (blocks: unknown): Anthropic.ContentBlockParam[] => blocks as Anthropic.ContentBlockParam[];

/**
 * The API's parameters for a call. Two cache marks: one at the end of what every request of the thread shares
 * (tools, then system prompt), and the service's own on the last block, so the next request reads all of this one.
 * `thinks`: the model is known to take `thinking: adaptive`; without it the field is left out and the model decides.
 */
export function paramsOf(call: ModelCall, thinks: boolean): Params {
  const tools: Anthropic.Tool[] = call.tools.map((tool) => ({ ...tool }));
  const lastTool = tools.at(-1);
  if (!call.system && lastTool) lastTool.cache_control = EPHEMERAL;
  return {
    model: call.model,
    max_tokens: call.max_tokens,
    messages: call.messages.map(({ role, content }) => ({ role, content: verbatim(content) })),
    stream: true,
    cache_control: EPHEMERAL,
    ...(call.system ? { system: [{ type: 'text', text: call.system, cache_control: EPHEMERAL }] } : {}),
    ...(tools.length > 0 ? { tools } : {}),
    ...(thinks ? { thinking: { type: 'adaptive' } } : {}),
    ...(isEffort(call.effort) ? { output_config: { effort: call.effort } } : {}),
  };
}
