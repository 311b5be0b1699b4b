import { LIST } from './file-scripts.ts';
import { ask } from './files.ts';
import { globPattern } from './glob-pattern.ts';
import { failed, ok } from './outcomes.ts';
import { GlobInput, inputSchema } from './schemas.ts';
import { oneLine, type Tool } from './tool.ts';

const SHOWN = 200;
/** Files looked at; a folder with more is searched by a narrower path. */
const WALKED = 50_000;
const LISTED_BYTES = 16 * 1024 * 1024;

export const glob: Tool<typeof GlobInput> = {
  spec: {
    name: 'glob',
    description: `Finds files of the workspace by a pattern such as "**/*.ts", newest first, at most ${SHOWN}. .git and node_modules are passed over.`,
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
    const answer = await ask(sandbox, context, LIST, {
      path: where,
      args: [String(WALKED + 1)],
      fields: 1,
      maxBytes: LISTED_BYTES,
    });
    const base = answer.fields[0] ?? '';
    const listed = new TextDecoder().decode(answer.stdout).split('\n').filter(Boolean);
    const found = listed.map(parseLine).filter((file) => matches.test(file.path));
    found.sort((a, b) => b.mtime - a.mtime || (a.path < b.path ? -1 : 1));
    const more = { sandbox: sandbox.id, realPath: base || '.' };
    const notes: string[] = [];
    if (found.length > SHOWN) notes.push(`[${found.length - SHOWN} more not shown: narrow the pattern or the path.]`);
    if (listed.length > WALKED) notes.push(`[Only the first ${WALKED} files were looked at: give a narrower path.]`);
    if (found.length === 0)
      return ok([`No file matches ${input.pattern} in ${base || 'the workspace'}.`, ...notes].join('\n'), more);
    const paths = found.slice(0, SHOWN).map((file) => (base ? `${base}/${file.path}` : file.path));
    return ok([...paths, ...notes].join('\n'), more);
  },
};

/** `<mtime> ./<path>` */
function parseLine(line: string): { mtime: number; path: string } {
  const space = line.indexOf(' ');
  return { mtime: Number(line.slice(0, space)), path: line.slice(space + 1).replace(/^\.\//, '') };
}
