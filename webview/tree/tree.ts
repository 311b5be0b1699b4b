import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import type { ThreadId } from '../../src/protocol/ids.ts';
import type { SessionState } from '../../src/session/state.ts';
import { count, ticking, tokens, usd } from '../format.ts';
import { icon, iconButton } from '../parts.ts';
import { threadWords } from '../status.ts';
import { vars } from '../vars.ts';
import { View } from '../view.ts';
import { type Branch, branches, type Figures } from './model.ts';

const spoken = (figures: Figures): string =>
  `${tokens(figures.tokens)} tokens, ${ticking(figures.activeMs)} at work, ${usd(figures.usd)}`;

/** The threads of the session with what each used. A click, or Enter, shows the thread. */
export class ThreadTree extends View {
  #focused: ThreadId | null = null;
  #branches: Branch[] = [];

  protected override render(): TemplateResult {
    const session = this.store.session;
    if (!session) return html``;
    this.#branches = branches(session, this.store.now());
    return html`<h2 class="side-title" id="tree-title">Agents${this.#branches.length > 1 ? html`<span class="quiet">${count(this.#branches.length, 'thread')}</span>` : nothing}</h2>
      <div class="tree" role="tree" aria-labelledby="tree-title" @keydown=${this.#onKey}>${repeat(
        this.#branches,
        (branch) => branch.thread.id,
        (branch) => this.#row(session, branch),
      )}</div>`;
  }

  #row(session: SessionState, branch: Branch): TemplateResult {
    const { thread, own, total, depth } = branch;
    const words = threadWords(session, thread, this.store.interrupted);
    const shown = this.store.thread === thread.id;
    const tabStop = (this.#focused ?? this.store.thread) === thread.id;
    const spin = words.icon === 'loading' ? 'codicon-modifier-spin' : '';
    const label = `${thread.agentName}, ${words.text}, ${spoken(own)}${total ? `; with subagents ${spoken(total)}` : ''}`;
    const running = thread.status === 'running' && depth > 0 && this.store.writable && !this.store.interrupted;
    return html`<div class="branch ${shown ? 'shown' : ''}" role="treeitem" aria-level=${depth + 1} aria-posinset=${branch.position} aria-setsize=${branch.siblings}
        aria-selected=${shown} aria-label=${label} title=${label} tabindex=${tabStop ? 0 : -1} data-thread=${thread.id} ${vars({ '--depth': String(depth) })}
        @click=${() => this.store.showThread(thread.id)} @focus=${() => this.#focus(thread.id)}>
        <span class="branch-icon ${words.tone}">${icon(words.icon, spin)}</span>
        <span class="name">${thread.agentName}</span><span class="cost">${usd(own.usd)}</span>
        <span class="figures">${words.text}</span><span class="figures">${tokens(own.tokens)} · ${ticking(own.activeMs)}</span>
        ${total ? html`<span class="figures total">in total</span><span class="figures total">${tokens(total.tokens)} · ${usd(total.usd)}</span>` : nothing}
        ${running ? iconButton('debug-stop', `Interrupt ${thread.agentName}`, (event) => this.#interrupt(event, thread.id), 'on-hover corner') : nothing}
      </div>`;
  }

  #focus(thread: ThreadId): void {
    if (this.#focused === thread) return;
    this.#focused = thread;
    this.requestUpdate();
  }

  #interrupt(event: Event, thread: ThreadId): void {
    event.stopPropagation();
    void this.store.host.request({ type: 'interrupt', thread }).then((problem) => {
      if (problem) this.store.setProblem(problem);
    });
  }

  readonly #onKey = (event: KeyboardEvent): void => {
    if (event.target instanceof HTMLButtonElement) return;
    const at = this.#branches.findIndex((branch) => branch.thread.id === (this.#focused ?? this.store.thread));
    const to = this.#target(event.key, at);
    const branch = to === null ? undefined : this.#branches[to];
    if (!branch) return;
    event.preventDefault();
    if (to === at) this.store.showThread(branch.thread.id);
    else this.querySelector<HTMLElement>(`[data-thread="${CSS.escape(branch.thread.id)}"]`)?.focus();
  };

  /** Which line a key goes to; the same line means "show it". The tree is always open, so Left only goes up. */
  #target(key: string, at: number): number | null {
    const depth = this.#branches[at]?.depth ?? 0;
    switch (key) {
      case 'ArrowDown':
        return at + 1;
      case 'ArrowUp':
        return at - 1;
      case 'ArrowRight':
        return (this.#branches[at + 1]?.depth ?? 0) > depth ? at + 1 : null;
      case 'ArrowLeft':
        return this.#branches.findLastIndex((branch, i) => i < at && branch.depth < depth);
      case 'Home':
        return 0;
      case 'End':
        return this.#branches.length - 1;
      case 'Enter':
      case ' ':
        return at;
      default:
        return null;
    }
  }
}
customElements.define('drover-tree', ThreadTree);
