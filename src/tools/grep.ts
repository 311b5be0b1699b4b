import { capLines } from './cap.ts';
import { SEARCH } from './file-scripts.ts';
import { ask } from './files.ts';
import { failed, ok } from './outcomes.ts';
import { GrepInput, inputSchema } from './schemas.ts';
import { oneLine, type Tool } from './tool.ts';

const SHOWN = 100 * 1024;
/** Bytes fetched: more than is shown, so that very long lines don't hide the others. */
const FETCHED = 1024 * 1024;
const WIDTH = 2000;

export const grep: Tool<typeof GrepInput> = {
  spec: {
    name: 'grep',
    description:
      'Searches the contents of the workspace\'s files for a regular expression; answers "path:line:text". Binary files, .git and node_modules are passed over.',
    input_schema: inputSchema(GrepInput),
    idempotent: true,
    sandboxed: true,
    summary: (input) => oneLine(input.pattern) + (input.path ? ` in ${oneLine(input.path)}` : ''),
  },
  schema: GrepInput,
  changes: false,

  async execute(input, context) {
    if (input.pattern.includes('\n')) return failed('The pattern must be one line: grep looks at one line at a time.');
    const sandbox = await context.sandbox();
    const where = input.path || '.';
    const answer = await ask(sandbox, context, SEARCH, {
      path: where,
      args: [input.pattern, String(FETCHED), extended(input.pattern)],
      fields: 1,
      maxBytes: FETCHED * 2,
    });
    const more = { sandbox: sandbox.id, realPath: answer.fields[0] || '.' };
    const said = new TextDecoder().decode(answer.stdout).replaceAll(/^\.\//gm, '').trimEnd();
    const code = /^rc (\d+)$/m.exec(answer.rest)?.[1];
    if (said === '' && code !== undefined && Number(code) > 1) {
      const why = answer.rest.replace(/^rc \d+$/m, '').trim();
      return failed(`The search could not be made: ${why || 'the regular expression is malformed'}.`, more);
    }
    if (said === '') return ok(`Nothing matches ${input.pattern} in ${input.path || 'the workspace'}.`, more);
    return ok(shortened(said, answer.stdout.length >= FETCHED), more);
  },
};

function shortened(said: string, cut: boolean): string {
  const lines = capLines(said, WIDTH);
  if (lines.length <= SHOWN && !cut) return lines;
  const end = lines.lastIndexOf('\n', SHOWN);
  return `${lines.slice(0, end > 0 ? end : SHOWN)}\n[There are more matches: narrow the pattern or the path.]`;
}

/** `\d` and `\D` in words that a grep without Perl's expressions understands. */
export function extended(pattern: string): string {
  let inClass = false;
  return pattern.replaceAll(/\\.|\[\^?\]?|\]/g, (part) => {
    if (part === '\\d') return inClass ? '0-9' : '[0-9]';
    if (part === '\\D' && !inClass) return '[^0-9]';
    if (part.startsWith('[')) inClass = true;
    else if (part === ']') inClass = false;
    return part;
  });
}
