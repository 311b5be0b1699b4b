import { html, nothing, type TemplateResult } from 'lit';
import { unsafeHTML } from 'lit/directives/unsafe-html.js';
import { type ContentBlock, plainText } from '../../src/protocol/content.ts';
import { callPhase } from '../../src/session/fold.ts';
import type { SessionState, ThreadInput, ThreadState } from '../../src/session/state.ts';
import { inputFiles } from '../checkpoints.ts';
import { clock, moment, ms, ticking } from '../format.ts';
import { renderMarkdown, renderMarkdownLive } from '../markdown.ts';
import { icon, iconButton } from '../parts.ts';
import type { LiveBlock } from '../previews.ts';
import type { Store } from '../store.ts';
import { toolIcon } from '../tool-look.ts';
import { callCard } from './call-card.ts';
import { noticeView } from './notice-view.ts';
import { partialInput } from './partial-input.ts';
import type { Row } from './rows.ts';

const attachments = (content: readonly ContentBlock[]): TemplateResult | typeof nothing => {
  const names = content.flatMap((block) =>
    block.type === 'image' ? ['image'] : block.type === 'document' ? [block.title ?? 'document'] : [],
  );
  return names.length === 0 ? nothing : html`<p class="quiet">${icon('attach')} ${names.join(', ')}</p>`;
};

function inputRow(store: Store, session: SessionState, input: ThreadInput, queued: boolean): TemplateResult {
  const sender = input.fromThread ? (session.threads.get(input.fromThread)?.agentName ?? 'another thread') : 'You';
  const mark = queued
    ? html`<span class="mark" title="The agent reads it before its next step.">${icon('clock')}queued</span>`
    : nothing;
  return html`<div class="input ${input.from} ${queued ? 'queued' : ''}">
    <div class="input-line"><b>${sender}</b>${mark}<span class="at">${clock(input.at)}</span>${inputFiles(store, session, input)}${iconButton('inspect', 'Inspect this message', () => store.select(input.id), 'on-hover')}</div>
    ${
      input.fromThread
        ? html`<div class="markdown">${unsafeHTML(renderMarkdown(plainText(input.content)))}</div>`
        : html`<div class="said">${plainText(input.content)}</div>`
    }${attachments(input.content)}
  </div>`;
}

function messageRow(store: Store, row: Extract<Row, { kind: 'message' }>): TemplateResult {
  const note = row.counted
    ? nothing
    : html`<p class="quiet">This reply was cut off, so it does not count: the agent does not know of it.</p>`;
  return html`<div class="message ${row.counted ? '' : 'void'}">
    <div class="markdown">${unsafeHTML(renderMarkdown(plainText(row.content)))}</div>${attachments(row.content)}${note}
    ${iconButton('inspect', 'Inspect this message', () => store.select(row.key), 'on-hover corner')}
  </div>`;
}

function thinkingRow(store: Store, row: Extract<Row, { kind: 'thinking' }>): TemplateResult {
  if (row.text === '') return html`<div class="line">${icon('thinking')}<span class="words">Thought</span></div>`;
  const open = store.expanded.get(row.key) ?? false;
  return html`<div class="thinking">
    <button type="button" class="line as-button" aria-expanded=${open} @click=${() => store.setExpanded(row.key, !open)}>
      ${icon(open ? 'chevron-down' : 'chevron-right', 'twistie')}${icon('thinking')}<span class="words">Thought${open ? nothing : html`: <span class="detail">${row.text.slice(0, 200)}</span>`}</span>
    </button>
    ${open ? html`<div class="thought">${row.text}</div>` : nothing}
  </div>`;
}

function liveRow(block: LiveBlock): TemplateResult {
  if (block.block === 'message') {
    return html`<div class="message live"><div class="markdown">${unsafeHTML(renderMarkdownLive(block.text))}</div></div>`;
  }
  if (block.block === 'thinking') {
    const end = block.text.slice(-160).replace(/\s+/g, ' ');
    return html`<div class="line live">${icon('thinking')}<span class="words">Thinking${end ? html`: <span class="detail">${end}</span>` : '…'}</span></div>`;
  }
  const { summary, whole } = partialInput(block.text);
  return html`<div class="card call live">
    <div class="card-head"><span class="card-toggle">${icon('loading', 'codicon-modifier-spin twistie')}${icon(toolIcon(block.name), 'tool-icon')}<span class="tool">${block.name}</span><code class="summary">${summary}</code><span class="standing quiet">writing its input</span></span></div>
    ${whole ? html`<pre class="input-code live-input" aria-label="Input so far">${whole}</pre>` : nothing}
  </div>`;
}

function waitingRow(store: Store, row: Extract<Row, { kind: 'waiting' }>): TemplateResult {
  if (store.interrupted) {
    return html`<div class="line warn">${icon('debug-disconnect')}<span class="words">A request to the model was open at the last event.</span></div>`;
  }
  const model = row.request.model ?? 'the model';
  const since = store.now() - ms(row.request.at);
  return html`<div class="line">${icon('loading', 'codicon-modifier-spin')}<span class="words">Waiting for ${model}</span><span class="at">${ticking(since)}</span></div>`;
}

function startRow(store: Store, session: SessionState, thread: ThreadState): TemplateResult {
  const empty = thread.entries.length === 0;
  const parent = thread.parent ? session.threads.get(thread.parent) : undefined;
  if (parent) {
    return html`<div class="start"><h2>${thread.agentName}</h2><p class="quiet">A subagent of <button type="button" class="link-button" @click=${() => store.showThread(parent.id)}>${parent.agentName}</button>, with a context of its own and the same sandbox.</p></div>`;
  }
  const agent = thread.agent.description ? html`<p>${thread.agent.description}</p>` : nothing;
  return html`<div class="start ${empty ? 'empty' : ''}">
    <h2>${thread.agentName}</h2>${agent}
    <p class="quiet">${empty ? 'Nothing has been said yet. Write the task below.' : `Started ${moment(session.createdAt)}`}</p>
    ${empty ? html`<p class="brand"><b>Drover</b> <span class="quiet">powered by Claude</span></p>` : nothing}
  </div>`;
}

/** Draws one row of the conversation. */
export function rowView(store: Store, session: SessionState, thread: ThreadState, row: Row): TemplateResult {
  switch (row.kind) {
    case 'start':
      return startRow(store, session, thread);
    case 'input':
      return inputRow(store, session, row.input, row.queued);
    case 'message':
      return messageRow(store, row);
    case 'thinking':
      return thinkingRow(store, row);
    case 'call':
      return callPhase(session, row.call) === 'asking'
        ? html`<drover-approval .store=${store} .call=${row.call}></drover-approval>`
        : callCard(store, session, row.call, row.foreign);
    case 'notice':
      return noticeView(store, row.notice);
    case 'live':
      return liveRow(row.block);
    case 'waiting':
      return waitingRow(store, row);
  }
}
