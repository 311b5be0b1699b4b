import type { RunResult, Sandbox } from '../sandbox/sandbox.ts';
import { WRITE } from './file-scripts.ts';
import { type Answer, ask, Refused, readAnswer } from './files.ts';
import { ok } from './outcomes.ts';
import { inputSchema, WriteInput } from './schemas.ts';
import { oneLine, type Tool } from './tool.ts';
import type { Outcome, Recovery, ToolContext } from './tools.ts';

const ANSWER_BYTES = 64 * 1024;
/** `created` or `replaced`, and the path. */
const ANSWER_FIELDS = 2;

export const write: Tool<typeof WriteInput> = {
  spec: {
    name: 'write',
    description:
      'Writes a text file of the workspace (UTF-8), making its folders as needed. What the file held before is replaced; the change appears whole or not at all.',
    input_schema: inputSchema(WriteInput),
    idempotent: false,
    sandboxed: true,
    summary: (input) => `${oneLine(input.file_path)} (${Buffer.byteLength(String(input.content ?? ''))} bytes)`,
  },
  schema: WriteInput,
  changes: true,

  async execute(input, context) {
    const sandbox = await context.sandbox();
    const bytes = new TextEncoder().encode(input.content);
    const answer = await writeBytes(sandbox, context, input.file_path, bytes, undefined);
    const [did = '', realPath = input.file_path] = answer.fields;
    return ok(`Wrote ${bytes.length} bytes to ${input.file_path} (${did === 'created' ? 'a new file' : 'replaced'}).`, {
      sandbox: sandbox.id,
      realPath,
    });
  },

  recover: (input, context) => recoverWrite(input.file_path, context, 'The file was written'),
};

/** Puts bytes in a file's place, if it still has the given SHA-256. Answer fields: created or replaced, real path. */
export async function writeBytes(
  sandbox: Sandbox,
  context: ToolContext,
  path: string,
  bytes: Uint8Array,
  sha256: string | undefined,
): Promise<Answer> {
  return await ask(sandbox, context, WRITE, {
    path,
    args: [String(bytes.length), sha256 ?? '-'],
    fields: ANSWER_FIELDS,
    stdin: bytes,
    maxBytes: ANSWER_BYTES,
  });
}

/** What became of a write whose end nobody saw. `did` says in words what it was. */
export async function recoverWrite(path: string, context: ToolContext, did: string): Promise<Recovery> {
  const sandbox = await context.sandbox();
  const found = await sandbox.lookup(context.executionId);
  if (found.found === 'absent') return { found: 'absent' };
  const finish = (result: RunResult): Outcome => {
    try {
      const answer = readAnswer(result, path, ANSWER_FIELDS, sandbox.workspace);
      return ok(`${did}: ${path}.`, { sandbox: sandbox.id, realPath: answer.fields[1] ?? path });
    } catch (error) {
      if (error instanceof Refused) return { ...error.outcome, sandbox: sandbox.id };
      throw error;
    }
  };
  const result = found.found === 'finished' ? Promise.resolve(found.result) : found.wait(context.signal);
  return { found: found.found, outcome: result.then(finish) };
}
