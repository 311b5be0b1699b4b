import type { ValidationOptions } from './validate.ts';

type Json = Record<string, unknown>;
type Check = (block: Json, at: string, options: ValidationOptions) => string | undefined;
interface Rule {
  roles: readonly ('user' | 'assistant')[];
  required: readonly string[];
  optional: readonly string[];
  check: Check;
}

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

const fine: Check = () => undefined;
const text =
  (blank: boolean): Check =>
  (block, at) => {
    if (typeof block.text !== 'string') return `${at}.text: Input should be a valid string`;
    if (block.text === '') return 'messages: text content blocks must be non-empty';
    if (!blank && block.text.trim() === '') return 'messages: text content blocks must contain non-whitespace text';
    return undefined;
  };

/** The kinds of blocks a conversation may hold, with the fields the API knows of each. */
const RULES: Readonly<Record<string, Rule>> = {
  text: { roles: ['user', 'assistant'], required: ['text'], optional: ['citations'], check: text(false) },
  image: { roles: ['user'], required: ['source'], optional: [], check: source(IMAGE_TYPES) },
  document: {
    roles: ['user'],
    required: ['source'],
    optional: ['title', 'context', 'citations'],
    check: source(['application/pdf', 'text/plain']),
  },
  search_result: {
    roles: ['user'],
    required: ['source', 'title', 'content'],
    optional: ['citations'],
    check: (block, at) => (Array.isArray(block.content) ? undefined : `${at}.content: Input should be a valid list`),
  },
  thinking: { roles: ['assistant'], required: ['thinking', 'signature'], optional: [], check: thinking },
  redacted_thinking: {
    roles: ['assistant'],
    required: ['data'],
    optional: [],
    check: (block, at) => (typeof block.data === 'string' && block.data ? undefined : `${at}.data: Field required`),
  },
  tool_use: { roles: ['assistant'], required: ['id', 'name', 'input'], optional: ['caller'], check: toolUse },
  tool_result: { roles: ['user'], required: ['tool_use_id'], optional: ['content', 'is_error'], check: toolResult },
  server_tool_use: {
    roles: ['assistant'],
    required: ['id', 'name', 'input'],
    optional: ['caller'],
    check: fine,
  },
};

/** What a tool result may hold. Its text may be blank, as a command's output may be. */
const RESULT_RULES: Readonly<Record<string, Rule>> = {
  ...Object.fromEntries(['image', 'document', 'search_result'].map((type) => [type, RULES[type]])),
  text: { roles: ['user'], required: ['text'], optional: ['citations'], check: text(true) },
} as Readonly<Record<string, Rule>>;

/**
 * Why the API would refuse one block of a message, or undefined.
 * @param at the block's place as the API names it, such as `messages.0.content.1`
 */
export function blockProblem(
  block: unknown,
  at: string,
  role: 'user' | 'assistant',
  options: ValidationOptions,
): string | undefined {
  const problem = ruleProblem(block, at, RULES, options);
  if (problem) return problem;
  const type = isObject(block) ? String(block.type) : '';
  if (!RULES[type]?.roles.includes(role))
    return `${at}: \`${type}\` blocks can only be in \`${otherOf(role)}\` messages`;
  return surrogateProblem(block);
}

const otherOf = (role: 'user' | 'assistant') => (role === 'user' ? 'assistant' : 'user');

