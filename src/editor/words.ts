/**
 * A command line in words, as a shell would part it: quotes keep words together, a backslash keeps the next character.
 * Nothing else is read: no variables, no patterns. Undefined if a quote is not closed.
 */
export function splitWords(line: string): string[] | undefined {
  const words: string[] = [];
  let rest = line.trimStart();
  while (rest !== '') {
    const word = /^(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+/s.exec(rest)?.[0];
    if (word === undefined) return undefined;
    words.push(
      word.replaceAll(
        /\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)"/gs,
        (_, one?: string, raw?: string, cooked?: string) =>
          one ?? raw ?? (cooked ?? '').replaceAll(/\\(["\\$`])/g, '$1'),
      ),
    );
    const after = rest.slice(word.length);
    if (after !== '' && !/^\s/.test(after)) return undefined;
    rest = after.trimStart();
  }
  return words;
}
