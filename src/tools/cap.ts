/**
 * Keeps the beginning and the end of a long text, cut at line breaks where that loses little, and says between them
 * how much is missing. `limit` is in characters; 0 removed means nothing was cut.
 */
export function capText(text: string, limit: number): { text: string; removed: number } {
  if (text.length <= limit) return { text, removed: 0 };
  // The end of a command's output says how it went, so it gets the larger part.
  const head = atLineEnd(text.slice(0, wholeEnd(text, Math.floor(limit * 0.4))));
  const tail = atLineStart(text.slice(wholeStart(text, text.length - Math.floor(limit * 0.6))));
  const removed = text.length - head.length - tail.length;
  return { text: `${head}\n[… ${removed} characters left out …]\n${tail}`, removed };
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
const wholeStart = (text: string, at: number): number => (isLow(text.charCodeAt(at)) ? at + 1 : at);

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
