/**
 * Keeps the beginning and the end of a long text, cut at line breaks where that loses little, and says between them
 * how much is missing. `limit` and `removed` are in bytes of UTF-8; 0 removed means nothing was cut.
 */
export function capText(text: string, limit: number): { text: string; removed: number } {
  // No character takes more than three bytes a code unit.
  if (text.length * 3 <= limit) return { text, removed: 0 };
  const bytes = Buffer.from(text);
  if (bytes.length <= limit) return { text, removed: 0 };
  // The end of a command's output says how it went, so it gets the larger part.
  const head = atLineEnd(bytes.subarray(0, characterStart(bytes, Math.floor(limit * 0.4))).toString());
  const tail = atLineStart(bytes.subarray(characterStart(bytes, bytes.length - Math.floor(limit * 0.6))).toString());
  const removed = bytes.length - Buffer.byteLength(head) - Buffer.byteLength(tail);
  return { text: `${head}\n[… ${removed} bytes left out …]\n${tail}`, removed };
}

/** The index of the first byte of the character that `at` is in. */
function characterStart(bytes: Uint8Array, at: number): number {
  let start = at;
  while (start > 0 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--;
  return start;
}

const NEAR = 500;

function atLineEnd(text: string): string {
  const at = text.lastIndexOf('\n');
  return at !== -1 && text.length - at < NEAR ? text.slice(0, at) : text;
}

function atLineStart(text: string): string {
  const at = text.indexOf('\n');
  return at !== -1 && at < NEAR ? text.slice(at + 1) : text;
}

const isLow = (code: number) => code >= 0xdc00 && code <= 0xdfff;

/** An index at or before `at` that does not split a surrogate pair. */
const wholeEnd = (text: string, at: number): number => (isLow(text.charCodeAt(at)) ? at - 1 : at);

/** Cuts each line to `width` characters and says so at its end. */
export function capLines(text: string, width: number): string {
  return text
    .split('\n')
    .map((line) =>
      line.length > width
        ? `${line.slice(0, wholeEnd(line, width))} [… ${line.length - width} more characters in this line]`
        : line,
    )
    .join('\n');
}
