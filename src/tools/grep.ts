import type { Sandbox } from '../sandbox/sandbox.ts';
import { capLines } from './cap.ts';
import { readText } from './detect.ts';
import { type Answer, ask } from './files.ts';
import { failed, ok } from './outcomes.ts';
import { withRipgrep } from './ripgrep.ts';
import { GrepInput, inputSchema } from './schemas.ts';
import { GREP, SEARCH } from './search-scripts.ts';
import { oneLine, type Tool } from './tool.ts';
import type { ToolContext } from './tools.ts';
import { batches, walk } from './walk.ts';

const SHOWN = 100 * 1024;
/** Bytes fetched: more than is shown, so that very long lines don't hide the others. */
const FETCHED = 1024 * 1024;
const WIDTH = 2000;
/** Files searched where there is no ripgrep. */
const WALKED = 50_000;

export const grep: Tool<typeof GrepInput> = {
  spec: {
    name: 'grep',
    description:
      'Searches the contents of the workspace\'s files for a regular expression; answers "path:line:text". Binary files and what .gitignore names are passed over, as are .git and node_modules, unless path names a folder inside.',
    input_schema: inputSchema(GrepInput),
    idempotent: true,
    sandboxed: true,
    summary: (input) => oneLine(input.pattern) + (input.path ? ` in ${oneLine(input.path)}` : ''),
  },
  schema: GrepInput,
  changes: false,

  async execute(input, context) {
    if (/[\n\0]/.test(input.pattern)) return failed('The pattern must be one line: grep looks at one line at a time.');
    const sandbox = await context.sandbox();
    const found = await search(sandbox, context, input.path || '.', input.pattern);
    const more = { sandbox: sandbox.id, realPath: found.base || '.' };
    if (found.problem !== undefined) return failed(`The search could not be made: ${found.problem}.`, more);
    if (found.lines.length === 0) {
      const partial = found.partial
        ? '\n[There are too many files, and not all were searched: give a narrower path.]'
        : '';
      return ok(`Nothing matches ${input.pattern} in ${input.path || 'the workspace'}.${partial}`, more);
    }
    return ok(shortened(found.lines, found.partial), more);
  },
};

interface Found {
  base: string;
  lines: Line[];
  /** There is more than was fetched. */
  partial: boolean;
  /** Why the pattern can't be used. */
  problem?: string;
}

interface Line {
  path: string;
  number: number;
  text: string;
}

const search = (sandbox: Sandbox, context: ToolContext, where: string, pattern: string): Promise<Found> =>
  withRipgrep(
    sandbox,
    context,
    where,
    async (option) => {
      const args = [pattern, String(FETCHED), option];
      const answer = await ask(sandbox, context, SEARCH, { path: where, args, fields: 1, maxBytes: FETCHED * 2 });
      const lines = linesOf(answer.stdout, nulSeparated);
      const problem = lines.length === 0 ? problemOf(answer) : {};
      const empty = lines.length === 0 && !('problem' in problem);
      return { base: answer.fields[0] ?? '', lines, partial: answer.stdout.length >= FETCHED, ...problem, empty };
    },
    () => searchWithout(sandbox, context, where, pattern),
  );

async function searchWithout(sandbox: Sandbox, context: ToolContext, where: string, pattern: string): Promise<Found> {
  const walked = await walk(sandbox, context, where, WALKED);
  const names = walked.files.filter((file) => !file.link).map((file) => file.path);
  const known = new Set(names);
  const found: Found = { base: walked.base, lines: [], partial: walked.partial };
  let left = FETCHED;
  for (const batch of batches(names)) {
    const args = [pattern, extended(pattern), String(left), ...batch.map((name) => `./${name}`)];
    const answer = await ask(sandbox, context, GREP, { path: '.', args, fields: 1, maxBytes: left * 2 });
    const problem = problemOf(answer);
    if (problem.problem !== undefined) return { ...found, ...problem };
    found.lines.push(...linesOf(answer.stdout, (line) => colonSeparated(line, known)));
    left -= answer.stdout.length;
    if (left <= 0) return { ...found, partial: true };
  }
  return found;
}

/** `rc <n>` above 1: the search did not take place, and the program said why. */
function problemOf(answer: Answer): { problem?: string } {
  const code = /^rc (\d+)$/m.exec(answer.rest)?.[1];
  if (code === undefined || Number(code) <= 1) return {};
  const why = answer.rest.replace(/^rc \d+$/m, '').trim();
  return { problem: why.slice(0, 1000).replace(/\.$/, '') || 'the regular expression is malformed' };
}

type Parse = (line: string) => Line | undefined;

function linesOf(output: Uint8Array, parse: Parse): Line[] {
  const lines: Line[] = [];
  let at = 0;
  for (let end = output.indexOf(0x0a); end !== -1; end = output.indexOf(0x0a, at)) {
    const line = parse(textOf(output.subarray(at, end)));
    if (line) lines.push(line);
    at = end + 1;
  }
  return lines;
}

/** A line may be in any encoding, whatever the others are in. */
function textOf(line: Uint8Array): string {
  const nul = line.indexOf(0);
  const text = readText(line.subarray(nul + 1))?.text ?? new TextDecoder().decode(line.subarray(nul + 1));
  return nul === -1 ? text : `${new TextDecoder().decode(line.subarray(0, nul))}\0${text}`;
}

const lineOf = (path: string, number: string, text: string): Line => ({
  path: path.replace(/^(\.\/)+/, ''),
  number: Number(number),
  text: text.replace(/\r$/, ''),
});

/** `<path> NUL <number>:<text>`; undefined for what ripgrep says of a binary file. */
function nulSeparated(line: string): Line | undefined {
  const [, path, number, text] = /^([^\0]+)\0(\d+):(.*)$/s.exec(line) ?? [];
  return path === undefined || number === undefined ? undefined : lineOf(path, number, text ?? '');
}

/** `<path>:<number>:<text>`, where a path may have colons itself. */
function colonSeparated(line: string, known: ReadonlySet<string>): Line | undefined {
  for (const match of line.matchAll(/:(\d+):/g)) {
    const path = line.slice(0, match.index).replace(/^(\.\/)+/, '');
    if (known.has(path)) return lineOf(path, match[1] ?? '', line.slice(match.index + match[0].length));
  }
  return undefined;
}

/** In the order of paths: ripgrep searches several files at once and tells of them as they come. */
function shortened(lines: Line[], partial: boolean): string {
  lines.sort((a, b) => (a.path === b.path ? a.number - b.number : a.path < b.path ? -1 : 1));
  const said = capLines(lines.map((line) => `${line.path}:${line.number}:${line.text}`).join('\n'), WIDTH);
  if (said.length <= SHOWN && !partial) return said;
  const end = said.length <= SHOWN ? said.length : said.lastIndexOf('\n', SHOWN);
  return `${said.slice(0, end > 0 ? end : SHOWN)}\n[There are more matches: narrow the pattern or the path.]`;
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
