import { z } from 'zod';

/*
 * The inputs of the built-in toolset `agent_toolset_20260401`, with the public names. What the model sends is checked
 * against these; the JSON Schema it is shown is made from them.
 */

/** ms. Twice what any build here should take; a longer command belongs in the background. */
export const MAX_TIMEOUT_MS = 60 * 60_000;
export const DEFAULT_TIMEOUT_MS = 120_000;

const BashFields = z.object({
  command: z.string().describe('The command to run. Leave it out only with restart.').optional(),
  restart: z.boolean().describe('Start over with a fresh shell: working directory and variables are reset.').optional(),
  timeout_ms: z
    .number()
    .int()
    .min(0)
    .max(MAX_TIMEOUT_MS)
    .describe(`Milliseconds until the command is ended. 0 or absent: ${DEFAULT_TIMEOUT_MS}.`)
    .optional(),
});
export const BashInput = BashFields.refine((input) => input.command !== undefined || input.restart === true, {
  path: ['command'],
  error: 'is missing; it may be left out only with restart',
});
export type BashInput = z.infer<typeof BashInput>;

const path = (what: string) => z.string().min(1).describe(what);

export const ReadInput = z.object({
  file_path: path('The file, relative to the workspace or absolute inside it.'),
  view_range: z
    .array(z.number().int())
    .length(2)
    .describe('[first line, last line], counted from 1, both included; a last line of 0 or less means to the end.')
    .optional(),
});
export type ReadInput = z.infer<typeof ReadInput>;

export const WriteInput = z.object({
  file_path: path('The file, relative to the workspace or absolute inside it. Folders are made as needed.'),
  content: z.string().describe('The whole new content. What was in the file is overwritten.'),
});
export type WriteInput = z.infer<typeof WriteInput>;

export const EditInput = z.object({
  file_path: path('The file, relative to the workspace or absolute inside it.'),
  old_string: z.string().min(1).describe('The text to replace, exactly as it is in the file.'),
  new_string: z.string().describe('The text to put in its place.'),
  replace_all: z
    .boolean()
    .describe('Replace every occurrence. Without it old_string must occur exactly once.')
    .optional(),
});
export type EditInput = z.infer<typeof EditInput>;

export const GlobInput = z.object({
  pattern: z.string().min(1).describe('A glob such as "src/**/*.ts", relative to path.'),
  path: z.string().describe('The folder to search, relative to the workspace. Default: the workspace.').optional(),
});
export type GlobInput = z.infer<typeof GlobInput>;

export const GrepInput = z.object({
  pattern: z.string().min(1).describe('A regular expression.'),
  path: z.string().describe('The file or folder to search, relative to the workspace. Default: all of it.').optional(),
});
export type GrepInput = z.infer<typeof GrepInput>;

export const GetEventsInput = z.object({
  event_ids: z.array(z.string()).min(1).max(50).describe('Ids of events, such as "sevt_…".').optional(),
  from_seq: z.number().int().min(0).describe('First position in the log.').optional(),
  to_seq: z.number().int().min(0).describe('Last position in the log, included.').optional(),
});
export type GetEventsInput = z.infer<typeof GetEventsInput>;

/** The JSON Schema of an input, as the Messages API takes it. */
export function inputSchema(schema: z.ZodObject): { type: 'object'; [key: string]: unknown } {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return { ...rest, type: 'object' };
}

/** Why a value does not fit, in words for the model; undefined if it fits. */
export function problemOf(schema: z.ZodType, tool: string, input: unknown): string | undefined {
  const checked = schema.safeParse(input);
  if (checked.success) return undefined;
  const problems = checked.error.issues.slice(0, 5).map((issue) => {
    const where = issue.path.map(String).join('.');
    return where ? `${where}: ${issue.message}` : issue.message;
  });
  return `The input does not fit the tool ${tool}. ${problems.join('. ')}. Nothing was done; correct the input and call it again.`;
}
