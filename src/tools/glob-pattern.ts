/**
 * A doublestar glob as a regular expression over a relative path with `/`: `*` and `?` stay within a name, `**` spans
 * folders (none too), `[abc]`, `[!abc]` and `{a,b}` as in a shell. Names that begin with a dot match like others.
 * Throws `SyntaxError` for a bracket or brace that is not closed.
 */
export function globPattern(glob: string): RegExp {
  const pattern = glob.replace(/^(\.\/)+/, '');
  let source = '';
  let depth = 0;
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern[i] ?? '';
    if (character === '*') {
      const stars = /^\*+/.exec(pattern.slice(i))?.[0].length ?? 1;
      const wholeName = (i === 0 || pattern[i - 1] === '/') && [undefined, '/'].includes(pattern[i + stars]);
      if (stars > 1 && wholeName && pattern[i + stars] === '/') {
        source += '(?:[^/]+/)*';
        i += stars;
      } else {
        source += stars > 1 && wholeName ? '.*' : '[^/]*';
        i += stars - 1;
      }
    } else if (character === '?') source += '[^/]';
    else if (character === '[') {
      const close = pattern.indexOf(']', i + 2);
      if (close === -1) throw new SyntaxError('a "[" is not closed');
      const inner = pattern
        .slice(i + 1, close)
        .replaceAll('\\', '\\\\')
        .replaceAll('[', '\\[');
      source += `(?!/)[${inner.startsWith('!') || inner.startsWith('^') ? `^${inner.slice(1)}` : inner}]`;
      i = close;
    } else if (character === '{') {
      source += '(?:';
      depth++;
    } else if (character === '}' && depth > 0) {
      source += ')';
      depth--;
    } else if (character === ',' && depth > 0) source += '|';
    else if (character === '\\' && i + 1 < pattern.length) source += escaped(pattern[++i] ?? '');
    else source += escaped(character);
  }
  if (depth > 0) throw new SyntaxError('a "{" is not closed');
  return new RegExp(`^${source}$`, 'su');
}

const escaped = (character: string): string => character.replace(/[.*+?^${}()|[\]\\/]/, '\\$&');
