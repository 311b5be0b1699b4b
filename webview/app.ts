import { html, nothing, type TemplateResult } from 'lit';
import { createRef, ref } from 'lit/directives/ref.js';
import { SessionId } from '../src/protocol/ids.ts';
import { totalTokens } from '../src/protocol/usage.ts';
import type { SessionState } from '../src/session/state.ts';
import './approval-card.ts';
import { ApprovalKeys } from './approval-keys.ts';
import './composer.ts';
import './conversation/list.ts';
import { sessionChanges, threadChanges } from './checkpoints.ts';
import { followClick } from './clicks.ts';
import { tokens, usd } from './format.ts';
import './inspector/inspector.ts';
import './network/network.ts';
import { icon, iconButton, tip } from './parts.ts';
import type { Tab } from './saved.ts';
import { sandboxWords, sessionWords, type Words } from './status.ts';
import { Store } from './store.ts';
import './timeline/timeline.ts';
import { asks, field } from './tool-look.ts';
import { registerToolkit } from './toolkit.ts';
import './tree/tree.ts';
import { View } from './view.ts';
import { visible } from './visible.ts';

registerToolkit();

const TICK_MS = 1000;

const TABS: readonly { id: Tab; name: string }[] = [
  { id: 'conversation', name: 'Conversation' },
  { id: 'timeline', name: 'Timeline' },
  { id: 'network', name: 'Network' },
];

/** The whole panel of one session. */
export class Panel extends View {
  #tick: ReturnType<typeof setInterval> | undefined;
  #announced = new Set<string>();
  readonly #tabs = createRef<HTMLElement>();

  constructor() {
    super();
    const id = SessionId.safeParse(document.body.dataset.session);
    this.store = new Store(id.success ? id.data : null);
    const keys = new ApprovalKeys(this.store);
    document.addEventListener('keydown', (event) => keys.onKey(event), true);
    document.addEventListener('keydown', (event) => this.#onEscape(event));
    document.addEventListener('click', (event) => followClick(this.store.host, event));
  }

  protected override updated(): void {
    const session = this.store.session;
    this.#keepTicking(session);
    if (!session) return;
    this.store.approvals.aim(this.store.approvalTarget()?.id ?? null);
    this.#announce(session);
  }

  /** Says aloud what new cards ask, with their commands in full. */
  #announce(session: SessionState): void {
    const fresh = this.store.approvals.open(session).filter((call) => !this.#announced.has(call.id));
    if (fresh.length === 0) return;
    const sentences = fresh.map((call) => {
      this.#announced.add(call.id);
      const asker = session.threads.get(call.thread)?.agentName ?? 'The agent';
      const command = visible(field(call.input, 'command'));
      return `${asker} ${asks(call)}${command ? `: ${command}` : ''}.`;
    });
    this.store.announce(`${sentences.join(' ')} Waiting for your answer.`);
  }

  /** Clocks only run while something runs. */
  #keepTicking(session: SessionState | null): void {
    const running = session !== null && session.runningSince !== null && !this.store.interrupted;
    if (running && this.#tick === undefined) this.#tick = setInterval(() => this.store.changed(), TICK_MS);
    if (!running && this.#tick !== undefined) {
      clearInterval(this.#tick);
      this.#tick = undefined;
    }
  }

  #onEscape(event: KeyboardEvent): void {
    if (event.key !== 'Escape' || this.store.drawer === null) return;
    this.store.toggleDrawer(this.store.drawer);
  }

  protected override render(): TemplateResult {
    const { store } = this;
    const session = store.session;
    if (!session) return html`${this.#banners()}${this.#opening()}${this.#live()}`;
    const inspecting = store.selection !== null;
    return html`${this.#header(session)}${this.#banners()}
      <div class="columns ${inspecting ? 'inspecting' : ''} ${store.drawer ? `drawer-${store.drawer}` : ''}">
        <nav class="side tree-side" aria-label="Agents"><drover-tree .store=${store}></drover-tree></nav>
        <main class="middle">
          ${this.#tabBar(session)}
          <div class="tab-panel" role="tabpanel" id="tabpanel" aria-labelledby="tab-${store.tab}">
            ${this.#view(store.tab)}
          </div>
          <drover-composer .store=${store}></drover-composer>
        </main>
        ${inspecting ? html`<aside class="side inspector-side" aria-label="Inspector"><drover-inspector .store=${store}></drover-inspector></aside>` : nothing}
        ${store.drawer ? html`<div class="scrim" @click=${() => store.toggleDrawer(store.drawer ?? 'tree')}></div>` : nothing}
      </div>${this.#live()}`;
  }

  #view(tab: Tab): TemplateResult {
    const { store } = this;
    if (tab === 'timeline') return html`<drover-timeline .store=${store}></drover-timeline>`;
    if (tab === 'network') return html`<drover-network .store=${store}></drover-network>`;
    return html`<drover-conversation .store=${store}></drover-conversation>`;
  }

