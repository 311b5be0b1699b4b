/** A text with every `\r\n` seen as `\n`, and the way back to positions in the text itself. */
export class LfView {
  readonly text: string;
  /** What most lines end in. */
  readonly ending: '\n' | '\r\n';
  /** Both kinds of line ending stand in it. */
  readonly mixed: boolean;
  /** Positions in `text` of line breaks that have a `\r` before them in the raw text, rising. */
  readonly #dropped: number[] = [];

  constructor(raw: string) {
    for (let at = raw.indexOf('\r\n'); at !== -1; at = raw.indexOf('\r\n', at + 2))
      this.#dropped.push(at - this.#dropped.length);
    this.text = toLf(raw);
    const breaks = occurrences(this.text, '\n').length;
    this.ending = this.#dropped.length * 2 > breaks ? '\r\n' : '\n';
    this.mixed = this.#dropped.length > 0 && this.#dropped.length < breaks;
  }

  /** A position between two characters; before a `\r\n` it is before both. */
  rawIndex(index: number): number {
    let low = 0;
    let high = this.#dropped.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#dropped[middle] ?? 0) < index) low = middle + 1;
      else high = middle;
    }
    return index + low;
  }
}

export const toLf = (text: string): string => text.replaceAll('\r\n', '\n');

/** Starts of all occurrences that don't overlap. */
export function occurrences(text: string, part: string): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) found.push(at);
  return found;
}

/** For rising positions the lines, counted from 1, on which they stand. */
export function linesOf(text: string, positions: readonly number[]): number[] {
  let line = 1;
  let next = text.indexOf('\n');
  return positions.map((position) => {
    for (; next !== -1 && next < position; next = text.indexOf('\n', next + 1)) line++;
    return line;
  });
}
