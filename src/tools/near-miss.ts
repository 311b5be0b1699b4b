/*
 * Why an edit finds no place, in words that let the model mend it: the lines of the file that come closest.
 */

/** Lines shown, and characters of each. */
const SHOWN = 12;
const WIDTH = 300;
/** Characters of a line that are compared: a minified file has lines of megabytes. */
const COMPARED = 2000;

/** `text` has no `\r\n` and does not contain `wanted`. */
export function nearMiss(text: string, wanted: string): string {
  const lines = text.split('\n');
  const firstLine = wanted.split('\n').map(squeezed).find(Boolean);
  const count = wanted.split('\n').length;
  if (firstLine === undefined) return 'old_string was not found: it is nothing but white space, and not this one.';
  const same = likeliest(lines, firstLine, wanted);
  if (same !== -1)
    return `old_string was not found. Its first line stands at line ${same + 1}, but spaces or the lines after it differ. The file has:\n${numbered(lines, same, count)}`;
  const near = nearest(lines, firstLine);
  if (near === -1) return 'old_string was not found, nor any line like it. Read the file again.';
  return `old_string was not found. The closest the file has is:\n${numbered(lines, near, count)}`;
}

const squeezed = (line: string): string => line.replaceAll(/\s+/g, ' ').trim();

/** Of the lines that are the wanted first one but for spaces, the one whose next lines fit best; -1 if there is none. */
function likeliest(lines: readonly string[], firstLine: string, wanted: string): number {
  const after = wanted.trim().split('\n').map(squeezed).slice(0, SHOWN);
  let best = -1;
  let bestScore = 0;
  for (const [i, line] of lines.entries()) {
    if (line.length > COMPARED || squeezed(line) !== firstLine) continue;
    const score = after.filter((one, k) => squeezed((lines[i + k] ?? '').slice(0, COMPARED)) === one).length;
    if (score > bestScore) {
      best = i;
      bestScore = score;
    }
  }
  return best;
}

function numbered(lines: readonly string[], from: number, count: number): string {
  const shown = lines.slice(from, from + Math.min(count, SHOWN));
  return shown.map((line, i) => `${from + i + 1}: ${line.slice(0, WIDTH)}`).join('\n');
}

/** The line that shares the most words with the wanted one; -1 if none shares half. */
function nearest(lines: readonly string[], wanted: string): number {
  const words = wordsOf(wanted);
  let best = -1;
  let bestScore = words.size / 2;
  for (const [i, line] of lines.entries()) {
    const own = wordsOf(line.slice(0, COMPARED));
    let score = 0;
    for (const word of words) if (own.has(word)) score++;
    if (score > bestScore || (score === bestScore && score > 0 && best === -1)) {
      best = i;
      bestScore = score;
    }
  }
  return best;
}

const wordsOf = (line: string): Set<string> => new Set(line.match(/[\p{L}\p{N}_]+/gu) ?? []);
