/*
 * Terminal output as styled text. Lines are folded as a terminal would show them: a carriage return goes back to the
 * start of the line and what follows overwrites it. Colours become the names of VS Code's terminal theme colours.
 */

export interface Style {
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  strike: boolean;
  inverse: boolean;
  /** Index 0–15 into the terminal's theme colours, or null for the default. */
  color: number | null;
  background: number | null;
}

export interface Run {
  text: string;
  style: Style;
}

const PLAIN: Style = {
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  strike: false,
  inverse: false,
  color: null,
  background: null,
};

/** The standard 16 colours as red, green, blue; used only to find the theme colour nearest to a fixed one. */
const BASE: readonly (readonly [number, number, number])[] = [
  [0, 0, 0],
  [205, 49, 49],
  [13, 188, 121],
  [229, 229, 16],
  [36, 114, 200],
  [188, 63, 188],
  [17, 168, 205],
  [229, 229, 229],
  [102, 102, 102],
  [241, 76, 76],
  [35, 209, 139],
  [245, 245, 67],
  [59, 142, 234],
  [214, 112, 214],
  [41, 184, 219],
  [255, 255, 255],
];

/** A fixed colour could be unreadable on the theme's background, so it becomes the nearest of the theme's own. */
function nearest(red: number, green: number, blue: number): number {
  let best = 0;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const [index, [r, g, b]] of BASE.entries()) {
    const distance = (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2;
    if (distance < bestDistance) {
      best = index;
      bestDistance = distance;
    }
  }
  return best;
}

function fromPalette(index: number): number {
  if (index < 16) return index;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return nearest(grey, grey, grey);
  }
  const level = (n: number) => (n === 0 ? 0 : 55 + n * 40);
  const cube = index - 16;
  return nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

/** Reads what follows a 38 or 48: `5;n` or `2;r;g;b`. Returns the colour and how many codes it took. */
function extended(codes: readonly number[], at: number): { color: number | null; used: number } {
  if (codes[at] === 5) return { color: fromPalette((codes[at + 1] ?? 0) & 255), used: 2 };
  if (codes[at] === 2) return { color: nearest(codes[at + 1] ?? 0, codes[at + 2] ?? 0, codes[at + 3] ?? 0), used: 4 };
  return { color: null, used: 0 };
}

function applyCodes(style: Style, parameters: string): Style {
  const codes = parameters.split(/[;:]/).map((part) => (part === '' ? 0 : Number(part)));
  let next = { ...style };
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] ?? 0;
    if (code === 0) next = { ...PLAIN };
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 9) next.strike = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if (code === 27) next.inverse = false;
    else if (code === 29) next.strike = false;
    else if (code >= 30 && code <= 37) next.color = code - 30;
    else if (code === 39) next.color = null;
    else if (code >= 40 && code <= 47) next.background = code - 40;
    else if (code === 49) next.background = null;
    else if (code >= 90 && code <= 97) next.color = code - 82;
    else if (code >= 100 && code <= 107) next.background = code - 92;
    else if (code === 38 || code === 48) {
      const { color, used } = extended(codes, at + 1);
      if (code === 38) next.color = color;
      else next.background = color;
      at += used;
    }
  }
  return next;
}

const TAB = 9;
const DELETE = 127;

/** Without the characters that have no picture and must not reach the page. */
function printable(text: string): string {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if ((code < 32 && code !== TAB) || code === DELETE) return [...text].filter(hasPicture).join('');
  }
  return text;
}

const hasPicture = (character: string): boolean => {
  const code = character.charCodeAt(0);
  return (code >= 32 && code !== DELETE) || code === TAB;
};

/** Columns an escape sequence may reach past the end of a line, so that none can ask for a gigabyte of spaces. */
const FURTHEST = 1000;

/**
 * One line while it is written. Most lines are only ever appended to; cells, a character and its style each, are made
 * once something overwrites what is there.
 */
class Line {
  #runs: Run[] = [];
  #length = 0;
  #cells: { text: string; style: Style }[] | null = null;
  #cursor = 0;

