import type { Sandbox } from '../sandbox/sandbox.ts';
import { absolute, Refused } from './files.ts';
import { sizeWords } from './media.ts';
import { failed, ok } from './outcomes.ts';
import { assertSaved, assertUnchanged } from './precondition.ts';
import { recoverWrite, writeBytes } from './put-file.ts';
import { newFile, rewrite } from './rewrite.ts';
import { inputSchema, WriteInput } from './schemas.ts';
import { readStored, type StoredFile, sha256 } from './stored-file.ts';
import { oneLine, type Tool } from './tool.ts';
import type { ToolContext } from './tools.ts';

/** Bytes. What is larger is no text that anybody writes as a whole. */
const WRITE_CAP = 16 * 1024 * 1024;
export const write: Tool<typeof WriteInput> = {
  spec: {
    name: 'write',
    description:
      'Writes a text file of the workspace, making its folders as needed. What the file held before is replaced, its encoding and line endings are kept where the new text allows; a new file is UTF-8. The change appears whole or not at all.',
    input_schema: inputSchema(WriteInput),
    idempotent: false,
    sandboxed: true,
    summary: (input) => `${oneLine(input.file_path)} (${Buffer.byteLength(String(input.content ?? ''))} bytes)`,
  },
  schema: WriteInput,
  changes: true,

  async execute(input, context) {
    const { file_path: path, content } = input;
    if (!content.isWellFormed())
      return failed('content has half of a character (a lone surrogate), which no file can hold.');
    const sandbox = await context.sandbox();
    const old = await existing(sandbox, context, path);
    if (old?.more)
      return failed(
        `${path} has more than ${sizeWords(WRITE_CAP)}; write replaces smaller files. Remove it with bash first.`,
      );
    const realPath = old?.realPath ?? absolute(sandbox.workspace, path).slice(sandbox.workspace.length + 1);
    if (old) await assertUnchanged(context, path, old);
    else await assertSaved(context, path, realPath);
    const hint = context.desk.encoding(realPath);
    const { bytes, notes } = old ? rewrite(old.bytes, content, hint) : newFile(content, hint);
    const written = await writeBytes(sandbox, context, path, bytes, old && sha256(old.bytes));
    const how = [written.created ? 'a new file' : 'replaced', ...notes, ...written.notes].join('; ');
    return ok(`Wrote ${bytes.length} bytes to ${path} (${how}).`, {
      sandbox: sandbox.id,
      realPath: written.realPath,
      fileSha256: written.fileSha256,
    });
  },

  recover: (input, context) => recoverWrite(input.file_path, context, 'The file was written'),
};

/** What is there now, or undefined if nothing is. */
async function existing(sandbox: Sandbox, context: ToolContext, path: string): Promise<StoredFile | undefined> {
  try {
    return await readStored(sandbox, context, path, WRITE_CAP);
  } catch (error) {
    // A link that leads nowhere is told by the write itself.
    if (error instanceof Refused && error.reason === 'missing') return undefined;
    throw error;
  }
}
