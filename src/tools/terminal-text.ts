import { stripVTControlCharacters } from 'node:util';

const BACKSPACE = '\b';
/** What makes the text on a terminal another than what was written: most output has none of it. */
const CONTROLS = ['\r', BACKSPACE, '\u001b', '\u009b'];

/**
 * What a person would see after a program wrote this to a terminal: colours and cursor moves gone, a line that was
 * redrawn with `\r` (a progress bar) in its last form only, backspaces applied. `\r\n` counts as a line break.
 */
export function terminalText(raw: string): string {
  if (!CONTROLS.some((control) => raw.includes(control))) return raw;
  return stripVTControlCharacters(raw)
    .replaceAll(/\r+\n/g, '\n')
    .split('\n')
    .map((line) => (line.includes('\r') ? lastRedraw(line) : line))
    .map((line) => (line.includes(BACKSPACE) ? applyBackspaces(line) : line))
    .join('\n');
}

/** Each `\r` goes back to the start of the line; what follows overwrites as far as it reaches. */
function lastRedraw(line: string): string {
  let shown = '';
  for (const part of line.split('\r')) shown = part + shown.slice(part.length);
  return shown.trimEnd();
}

function applyBackspaces(line: string): string {
  const kept: string[] = [];
  for (const character of line) {
    if (character === BACKSPACE) kept.pop();
    else kept.push(character);
  }
  return kept.join('');
}