  write(text: string, style: Style): void {
    const shown = printable(text);
    if (this.#cells === null && this.#cursor === this.#length) {
      append(this.#runs, shown, style);
      this.#length += shown.length;
      this.#cursor = this.#length;
      return;
    }
    const cells = this.#asCells();
    for (const character of shown) {
      while (cells.length < this.#cursor) cells.push({ text: ' ', style: PLAIN });
      cells[this.#cursor++] = { text: character, style };
    }
  }

  moveTo(column: number): void {
    const length = this.#cells?.length ?? this.#length;
    this.#cursor = Math.min(Math.max(0, column), FURTHEST + length);
  }

  moveBy(columns: number): void {
    this.moveTo(this.#cursor + columns);
  }

  /** 0: from the cursor on. 1: up to the cursor. 2: all of it. */
  erase(mode: number): void {
    const cells = this.#asCells();
    if (mode === 1) cells.fill({ text: ' ', style: PLAIN }, 0, this.#cursor + 1);
    else cells.length = mode === 2 ? 0 : Math.min(this.#cursor, cells.length);
  }

  runs(): Run[] {
    if (this.#cells === null) return this.#runs;
    const runs: Run[] = [];
    for (const { text, style } of this.#cells) append(runs, text, style);
    return runs;
  }

  #asCells(): { text: string; style: Style }[] {
    this.#cells ??= this.#runs.flatMap(({ text, style }) => [...text].map((character) => ({ text: character, style })));
    return this.#cells;
  }
}

/** Adds text to the last run if it has the same style, else as a new one. */
function append(runs: Run[], text: string, style: Style): void {
  const last = runs.at(-1);
  if (last && last.style === style) last.text += text;
  else if (text !== '') runs.push({ text, style });
}

// Built from parts because an escape character is invisible in source.
const ESC = String.fromCharCode(27);
const BEL = String.fromCharCode(7);
const CONTROL_SEQUENCE = `${ESC}\\[([0-9;:?<=>]*)[ -/]*([@-~])`;
/** Titles, links and the like, up to their terminator. */
const COMMAND = `${ESC}[\\]PX^_][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\)?`;
const OTHER_ESCAPE = `${ESC}(?:[ -/]*[0-~])?`;
const TOKEN = new RegExp(`${CONTROL_SEQUENCE}|${COMMAND}|${OTHER_ESCAPE}|[\\r\\n\\b]|[^${ESC}\\r\\n\\b]+`, 'g');

function control(line: Line, style: Style, parameters: string, final: string): Style {
  const n = Number(parameters) || 0;
  if (final === 'm') return applyCodes(style, parameters);
  if (final === 'K') line.erase(n);
  else if (final === 'G') line.moveTo(n - 1);
  else if (final === 'C') line.moveBy(n || 1);
  else if (final === 'D') line.moveBy(-(n || 1));
  return style;
}

/** Parses terminal output into lines of styled runs. Sequences that are no colour and move no cursor are left out. */
export function parseAnsi(text: string): Run[][] {
  const lines: Run[][] = [];
  let line = new Line();
  let style = PLAIN;
  for (const match of text.matchAll(TOKEN)) {
    const token = match[0];
    if (token === '\n') {
      lines.push(line.runs());
      line = new Line();
    } else if (token === '\r') line.moveTo(0);
    else if (token === '\b') line.moveBy(-1);
    else if (match[2] !== undefined) style = control(line, style, match[1] ?? '', match[2]);
    else if (!token.startsWith(ESC)) line.write(token, style);
  }
  lines.push(line.runs());
  return lines;
}

/** The same output without any styling, for copying. */
export const stripAnsi = (text: string): string =>
  parseAnsi(text)
    .map((runs) => runs.map((run) => run.text).join(''))
    .join('\n');

/** The lines as one sequence of runs with line breaks in them: long plain output is then a single piece of text. */
export function joinLines(lines: readonly (readonly Run[])[]): Run[] {
  const joined: Run[] = [];
  for (const [i, runs] of lines.entries()) {
    if (i > 0) append(joined, '\n', joined.at(-1)?.style ?? PLAIN);
    for (const run of runs) append(joined, run.text, run.style);
  }
  return joined;
}

const COLOR = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

/** Class names of a run; styles/terminal.css gives them the theme's colours. */
export function styleClasses(style: Style): string {
  const name = (index: number) => `${index > 7 ? 'bright-' : ''}${COLOR[index % 8]}`;
  const classes: string[] = [];
  const color = style.inverse ? style.background : style.color;
  const background = style.inverse ? style.color : style.background;
  if (style.inverse) classes.push('inverse');
  if (color !== null) classes.push(`fg-${name(color)}`);
  if (background !== null) classes.push(`bg-${name(background)}`);
  for (const flag of ['bold', 'dim', 'italic', 'underline', 'strike'] as const) if (style[flag]) classes.push(flag);
  return classes.join(' ');
}
