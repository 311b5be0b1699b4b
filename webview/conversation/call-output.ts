import { html, nothing, type TemplateResult } from 'lit';
import { plainText } from '../../src/protocol/content.ts';
import type { BlobRef } from '../../src/protocol/record.ts';
import type { CallResult, ToolCall } from '../../src/session/state.ts';
import { bytes } from '../format.ts';
import { icon } from '../parts.ts';
import type { Store } from '../store.ts';
import { longTerminalView, terminalTail, terminalView } from './text-view.ts';

const TAIL_LINES = 8;
/** A model gets at most about as much: of what is larger a part was left out, and people are told. */
const COLOURED_BYTES = 100 * 1024;

/** Steps of a long output that are drawn, by blob or call. */
const steps = new Map<string, number>();

function more(store: Store, key: string): void {
  steps.set(key, (steps.get(key) ?? 1) + 1);
  store.changed();
}

function cutNotice(store: Store, blob: BlobRef): TemplateResult {
  const state = store.blobs.get(blob.sha256);
  const button =
    state?.state === 'asked'
      ? html`<span class="quiet">Reading…</span>`
      : html`<vscode-button appearance="secondary" @click=${() => store.readBlob(blob)}>Show all</vscode-button>`;
  const problem = state?.state === 'failed' ? html`<span class="bad">${state.problem}</span>` : nothing;
  return html`<div class="cut">${icon('fold')}<span>Only a part is shown; the whole output is ${bytes(blob.bytes)}.</span>${button}${problem}</div>`;
}

function pictures(result: CallResult): TemplateResult | typeof nothing {
  const others = result.content.filter((block) => block.type === 'image' || block.type === 'document');
  if (others.length === 0) return nothing;
  return html`<div class="cut">${icon('file-media')}<span>${others.map((block) => (block.type === 'image' ? 'An image' : 'A document')).join(', ')} was given to the model.</span></div>`;
}

function resultOutput(store: Store, call: ToolCall, result: CallResult): TemplateResult {
  const blob = result.blobs[0];
  const whole = blob ? store.blobs.get(blob.sha256) : undefined;
  // What is kept only for its colours is shown in them without being asked for.
  const coloured = blob?.media_type.startsWith('text/x-ansi') === true && blob.bytes <= COLOURED_BYTES;
  if (blob && coloured && !whole) queueMicrotask(() => store.readBlob(blob));
  const text = whole?.state === 'here' ? whole.text : plainText(result.content);
  const body =
    text === ''
      ? html`<p class="quiet none">No output.</p>`
      : longTerminalView(text, 'Output', steps.get(call.id) ?? 1, () => more(store, call.id));
  return html`${body}${blob && whole?.state !== 'here' && !(coloured && whole?.state !== 'failed') ? cutNotice(store, blob) : nothing}${pictures(result)}`;
}

/** What a call brought, in full as far as the record has it. */
export function callOutput(store: Store, call: ToolCall): TemplateResult | typeof nothing {
  if (call.result) return resultOutput(store, call, call.result);
  const live = store.previews.output(call.id);
  return live === '' ? nothing : terminalView(live, 'Output so far');
}

/** The end of the output under a closed card: while it runs, and where it went wrong. */
export function callTail(store: Store, call: ToolCall): TemplateResult | typeof nothing {
  if (!call.result) {
    const live = store.previews.output(call.id);
    return live === '' ? nothing : terminalTail(live, TAIL_LINES, 'End of the output so far');
  }
  if (call.result.outcome === 'ok' || call.result.outcome === 'denied') return nothing;
  return terminalTail(plainText(call.result.content), TAIL_LINES, 'End of the output');
}
