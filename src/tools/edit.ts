import { readText, type TextFile } from './detect.ts';
import { Refused } from './files.ts';
import { BINARY, knownMedia, sizeWords } from './media.ts';
import { failed, ok } from './outcomes.ts';
import { assertUnchanged } from './precondition.ts';
import { recoverWrite, writeBytes } from './put-file.ts';
import { EditInput, inputSchema } from './schemas.ts';
import { EditProblem, type Spliced, splice } from './splice.ts';
import { readStored, sha256 } from './stored-file.ts';
import { oneLine, type Tool } from './tool.ts';

/** Bytes. A file larger than this is no source text; changing it is a program's work. */
const EDIT_CAP = 4 * 1024 * 1024;

export const edit: Tool<typeof EditInput> = {
  spec: {
    name: 'edit',
    description:
      'Replaces text in a file of the workspace. old_string must be exactly what is in the file and occur once, unless replace_all is set. Everything else in the file stays byte for byte as it is, encoding and line endings included.',
    input_schema: inputSchema(EditInput),
    idempotent: false,
    sandboxed: true,
    summary: (input) => oneLine(input.file_path),
  },
  schema: EditInput,
  changes: true,

  async execute(input, context) {
    const sandbox = await context.sandbox();
    const path = input.file_path;
    const before = await readStored(sandbox, context, path, EDIT_CAP);
    if (before.more)
      return failed(`${path} has more than ${sizeWords(EDIT_CAP)}, which is as much as edit changes. Use bash.`);
    await assertUnchanged(context, path, before);
    const file = knownMedia(before.bytes) ? null : readText(before.bytes, context.desk.encoding(before.realPath));
    if (!file) {
      const { name } = knownMedia(before.bytes) ?? BINARY;
      return failed(`${path} is ${name} of ${sizeWords(before.bytes.length)}, not text, so it was not changed.`);
    }
    const { bytes, lines } = attempt(before.bytes, file, input);
    const written = await writeBytes(sandbox, context, path, bytes, sha256(before.bytes));
    return ok(editedWords(path, lines, written.notes), {
      sandbox: sandbox.id,
      realPath: written.realPath,
      fileSha256: written.fileSha256,
    });
  },

  recover: (input, context) => recoverWrite(input.file_path, context, 'The edit was made'),
};

function attempt(raw: Uint8Array, file: TextFile, input: EditInput): Spliced {
  const { old_string: oldString, new_string: newString, replace_all: replaceAll = false } = input;
  try {
    return splice(raw, file, { oldString, newString, replaceAll });
  } catch (error) {
    if (error instanceof EditProblem) throw new Refused(failed(`${input.file_path} was not changed: ${error.message}`));
    throw error;
  }
}

function editedWords(path: string, lines: readonly number[], notes: readonly string[]): string {
  const where =
    lines.length === 1 ? `line ${lines[0]}` : `lines ${lines.slice(0, 10).join(', ')}${lines.length > 10 ? ' …' : ''}`;
  const what = lines.length === 1 ? 'one occurrence' : `${lines.length} occurrences`;
  return `Replaced ${what} in ${path} (${[where, ...notes].join('; ')}).`;
}
