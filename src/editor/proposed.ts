import type { FileCall } from './file-call.ts';

/** What a file would hold after a call, or why the call would fail. */
export type Proposed = { text: string } | { problem: string };

/** `current` is the file's text now, null if there is none. New lines of an edit take the file's own line ending. */
export function proposed(change: FileCall, current: string | null): Proposed {
  if (change.tool === 'write') return { text: change.content };
  if (current === null) return { problem: `${change.path} does not exist, so this edit would fail.` };
  const crlf = current.includes('\r\n');
  const lines = crlf ? current.replaceAll('\r\n', '\n') : current;
  const oldText = change.oldText.replaceAll('\r\n', '\n');
  const found = oldText === '' ? 0 : lines.split(oldText).length - 1;
  if (found === 0)
    return { problem: `The text to replace is not in ${change.path} as it is now, so this edit would fail.` };
  if (found > 1 && !change.all) {
    return { problem: `The text to replace is ${found} times in ${change.path}, so this edit would fail.` };
  }
  const newText = change.newText.replaceAll('\r\n', '\n');
  const text = lines.split(oldText).join(newText);
  return { text: crlf ? text.replaceAll('\n', '\r\n') : text };
}
