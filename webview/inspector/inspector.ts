import { html, nothing, type TemplateResult } from 'lit';
import type { LogRecord } from '../../src/protocol/record.ts';
import { callFiles, momentFiles } from '../checkpoints.ts';
import { clock } from '../format.ts';
import { callNetwork } from '../network/network.ts';
import { icon, iconButton } from '../parts.ts';
import { View } from '../view.ts';
import { type Fact, storyOf } from './facts.ts';

/** The story of the selected event, and its records as they stand in the log. */
export class Inspector extends View {
  protected override render(): TemplateResult {
    const { store } = this;
    const session = store.session;
    const id = store.selection;
    if (!session || id === null) return html`<p class="quiet none">Select a call or a bar to see its story.</p>`;
    const story = storyOf(store, session, id);
    const call = session.calls.get(id);
    if (!story) return html`<p class="quiet none">This event is not in the log.</p>`;
    return html`<header class="inspector-head">
        ${icon(story.icon)}<div><h2>${story.title}</h2>${story.subtitle ? html`<p class="subtitle" title=${story.subtitle}>${story.subtitle}</p>` : nothing}</div>
        ${iconButton('target', 'Show in the conversation', () => store.reveal(id))}${iconButton('close', 'Close the inspector', () => store.select(null))}
      </header>
      ${call ? callFiles(store, session, call, true) : momentFiles(store, id)}
      <dl class="facts-list">${story.facts.map((fact) => this.#fact(fact))}</dl>
      ${
        story.leftOut.length === 0
          ? nothing
          : html`<h3>Left out of the context</h3><ul class="left-out">${story.leftOut.map((one) => html`<li><button type="button" class="link-button mono" @click=${() => store.select(one.id)}>${one.id}</button> <span class="quiet">${one.text}</span></li>`)}</ul>`
      }
      ${callNetwork(store, call?.execution?.id)}
      <h3>Records</h3>
      ${store.index.story(id).map((record) => this.#record(record))}`;
  }

  #fact(fact: Fact): TemplateResult {
    const { store } = this;
    const { thread, event } = fact;
    const go = thread ? () => store.showThread(thread) : event ? () => store.select(event) : null;
    const value = go ? html`<button type="button" class="link-button" @click=${go}>${fact.value}</button>` : fact.value;
    const detail = fact.label.charAt(0) === fact.label.charAt(0).toLowerCase();
    return html`<div class="fact ${detail ? 'detail' : ''}"><dt>${fact.label}</dt><dd class=${fact.tone ?? ''}>${value}</dd></div>`;
  }

  #record(record: LogRecord): TemplateResult {
    const json = () => JSON.stringify(record, null, 2);
    const key = `record ${record.seq}`;
    const open = this.store.expanded.get(key) ?? false;
    return html`<div class="raw ${open ? 'open' : ''}">
      <div class="raw-head"><button type="button" class="card-toggle" aria-expanded=${open} @click=${() => this.store.setExpanded(key, !open)}>${icon(open ? 'chevron-down' : 'chevron-right', 'twistie')}<span class="seq">#${record.seq}</span><span class="type">${record.event.type}</span><span class="at">${clock(record.at)}</span></button>
        ${iconButton('copy', `Copy record ${record.seq} as JSON`, () => this.store.host.post({ type: 'copy', text: json() }))}</div>
      ${open ? html`<pre class="input-code json" tabindex="0" aria-label="Record ${record.seq}">${json()}</pre>` : nothing}
    </div>`;
  }
}
customElements.define('drover-inspector', Inspector);
