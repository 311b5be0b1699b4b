import { readText } from '../tools/detect.ts';
import { newFile, rewrite } from '../tools/rewrite.ts';
import { EditProblem, splice } from '../tools/splice.ts';
import type { FileCall } from './file-call.ts';

/** What a file would hold after a call, or why the call would fail. */
export type Proposed = { text: string } | { problem: string };

/**
 * What the tools themselves would make of a file, encoding and line endings included. `current` is the file now, null
 * if there is none; `hint` what the editor takes it for, as in `files.encoding`.
 */
export function proposed(change: FileCall, current: Uint8Array | null, hint?: string): Proposed {
  if (change.tool === 'write') {
    const { bytes } = current ? rewrite(current, change.content, hint) : newFile(change.content, hint);
    return { text: readText(bytes, hint)?.text ?? change.content };
  }
  if (current === null) return { problem: `${change.path} does not exist, so this edit would fail.` };
  const file = readText(current, hint);
  if (!file) return { problem: `${change.path} is binary, so this edit would fail.` };
  try {
    const edit = { oldString: change.oldText, newString: change.newText, replaceAll: change.all };
    const { bytes } = splice(current, file, edit);
    return { text: file.encoding.decode(bytes.subarray(file.bom.length)) ?? '' };
  } catch (error) {
    if (error instanceof EditProblem) return { problem: `The edit of ${change.path} would fail: ${error.message}` };
    throw error;
  }
}
