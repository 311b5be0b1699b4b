import { createHash } from 'node:crypto';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { READ } from './file-scripts.ts';
import { ask } from './files.ts';
import type { ToolContext } from './tools.ts';

/** A file as it is in the sandbox. */
export interface StoredFile {
  /** Its beginning; all of it unless `more`. */
  bytes: Uint8Array;
  /** It is larger than what was asked for. */
  more: boolean;
  /** Relative to the workspace, links resolved. */
  realPath: string;
}

/** Reads at most `cap` bytes of a file. Throws `Refused`, and what `sandbox.run` throws. */
export async function readStored(
  sandbox: Sandbox,
  context: ToolContext,
  path: string,
  cap: number,
): Promise<StoredFile> {
  const answer = await ask(sandbox, context, READ, {
    path,
    // One byte more tells whether there is more.
    args: [String(cap + 1)],
    fields: 1,
    maxBytes: (cap + 1) * 2,
  });
  const more = answer.stdout.length > cap;
  return { bytes: answer.stdout.subarray(0, cap), more, realPath: answer.fields[0] ?? path };
}

/** SHA-256, hex. */
export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
