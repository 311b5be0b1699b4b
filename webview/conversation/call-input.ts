import { html, nothing, type TemplateResult } from 'lit';
import { unsafeHTML } from 'lit/directives/unsafe-html.js';
import type { ToolCall } from '../../src/session/state.ts';
import { diffCounts, diffLines } from '../edit-diff.ts';
import { renderMarkdown } from '../markdown.ts';
import { field } from '../tool-look.ts';
import { visible } from '../visible.ts';
import { diffView } from './text-view.ts';

const code = (text: string, label: string): TemplateResult =>
  html`<pre class="input-code" tabindex="0" aria-label=${label}>${visible(text)}</pre>`;

/** Lines past which a command does not fit its box, so that its length is said. */
const LONG_COMMAND = 16;

function command(text: string): TemplateResult {
  const lines = text.split('\n').length;
  const note = lines > LONG_COMMAND ? html`<p class="quiet">${lines} lines; scroll to see all of them.</p>` : nothing;
  return html`${code(text, 'Command')}${note}`;
}

const plus = (n: number) => html`<span class="plus">+${n}</span>`;
const minus = (n: number) => html`<span class="minus">−${n}</span>`;

function editInput(input: ToolCall['input']): TemplateResult {
  const lines = diffLines(field(input, 'old_string'), field(input, 'new_string'));
  const { added, removed } = diffCounts(lines);
  return html`<div class="input-head"><code>${visible(field(input, 'file_path'))}</code><span class="counts">${plus(added)} ${minus(removed)}</span>${
    input.replace_all === true ? html`<span class="quiet">every occurrence</span>` : nothing
  }</div>${diffView(lines)}`;
}

function writeInput(input: ToolCall['input']): TemplateResult {
  const content = field(input, 'content');
  const lines = content === '' ? 0 : content.replace(/\n$/, '').split('\n').length;
  return html`<div class="input-head"><code>${visible(field(input, 'file_path'))}</code><span class="counts">${plus(lines)}</span><span class="quiet">the whole file</span></div>${code(content, 'Content')}`;
}

/** All that a call was given, nothing left out: what a person decides on, and what they look up later. */
export function callInput(call: Pick<ToolCall, 'name' | 'input'>): TemplateResult {
  switch (call.name) {
    case 'bash':
      return command(call.input.restart === true ? 'restart' : field(call.input, 'command'));
    case 'edit':
      return editInput(call.input);
    case 'write':
      return writeInput(call.input);
    case 'create_agent':
      return html`<div class="markdown task">${unsafeHTML(renderMarkdown(field(call.input, 'task')))}</div>${otherInput(call.input)}`;
    default:
      return code(JSON.stringify(call.input, null, 2), 'Input');
  }
}

const TASK_FIELDS = new Set(['agent', 'title', 'task']);

/** Fields of a `create_agent` call that are neither its child's name nor its task. */
function otherInput(input: ToolCall['input']): TemplateResult | typeof nothing {
  const rest = Object.entries(input).filter(([name]) => !TASK_FIELDS.has(name));
  return rest.length === 0 ? nothing : code(JSON.stringify(Object.fromEntries(rest), null, 2), 'More input');
}
