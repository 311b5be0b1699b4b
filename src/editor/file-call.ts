import type { ToolCall } from '../session/state.ts';
import { hostPath } from './host-path.ts';

/** A call that changes one file. */
export type FileCall =
  | { tool: 'write'; path: string; content: string }
  | { tool: 'edit'; path: string; oldText: string; newText: string; all: boolean };

/** What a call would do to a file, or undefined if it is not of that kind or its input is not whole. */
export function fileCall(call: Pick<ToolCall, 'name' | 'input'>): FileCall | undefined {
  const { file_path: path, content, old_string: oldText, new_string: newText, replace_all: all } = call.input;
  if (typeof path !== 'string') return undefined;
  if (call.name === 'write' && typeof content === 'string') return { tool: 'write', path, content };
  if (call.name === 'edit' && typeof oldText === 'string' && typeof newText === 'string') {
    return { tool: 'edit', path, oldText, newText, all: all === true };
  }
  return undefined;
}

/** The file on this machine that a call would change. */
export function changedFile(folder: string, call: Pick<ToolCall, 'name' | 'input'>): string | undefined {
  const change = fileCall(call);
  return change && hostPath(folder, change.path);
}
