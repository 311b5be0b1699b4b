import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { joinLines, parseAnsi, type Run, styleClasses } from '../ansi.ts';
import type { DiffLine } from '../edit-diff.ts';
import { visible } from '../visible.ts';

/** Output drawn in one go, in characters; more is a click away, so that ten megabytes do not stop the panel. */
const STEP = 200_000;

const runView = (run: Run): TemplateResult | string => {
  const classes = styleClasses(run.style);
  return classes === '' ? run.text : html`<span class=${classes}>${run.text}</span>`;
};

/** Terminal output, folded and coloured. No white space may stand between the parts of a `pre`. */
export function terminalView(text: string, label: string): TemplateResult {
  const lines = parseAnsi(text);
  return html`<pre class="terminal" tabindex="0" aria-label=${label}>${joinLines(lines).map(runView)}</pre>`;
}

const isBlank = (line: readonly Run[] | undefined): boolean => line?.every((run) => run.text.trim() === '') ?? true;

/** The last lines of some output, for a card that is closed. */
export function terminalTail(text: string, count: number, label: string): TemplateResult | typeof nothing {
  const lines = parseAnsi(text.slice(-8_192));
  while (lines.length > 0 && isBlank(lines.at(-1))) lines.pop();
  const tail = lines.slice(-count);
  while (tail.length > 0 && isBlank(tail[0])) tail.shift();
  if (tail.length === 0) return nothing;
  return html`<pre class="terminal tail" aria-label=${label}>${joinLines(tail).map(runView)}</pre>`;
}

/**
 * Output of any length, in steps.
 * @param steps how many steps are drawn so far. @param more called for one more.
 */
export function longTerminalView(text: string, label: string, steps: number, more: () => void): TemplateResult {
  const end = steps * STEP;
  if (text.length <= end) return terminalView(text, label);
  const left = text.length - end;
  return html`${terminalView(text.slice(0, end), label)}
    <div class="cut"><vscode-button appearance="secondary" @click=${more}>Show more (${left.toLocaleString()} characters left)</vscode-button></div>`;
}

const SIGN: Readonly<Record<DiffLine['kind'], string>> = { same: ' ', added: '+', removed: '−', gap: '⋯' };
const SPOKEN: Readonly<Record<DiffLine['kind'], string>> = {
  same: '',
  added: 'added: ',
  removed: 'removed: ',
  gap: '',
};

/** An edit as a unified diff. The sign is text too, so that colour is not all that tells. */
export const diffView = (lines: readonly DiffLine[]): TemplateResult =>
  html`<div class="diff" role="group" tabindex="0" aria-label="Changes">${repeat(
    lines,
    (_line, i) => i,
    (line) =>
      html`<div class="diff-line ${line.kind}"><span class="sign" aria-hidden="true">${SIGN[line.kind]}</span><span class="visually-hidden">${SPOKEN[line.kind]}</span><span class="text">${visible(line.text)}</span></div>`,
  )}</div>`;