  #opening(): TemplateResult {
    const { link, reading } = this.store;
    if (link === 'unanswered')
      return html`<p class="opening">The extension does not answer. Close this panel and open the session again.</p>`;
    if (link === 'live' && reading === null)
      return html`<p class="opening">There is no event of this session that could be read.</p>`;
    const words = reading ? `Reading the session: ${reading.toLocaleString()} events` : 'Opening the session…';
    return html`<p class="opening">${icon('loading', 'codicon-modifier-spin')}${words}</p>`;
  }

  #header(session: SessionState): TemplateResult {
    const { store } = this;
    const status = sessionWords(session, store.access, store.interrupted);
    const busy = session.status === 'running' || session.status === 'rescheduling';
    return html`<header class="top">
      ${iconButton('list-tree', 'Agents', () => store.toggleDrawer('tree'), 'narrow-only')}
      <h1 title=${session.title}>${session.title}</h1>
      ${this.#status(session, status)}
      ${this.#words(
        'environment',
        sandboxWords(session, (sandbox) => store.index.nameOf(sandbox)),
      )}
      <span class="totals" title="Whole session: ${totalTokens(session.usage).toLocaleString()} tokens, list price">${tokens(totalTokens(session.usage))} tokens<b>${usd(session.costUsd)}</b></span>
      ${sessionChanges(store, session)}
      ${busy && !store.interrupted && store.access.mode === 'write' ? html`<vscode-button class="interrupt" appearance="secondary" ?disabled=${!store.writable} @click=${() => this.#interrupt()}>${icon('debug-stop')}Interrupt</vscode-button>` : nothing}
    </header>`;
  }

  #status(session: SessionState, status: Words): TemplateResult {
    const waiting = this.store.approvals.open(session).length > 0 && this.store.access.mode === 'write';
    if (!waiting) return this.#words('status', status);
    return html`<button type="button" class="words status warn" title="Go to the oldest" @click=${() => this.store.focusApproval()}>${icon(status.icon)}<span>${status.text}</span></button>`;
  }

  #words(kind: string, words: Words): TemplateResult {
    const spin = words.icon === 'loading' ? 'codicon-modifier-spin' : '';
    return html`<span class="words ${kind} ${words.tone}" title=${tip(words.more ?? words.text)}>${icon(words.icon, spin)}<span>${words.text}</span></span>`;
  }

  #tabBar(session: SessionState): TemplateResult {
    const { store } = this;
    const thread = store.thread ? session.threads.get(store.thread) : undefined;
    const child = thread && thread.id !== session.primary ? thread : undefined;
    return html`<div class="tab-bar">
      <div role="tablist" aria-label="Views" ${ref(this.#tabs)} @keydown=${this.#onTabKey}>${TABS.map(
        ({ id, name }) =>
          html`<button type="button" role="tab" id="tab-${id}" aria-selected=${store.tab === id} aria-controls="tabpanel" tabindex=${store.tab === id ? 0 : -1} @click=${() => store.showTab(id)}>${name}</button>`,
      )}</div>
      ${child && store.tab === 'conversation' ? html`<span class="crumb">${threadChanges(store, session, child.id)}${icon('agent')}<span>${child.agentName}</span><button type="button" class="link-button" @click=${() => store.showThread(session.primary)}>Back to ${session.threads.get(session.primary)?.agentName}</button></span>` : nothing}
    </div>`;
  }

  readonly #onTabKey = (event: KeyboardEvent): void => {
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
    event.preventDefault();
    const at = TABS.findIndex((tab) => tab.id === this.store.tab);
    const step = event.key === 'ArrowRight' ? 1 : TABS.length - 1;
    const other = TABS[(at + step) % TABS.length];
    if (!other) return;
    this.store.showTab(other.id);
    this.#tabs.value?.querySelector<HTMLElement>(`#tab-${other.id}`)?.focus();
  };

  #banners(): TemplateResult {
    const { store } = this;
    const lost =
      store.link === 'lost'
        ? html`<div class="banner bad" role="alert">${icon('debug-disconnect')}<span>The extension host of this panel has stopped. Waiting for it to come back…</span></div>`
        : nothing;
    const problem = store.problem
      ? html`<div class="banner warn" role="alert">${icon('warning')}<span>${store.problem}</span>${iconButton('close', 'Dismiss', () => store.setProblem(null))}</div>`
      : nothing;
    return html`${lost}${problem}`;
  }

  /** What is said aloud. A zero-width space makes the same words count as new. */
  #live(): TemplateResult {
    const { n, text } = this.store.announcement;
    return html`<div class="visually-hidden" aria-live="assertive" role="status">${text}${n % 2 ? '\u200b' : ''}</div>`;
  }

  #interrupt(): void {
    void this.store.host.request({ type: 'interrupt' }).then((problem) => {
      if (problem) this.store.setProblem(problem);
    });
  }
}
customElements.define('drover-panel', Panel);
