import type { RehearsalModel } from './models.ts';
import { type ValidationOptions, validateMessages } from './validate.ts';

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The body's fields this server knows; the API refuses others by name. */
const FIELDS = new Set([
  'model',
  'messages',
  'max_tokens',
  'system',
  'tools',
  'tool_choice',
  'stream',
  'cache_control',
  'thinking',
  'output_config',
  'metadata',
  'temperature',
  'top_p',
  'top_k',
  'stop_sequences',
  'service_tier',
  'speed',
  'inference_geo',
  'diagnostics',
  'container',
]);
const MOST_CACHE_MARKS = 4;

/** Why the API would answer 400 to this body, in its words, or undefined. The model is known to exist by now. */
export function validateRequest(body: Json, model: RehearsalModel, options: ValidationOptions): string | undefined {
  return (
    extraProblem(body) ??
    maxTokensProblem(body.max_tokens, model) ??
    systemProblem(body.system) ??
    toolsProblem(body.tools) ??
    validateMessages(body.messages, options) ??
    cacheProblem(body)
  );
}

/** The same for `count_tokens`, which asks for no reply. */
export const validateCount = (body: Json, options: ValidationOptions): string | undefined =>
  extraProblem(body) ??
  systemProblem(body.system) ??
  toolsProblem(body.tools) ??
  validateMessages(body.messages, options);

function extraProblem(body: Json): string | undefined {
  const extra = Object.keys(body).find((key) => !FIELDS.has(key));
  return extra ? `${extra}: Extra inputs are not permitted` : undefined;
}

function maxTokensProblem(value: unknown, model: RehearsalModel): string | undefined {
  if (value === undefined) return 'max_tokens: Field required';
  if (typeof value !== 'number' || !Number.isInteger(value)) return 'max_tokens: Input should be a valid integer';
  if (value < 1) return 'max_tokens: Input should be greater than or equal to 1';
  if (value > model.maxOutput) {
    return `max_tokens: ${value} > ${model.maxOutput}, which is the maximum allowed number of output tokens for ${model.id}`;
  }
  return undefined;
}

function systemProblem(system: unknown): string | undefined {
  if (system === undefined || typeof system === 'string') return undefined;
  if (!Array.isArray(system)) return 'system: Input should be a valid list';
  for (const [index, block] of system.entries()) {
    if (!isObject(block) || block.type !== 'text' || typeof block.text !== 'string') {
      return `system.${index}: Input should be a text block`;
    }
    if (block.text === '') return 'system: text content blocks must be non-empty';
  }
  return undefined;
}

function toolsProblem(tools: unknown): string | undefined {
  if (tools === undefined) return undefined;
  if (!Array.isArray(tools)) return 'tools: Input should be a valid list';
  const names = new Set<string>();
  for (const [index, tool] of tools.entries()) {
    const at = `tools.${index}.custom`;
    if (!isObject(tool)) return `tools.${index}: Input should be an object`;
    if (typeof tool.name !== 'string' || !/^[a-zA-Z0-9_-]{1,128}$/.test(tool.name)) {
      return `${at}.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`;
    }
    if (!isObject(tool.input_schema)) return `${at}.input_schema: Field required`;
    if (tool.input_schema.type !== 'object') return `${at}.input_schema.type: Input should be 'object'`;
    if (names.has(tool.name)) return 'tools: Tool names must be unique.';
    names.add(tool.name);
  }
  return undefined;
}

function cacheProblem(body: Json): string | undefined {
  const marks = countMarks(body);
  if (marks <= MOST_CACHE_MARKS) return undefined;
  return `A maximum of ${MOST_CACHE_MARKS} blocks with cache_control may be provided. Found ${marks}.`;
}

function countMarks(body: Json): number {
  let marks = body.cache_control ? 1 : 0;
  const count = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(count);
    if (!isObject(value)) return;
    if (value.cache_control) marks += 1;
    count(value.content);
  };
  count(body.system);
  count(body.tools);
  count(body.messages);
  return marks;
}
