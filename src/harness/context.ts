import type { ThreadState } from '../session/state.ts';
import { type ModelBlock, type ModelMessage, transcript } from '../session/transcript.ts';
import type { Toolbox } from '../tools/tools.ts';
import type { Awake } from './awake.ts';
import type { ModelCall, ModelLimits } from './model.ts';
import { strategyNamed } from './strategies/strategies.ts';
import type { Assembled } from './strategies/strategy.ts';
import { systemPrompt } from './system-prompt.ts';

/** Output tokens asked for at most: enough for a large file, and what every current model can give. */
const MAX_OUTPUT = 32_000;

/** The request of a thread: a view of the log, made by the session's strategy. */
export function assemble(
  awake: Awake,
  thread: ThreadState,
  toolbox: Toolbox,
  model: string,
  limits: ModelLimits,
): { call: ModelCall; assembled: Assembled } {
  const system = systemPrompt(awake.state, thread);
  const tools = toolbox.specs().map(({ name, description, input_schema }) => ({ name, description, input_schema }));
  const fixedTokens = Math.ceil((system.length + JSON.stringify(tools).length) / 4);
  const view = { messages: transcript(awake.state, thread.id), fixedTokens, limits };
  const assembled = strategyNamed(awake.state.strategy).assemble(view);
  const agentModel = thread.agent.model;
  const effort = typeof agentModel === 'string' ? undefined : agentModel.effort;
  const call: ModelCall = {
    model,
    max_tokens: Math.min(limits.output, MAX_OUTPUT),
    system,
    messages: assembled.messages,
    tools,
    ...(effort ? { effort } : {}),
  };
  return { call, assembled };
}

/** Puts stored images and documents back in place of their file ids: the log keeps only the ids. */
export async function withFiles(awake: Awake, messages: readonly ModelMessage[]): Promise<ModelMessage[]> {
  const inline = async (block: ModelBlock): Promise<ModelBlock> => {
    const content = block.content;
    if (block.type === 'tool_result' && Array.isArray(content)) {
      return { ...block, content: await Promise.all(content.map((one: ModelBlock) => inline(one))) };
    }
    const sha256 = storedFile(block);
    return sha256 === undefined ? block : { ...block, source: await readFile(awake, sha256) };
  };
  return Promise.all(
    messages.map(async (message) =>
      message.content.some(hasFile) ? { ...message, content: await Promise.all(message.content.map(inline)) } : message,
    ),
  );
}

const hasFile = (block: ModelBlock): boolean =>
  storedFile(block) !== undefined ||
  (Array.isArray(block.content) && block.content.some((one: ModelBlock) => storedFile(one) !== undefined));

/** The SHA-256 in `{type: "file", file_id: "file_<sha256>"}`. */
function storedFile(block: ModelBlock): string | undefined {
  const source = block.source;
  if (typeof source !== 'object' || source === null || !('file_id' in source)) return undefined;
  return typeof source.file_id === 'string' ? /^file_([0-9a-f]{64})$/.exec(source.file_id)?.[1] : undefined;
}

async function readFile(awake: Awake, sha256: string) {
  for (const record of await awake.readRecords()) {
    const blob = record.local?.blobs?.find((one) => one.sha256 === sha256);
    if (!blob) continue;
    const bytes = await awake.deps.store.readBlob(awake.id, blob);
    return { type: 'base64', media_type: blob.media_type, data: Buffer.from(bytes).toString('base64') };
  }
  return { type: 'base64', media_type: 'text/plain', data: '' };
}
