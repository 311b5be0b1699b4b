import { html, nothing, type TemplateResult } from 'lit';
import type { Masked } from '../../src/protocol/record.ts';
import type { ToolCall } from '../../src/session/state.ts';
import { icon } from '../parts.ts';
import type { Store } from '../store.ts';

/** What was masked in a call's output, and the way to let the model see it. */
export function maskedView(store: Store, call: ToolCall): TemplateResult | typeof nothing {
  const masked = call.result?.masked ?? [];
  if (masked.length === 0) return nothing;
  return html`${masked.map((one) => line(store, call, one))}`;
}

function line(store: Store, call: ToolCall, { kind, finding, count }: Masked): TemplateResult {
  const times = count > 1 ? ` (${count} times)` : '';
  const revealed = store.session?.revealed.includes(finding) === true;
  const reveal = () =>
    store.host.request({ type: 'reveal_secret', tool_use_id: call.id, finding }).then((problem) => {
      if (problem) store.announce(problem);
    });
  const way = revealed
    ? html`<span class="quiet">You let the model see it from then on.</span>`
    : html`<vscode-button appearance="secondary" ?disabled=${!store.writable} @click=${reveal}>Reveal to model…</vscode-button>`;
  return html`<div class="cut masked">${icon('eye-closed')}<span>Masked in this output${times}: ${kind}.</span>${way}</div>`;
}
