import type { Sandbox } from '../sandbox/sandbox.ts';
import { ask } from './files.ts';
import { globPattern } from './glob-pattern.ts';
import { failed, ok } from './outcomes.ts';
import { withRipgrep } from './ripgrep.ts';
import { GlobInput, inputSchema } from './schemas.ts';
import { LIST } from './search-scripts.ts';
import { oneLine, type Tool } from './tool.ts';
import type { ToolContext } from './tools.ts';
import { walk } from './walk.ts';

const SHOWN = 200;
/** Files looked at; a folder with more is searched by a narrower path. */
const WALKED = 50_000;
const LISTED_BYTES = 16 * 1024 * 1024;

export const glob: Tool<typeof GlobInput> = {
  spec: {
    name: 'glob',
    description: `Finds files of the workspace by a pattern such as "**/*.ts", newest first, at most ${SHOWN}. What .gitignore names is passed over, as are .git and node_modules, unless path names a folder inside.`,
    input_schema: inputSchema(GlobInput),
    idempotent: true,
    sandboxed: true,
    summary: (input) => oneLine(input.pattern) + (input.path ? ` in ${oneLine(input.path)}` : ''),
  },
  schema: GlobInput,
  changes: false,

  async execute(input, context) {
    const where = input.path || '.';
    let matches: RegExp;
    try {
      matches = globPattern(input.pattern);
    } catch (error) {
      return failed(
        `The pattern ${input.pattern} can't be used: ${error instanceof Error ? error.message : 'it is malformed'}.`,
      );
    }
    if (input.pattern.startsWith('/') || input.pattern.split('/').includes('..'))
      return failed('The pattern must be relative and without "..": give the folder in path.');
    const sandbox = await context.sandbox();
    const listed = await list(sandbox, context, where);
    const { base } = listed;
    const found = listed.paths.filter((path) => matches.test(base === '' ? path : path.slice(base.length + 1)));
    const more = { sandbox: sandbox.id, realPath: base || '.' };
    const notes: string[] = [];
    if (found.length > SHOWN) notes.push(`[${found.length - SHOWN} more not shown: narrow the pattern or the path.]`);
    if (listed.partial) notes.push('[There are too many files, and not all were looked at: give a narrower path.]');
    if (found.length === 0)
      return ok([`No file matches ${input.pattern} in ${base || 'the workspace'}.`, ...notes].join('\n'), more);
    return ok([...found.slice(0, SHOWN), ...notes].join('\n'), more);
  },
};

interface Listed {
  base: string;
  /** Relative to the workspace, newest first. */
  paths: string[];
  /** There are more files than were looked at. */
  partial: boolean;
}

const list = (sandbox: Sandbox, context: ToolContext, where: string): Promise<Listed> =>
  withRipgrep(
    sandbox,
    context,
    where,
    async (option) => {
      const args = [String(LISTED_BYTES), option];
      const answer = await ask(sandbox, context, LIST, { path: where, args, fields: 1, maxBytes: LISTED_BYTES * 2 });
      const files = new TextDecoder().decode(answer.stdout).split('\n').map(parseLine);
      const listed = files.filter((file) => file !== undefined);
      const partial = answer.stdout.length >= LISTED_BYTES;
      return { base: answer.fields[0] ?? '', paths: newestFirst(listed), partial, empty: listed.length === 0 };
    },
    async () => {
      const walked = await walk(sandbox, context, where, WALKED);
      return { base: walked.base, paths: newestFirst(walked.files), partial: walked.partial };
    },
  );

interface Dated {
  path: string;
  mtime: number;
}

/** `<seconds> ./<path>` */
function parseLine(line: string): Dated | undefined {
  const [, seconds, path] = /^(\d+) (?:\.\/+)?(.+)$/.exec(line) ?? [];
  return path === undefined ? undefined : { path, mtime: Number(seconds) };
}

const newestFirst = (files: Dated[]): string[] =>
  files.sort((a, b) => b.mtime - a.mtime || (a.path < b.path ? -1 : 1)).map((file) => file.path);
