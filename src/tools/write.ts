import { randomUUID } from 'node:crypto';
import type { RunResult, Sandbox } from '../sandbox/sandbox.ts';
import { WRITE } from './file-scripts.ts';
import { absolute, ask, Refused, readAnswer } from './files.ts';
import { sizeWords } from './media.ts';
import { failed, ok } from './outcomes.ts';
import { assertSaved, assertUnchanged } from './precondition.ts';
import { newFile, rewrite } from './rewrite.ts';
import { inputSchema, WriteInput } from './schemas.ts';
import { readStored, type StoredFile, sha256 } from './stored-file.ts';
import { oneLine, type Tool } from './tool.ts';
import type { Outcome, Recovery, ToolContext } from './tools.ts';

/** Bytes. What is larger is no text that anybody writes as a whole. */
const WRITE_CAP = 16 * 1024 * 1024;
const ANSWER_BYTES = 64 * 1024;
/** `created` or `replaced`, how many names the old file had, and the path. */
const ANSWER_FIELDS = 3;

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
      fileSha256: sha256(bytes),
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

export interface Written {
  created: boolean;
  realPath: string;
  /** What a person or a model should know of it, in words. */
  notes: string[];
}

/** Puts bytes in a file's place if it still has the given SHA-256; undefined: if there still is no file. Throws `Refused`. */
export async function writeBytes(
  sandbox: Sandbox,
  context: ToolContext,
  path: string,
  bytes: Uint8Array,
  expected: string | undefined,
): Promise<Written> {
  const answer = await ask(sandbox, context, WRITE, {
    path,
    args: [String(bytes.length), expected ?? 'new', randomUUID()],
    fields: ANSWER_FIELDS,
    stdin: bytes,
    maxBytes: ANSWER_BYTES,
    own: true,
  });
  const [did = '', names = '1', realPath = path] = answer.fields;
  const notes = Number(names) > 1 ? ['its other names (hard links) keep the old content'] : [];
  return { created: did === 'created', realPath, notes };
}

/** What became of a write whose end nobody saw. `did` says in words what it was. */
export async function recoverWrite(path: string, context: ToolContext, did: string): Promise<Recovery> {
  const sandbox = await context.sandbox();
  const found = await sandbox.lookup(context.executionId);
  if (found.found === 'absent') return { found: 'absent' };
  const finish = (result: RunResult): Outcome => {
    try {
      const answer = readAnswer(result, path, ANSWER_FIELDS, sandbox.workspace);
      return ok(`${did}: ${path}.`, { sandbox: sandbox.id, realPath: answer.fields[ANSWER_FIELDS - 1] ?? path });
    } catch (error) {
      if (error instanceof Refused) return { ...error.outcome, sandbox: sandbox.id };
      throw error;
    }
  };
  const result = found.found === 'finished' ? Promise.resolve(found.result) : found.wait(context.signal);
  return { found: found.found, outcome: result.then(finish) };
}
