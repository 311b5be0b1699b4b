import { createHash } from 'node:crypto';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { READ } from './file-scripts.ts';
import { absolute, ask } from './files.ts';
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
  const peeked = await sandbox.peek?.(absolute(sandbox.workspace, path), cap, context.signal);
  // Where it is not that simple, and where it must not be read, the script says why.
  if (peeked && !inDrover(peeked.realPath)) return peeked;
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

/** The folder in which the sessions themselves are kept. */
const inDrover = (path: string): boolean => path.toLowerCase().split('/').includes('.drover');

/** SHA-256, hex. */
export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
