import { randomUUID } from 'node:crypto';
import type { RunResult, Sandbox } from '../sandbox/sandbox.ts';
import { WRITE } from './file-scripts.ts';
import { ask, Refused, readAnswer } from './files.ts';
import { ok } from './outcomes.ts';
import { sha256 } from './stored-file.ts';
import type { Outcome, Recovery, ToolContext } from './tools.ts';

const ANSWER_BYTES = 64 * 1024;
/** `created` or `replaced`, how many names the old file had, the new content's SHA-256, and the path. */
const ANSWER_FIELDS = 4;

export interface Written {
  created: boolean;
  realPath: string;
  fileSha256: string;
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
    args: [String(bytes.length), expected ?? 'new', randomUUID(), sha256(bytes)],
    fields: ANSWER_FIELDS,
    stdin: bytes,
    maxBytes: ANSWER_BYTES,
    own: true,
  });
  const [did = '', names = '1', fileSha256 = '', realPath = path] = answer.fields;
  const notes = Number(names) > 1 ? ['its other names (hard links) keep the old content'] : [];
  return { created: did === 'created', realPath, fileSha256, notes };
}

/** What became of a write whose end nobody saw. `did` says in words what it was. */
export async function recoverWrite(path: string, context: ToolContext, did: string): Promise<Recovery> {
  const sandbox = await context.sandbox();
  const found = await sandbox.lookup(context.executionId);
  if (found.found === 'absent') return { found: 'absent' };
  const finish = (result: RunResult): Outcome => {
    try {
      const answer = readAnswer(result, path, ANSWER_FIELDS, sandbox.workspace);
      const [, , fileSha256 = '', realPath = path] = answer.fields;
      return ok(`${did}: ${path}.`, { sandbox: sandbox.id, realPath, fileSha256 });
    } catch (error) {
      if (error instanceof Refused) return { ...error.outcome, sandbox: sandbox.id };
      throw error;
    }
  };
  const result = found.found === 'finished' ? Promise.resolve(found.result) : found.wait(context.signal);
  return { found: found.found, outcome: result.then(finish) };
}
