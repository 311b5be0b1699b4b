import { html, nothing, type TemplateResult } from 'lit';
import { classMap } from 'lit/directives/class-map.js';
import { type CallPhase, callPhase } from '../../src/session/fold.ts';
import type { SessionState, ToolCall } from '../../src/session/state.ts';
import { callFiles } from '../checkpoints.ts';
import { baseName, duration, ms } from '../format.ts';
import { icon, iconButton } from '../parts.ts';
import type { Store } from '../store.ts';
import { field, outputKey, type Standing, standing, summary, toolIcon, toolName } from '../tool-look.ts';
import { callInput } from './call-input.ts';
import { callOutput, callTail } from './call-output.ts';
import { maskedView } from './masked-view.ts';

/** How long a call took, or has been running, in ms; null before it started. */
export function ranMs(call: ToolCall, now: number): number | null {
  if (!call.execution) return null;
  if (call.result?.durationMs != null) return call.result.durationMs;
  return (call.result ? ms(call.result.at) : now) - ms(call.execution.at);
}

function standingView(stand: Standing, phase: CallPhase, took: number | null): TemplateResult {
  const spin = stand.icon === 'loading' ? 'codicon-modifier-spin' : '';
  const time = phase === 'done' && took !== null ? html`<span class="took">${duration(took)}</span>` : nothing;
  return html`<span class="standing ${stand.tone}">${icon(stand.icon, spin)}<span class=${stand.words === 'done' ? 'visually-hidden' : ''}>${stand.words}</span></span>${time}`;
}

/** Who said what about a call that was asked about. One line under the card. */
function decision(call: ToolCall): TemplateResult | typeof nothing {
  const given = call.confirmation;
  if (!given) return nothing;
  const from = given.standing ? ', and from now on' : '';
  if (given.result === 'allow') return html`<p class="decision quiet">Allowed by you${from}.</p>`;
  const reason = given.denyMessage ? html` Reason: <q>${given.denyMessage}</q>` : nothing;
  return html`<p class="decision quiet">Denied by you.${reason}</p>`;
}

function childLink(store: Store, session: SessionState, call: ToolCall): TemplateResult | typeof nothing {
  const child = call.child ? session.threads.get(call.child) : undefined;
  if (!child) return nothing;
  return html`<button type="button" class="link-button" @click=${() => store.showThread(child.id)}>Open ${child.agentName}’s thread</button>`;
}

function fileLink(store: Store, call: ToolCall): TemplateResult | typeof nothing {
  const path = call.result?.realPath ?? (call.result ? field(call.input, 'file_path') : '');
  if (path === '') return nothing;
  return html`<button type="button" class="link-button" @click=${() => store.host.post({ type: 'open_file', path })}>Open ${baseName(path)}</button>`;
}

/** A call that no longer waits for a person: one line, with all of it behind a click. */
export function callCard(store: Store, session: SessionState, call: ToolCall, foreign: boolean): TemplateResult {
  const phase = callPhase(session, call);
  const took = ranMs(call, store.now());
  const stand = standing(phase, call, took ?? 0, store.interrupted);
  const open = store.expanded.get(outputKey(call.id)) ?? false;
  const asker = session.threads.get(call.thread)?.agentName ?? '';
  const what = summary(call.name, call.input);
  const toggle = () => store.setExpanded(outputKey(call.id), !open);
  return html`<div class=${classMap({ card: true, call: true, open, selected: store.selection === call.id })}>
    <div class="card-head">
      <button type="button" class="card-toggle" aria-expanded=${open} @click=${toggle} aria-label="${foreign ? `${asker}: ` : ''}${toolName(call)} ${what}, ${stand.words}">
        ${icon(open ? 'chevron-down' : 'chevron-right', 'twistie')}${icon(toolIcon(call.name), 'tool-icon')}
        ${foreign ? html`<span class="asker">${asker}</span>` : nothing}<span class="tool">${toolName(call)}</span>
        <code class="summary" title=${what}>${what}</code>${standingView(stand, phase, took)}
      </button>
      ${iconButton('inspect', `Inspect this ${toolName(call)} call`, () => store.select(call.id), 'on-hover')}
    </div>
    ${open ? html`<div class="card-body">${callInput(call)}${decision(call)}${callOutput(store, call)}${maskedView(store, call)}${childLink(store, session, call)}${fileLink(store, call)}${callFiles(store, session, call, false)}</div>` : html`${callTail(store, call)}${closedExtras(store, session, call)}`}
  </div>`;
}

function closedExtras(store: Store, session: SessionState, call: ToolCall): TemplateResult | typeof nothing {
  if (call.confirmation?.result === 'deny') return decision(call);
  if (call.child) return html`<p class="decision">${childLink(store, session, call)}</p>`;
  return maskedView(store, call);
}