function ruleProblem(
  block: unknown,
  at: string,
  rules: Readonly<Record<string, Rule>>,
  options: ValidationOptions,
): string | undefined {
  if (!isObject(block)) return `${at}: Input should be an object`;
  const type = block.type;
  if (type === undefined) return `${at}.type: Field required`;
  const rule = typeof type === 'string' && Object.hasOwn(rules, type) ? rules[type] : undefined;
  if (!rule) {
    const tags = Object.keys(rules).map((tag) => `'${tag}'`);
    return `${at}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${tags.join(', ')}`;
  }
  const missing = rule.required.find((key) => block[key] === undefined);
  if (missing) return `${at}.${type}.${missing}: Field required`;
  const known = ['type', 'cache_control', ...rule.required, ...rule.optional];
  const extra = Object.keys(block).find((key) => !known.includes(key));
  if (extra) return `${at}.${type}.${extra}: Extra inputs are not permitted`;
  if (block.cache_control && (type === 'thinking' || type === 'redacted_thinking')) {
    return `${at}.${type}.cache_control: Extra inputs are not permitted`;
  }
  return rule.check(block, `${at}.${type}`, options);
}

function source(mediaTypes: readonly string[]): Check {
  return (block, at) => {
    const from = block.source;
    if (!isObject(from)) return `${at}.source: Input should be an object`;
    if (from.type === 'base64') {
      if (!mediaTypes.includes(String(from.media_type))) {
        return `${at}.source.base64.media_type: Input should be ${mediaTypes.map((type) => `'${type}'`).join(' or ')}`;
      }
      return typeof from.data === 'string' && from.data ? undefined : `${at}.source.base64.data: Field required`;
    }
    if (from.type === 'text' && block.type === 'document') {
      return typeof from.data === 'string' ? undefined : `${at}.source.text.data: Field required`;
    }
    if (from.type === 'url' || from.type === 'file') return undefined;
    return `${at}.source: Input tag '${from.type}' found using 'type' does not match any of the expected tags: 'base64', 'url', 'file'`;
  };
}

function thinking(block: Json, at: string, options: ValidationOptions): string | undefined {
  if (typeof block.thinking !== 'string') return `${at}.thinking: Input should be a valid string`;
  if (typeof block.signature !== 'string') return `${at}.signature: Input should be a valid string`;
  const genuine = block.signature !== '' && (options.verifyThinking?.(block.thinking, block.signature) ?? true);
  return genuine ? undefined : `${at.replace(/\.thinking$/, '')}: Invalid \`signature\` in \`thinking\` block`;
}

function toolUse(block: Json, at: string): string | undefined {
  if (typeof block.id !== 'string' || !/^[a-zA-Z0-9_-]+$/.test(block.id)) {
    return `${at}.id: String should match pattern '^[a-zA-Z0-9_-]+$'`;
  }
  if (typeof block.name !== 'string' || !/^[a-zA-Z0-9_-]{1,200}$/.test(block.name)) {
    return `${at}.name: String should match pattern '^[a-zA-Z0-9_-]{1,200}$'`;
  }
  return isObject(block.input) ? undefined : `${at}.input: Input should be a valid dictionary`;
}

function toolResult(block: Json, at: string, options: ValidationOptions): string | undefined {
  if (typeof block.tool_use_id !== 'string') return `${at}.tool_use_id: Input should be a valid string`;
  const { is_error: isError, content } = block;
  if (isError !== undefined && isError !== null && typeof isError !== 'boolean') {
    return `${at}.is_error: Input should be a valid boolean`;
  }
  if (content === undefined || content === null || typeof content === 'string') return undefined;
  if (!Array.isArray(content)) return `${at}.content: Input should be a valid list`;
  for (const [index, inner] of content.entries()) {
    const problem = ruleProblem(inner, `${at}.content.${index}`, RESULT_RULES, options);
    if (problem) return problem;
  }
  return undefined;
}

/** Half a surrogate pair, as a cut in the middle of an emoji leaves it, is no valid JSON to the API. */
function surrogateProblem(value: unknown): string | undefined {
  if (typeof value === 'string') {
    return value.isWellFormed() ? undefined : 'The request body is not valid JSON: no low surrogate in string';
  }
  if (typeof value !== 'object' || value === null) return undefined;
  for (const inner of Object.values(value)) {
    const problem = surrogateProblem(inner);
    if (problem) return problem;
  }
  return undefined;
}
