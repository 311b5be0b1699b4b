import { createHash } from 'node:crypto';
import { Refused } from './files.ts';
import { binaryMedia, sizeWords } from './media.ts';
import { failed, ok } from './outcomes.ts';
import { readBytes } from './read.ts';
import { EditInput, inputSchema } from './schemas.ts';
import { EditProblem, type Spliced, splice } from './splice.ts';
import { oneLine, type Tool } from './tool.ts';
import { recoverWrite, writeBytes } from './write.ts';

/** Bytes. A file larger than this is no source text; changing it is a program's work. */
const EDIT_CAP = 4 * 1024 * 1024;

export const edit: Tool<typeof EditInput> = {
  spec: {
    name: 'edit',
    description:
      'Replaces text in a file of the workspace. old_string must be exactly what is in the file and occur once, unless replace_all is set. Everything else in the file stays byte for byte as it is, line endings included.',
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
    const before = await readBytes(sandbox, context, path, { first: 1, lines: 0, cap: EDIT_CAP, own: false });
    const size = Number(before.fields[0]);
    if (size > EDIT_CAP)
      throw new Refused(
        failed(`${path} has ${sizeWords(size)}; edit changes files up to ${sizeWords(EDIT_CAP)}. Use bash.`),
      );
    const media = binaryMedia(before.stdout);
    if (media)
      throw new Refused(failed(`${path} is ${media.name} of ${sizeWords(size)}, not text, so it was not changed.`));
    const spliced = attempt(before.stdout, input, path);
    const sha256 = createHash('sha256').update(before.stdout).digest('hex');
    const after = await writeBytes(sandbox, context, path, spliced.bytes, sha256);
    const { lines } = spliced;
    const where =
      lines.length === 1
        ? `line ${lines[0]}`
        : `lines ${lines.slice(0, 10).join(', ')}${lines.length > 10 ? ' …' : ''}`;
    return ok(
      `Replaced ${lines.length === 1 ? 'one occurrence' : `${lines.length} occurrences`} in ${path} (${where}).`,
      {
        sandbox: sandbox.id,
        realPath: after.fields[1] ?? path,
      },
    );
  },

  recover: (input, context) => recoverWrite(input.file_path, context, 'The edit was made'),
};

function attempt(raw: Uint8Array, input: EditInput, path: string): Spliced {
  try {
    return splice(raw, {
      oldString: input.old_string,
      newString: input.new_string,
      replaceAll: input.replace_all ?? false,
    });
  } catch (error) {
    if (error instanceof EditProblem) throw new Refused(failed(`${path} was not changed: ${error.message}`));
    throw error;
  }
}
