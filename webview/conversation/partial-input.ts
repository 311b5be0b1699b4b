/** Fields that say most of what a call will do, in order of preference. */
const TELLING = ['command', 'file_path', 'pattern', 'title', 'task'];
/** Fields whose text is worth watching while it is written. */
const WATCHED = ['command', 'content', 'new_string', 'task'];

/** The value of a string field in JSON that may stop in the middle of it; undefined if it has not begun. */
function partialField(json: string, name: string): string | undefined {
  const match = new RegExp(`"${name}"\\s*:\\s*"((?:[^"\\\\]|\\\\.)*)`, 's').exec(json);
  if (match?.[1] === undefined) return undefined;
  const text = match[1].replace(/\\u[0-9a-fA-F]{0,3}$/, '');
  try {
    return JSON.parse(`"${text}"`);
  } catch {
    return text;
  }
}

/** What can be told of a tool's input while it is still being written. */
export function partialInput(json: string): { summary: string; whole: string } {
  const first = (names: readonly string[]) => {
    for (const name of names) {
      const value = partialField(json, name);
      if (value) return value;
    }
    return '';
  };
  const summary = first(TELLING).split('\n')[0] ?? '';
  const whole = first(WATCHED);
  return { summary, whole: whole === summary ? '' : whole.slice(-4000) };
}
