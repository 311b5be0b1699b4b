import { html, nothing, type PropertyDeclarations, type TemplateResult } from 'lit';
import type { SessionState, ToolCall } from '../src/session/state.ts';
import { callInput } from './conversation/call-input.ts';
import { icon, iconButton } from './parts.ts';
import type { Store } from './store.ts';
import { asks, field, inSandbox, serverPlace, standingScope, toolIcon } from './tool-look.ts';
import { View } from './view.ts';

const isMac = navigator.platform.startsWith('Mac');
const KEYS = isMac ? { allow: '⌘⏎', deny: '⌘⌫' } : { allow: 'Ctrl+Enter', deny: 'Ctrl+Backspace' };

/** Where the call would run, as far as it is known before it runs. */
function place(store: Store, session: SessionState, call: ToolCall): string {
  const server = serverPlace(session, call);
  if (server) return server;
  if (!inSandbox(call.name)) return 'outside the sandbox, by Drover itself';
  if (session.environment.config.type === 'host') return 'on this machine itself, without a sandbox';
  const sandbox = session.sandbox ? session.sandboxes.get(session.sandbox) : undefined;
  return sandbox?.state === 'ready'
    ? `in ${store.index.nameOf(sandbox)}`
    : `in a fresh sandbox of ${session.environment.name}, made when you allow it`;
}

/** A call that waits for a person: all that it would do, why they are asked, and the answers they can give. */
export class ApprovalCard extends View {
  static override properties: PropertyDeclarations = { ...View.properties, call: { attribute: false } };
  declare call: ToolCall;
  #denyFocus = false;

  override connectedCallback(): void {
    super.connectedCallback();
    this.store.approvals.shown(this.call.id);
  }

  override disconnectedCallback(): void {
    this.store.approvals.hidden(this.call.id);
    super.disconnectedCallback();
  }

  /** Gives the card itself the focus, never one of its buttons: nothing is answered by a key that was meant elsewhere. */
  focusCard(): void {
    this.querySelector<HTMLElement>('.approval')?.focus({ preventScroll: true });
  }

  /** Opens the field for the reason and puts the cursor there; Enter in it sends the denial. */
  startDenying(): void {
    this.#denyFocus = true;
    this.store.approvals.setReason(this.call.id, this.store.approvals.reason(this.call.id) ?? '');
    this.requestUpdate();
  }

  protected override updated(): void {
    if (!this.#denyFocus) return;
    const input = this.querySelector<HTMLElement>('vscode-text-field');
    if (!input) return;
    this.#denyFocus = false;
    // The field's own input is made by its own, later, rendering.
    requestAnimationFrame(() => input.focus());
  }

  protected override render(): TemplateResult {
    const { store, call } = this;
    const session = store.session;
    if (!session) return html``;
    const asker = session.threads.get(call.thread)?.agentName ?? 'The agent';
    const answer = store.approvals.answer(call.id);
    const sent = answer?.state === 'sent';
    const heading = `approval-${call.id}`;
    return html`<section class="card approval ${sent ? 'sent' : ''}" tabindex="-1" aria-labelledby=${heading} data-call=${call.id}>
      <header class="approval-head">
        ${icon(toolIcon(call.name))}
        <h3 id=${heading}><b>${asker}</b> ${asks(call)}</h3>
        ${iconButton('inspect', 'Inspect this call', () => store.select(call.id))}
      </header>
      <div class="approval-input">${callInput(call)}</div>
      <p class="facts"><span>${icon('question')}${call.why ?? 'This agent asks before it uses this tool.'}</span><span>${icon('vm')}Runs ${place(store, session, call)}.</span></p>
      ${answer?.state === 'failed' ? html`<p class="bad" role="alert">${icon('error')}${answer.problem}</p>` : nothing}
      ${sent ? html`<p class="sent-note" role="status">${icon('sync', 'codicon-modifier-spin')}${answer.result === 'allow' ? 'Allow' : 'Deny'} sent…</p>` : this.#answers()}
    </section>`;
  }

  #answers(): TemplateResult {
    const { store, call } = this;
    const off = !store.writable;
    const reason = store.approvals.reason(call.id);
    if (reason !== null) return this.#reasonForm(reason, off);
    // Where nothing holds what runs, each call is asked about: whatever else was allowed.
    const scope = store.session?.environment.config.type === 'host' ? null : standingScope(call.name);
    const diffable = (call.name === 'edit' || call.name === 'write') && field(call.input, 'file_path') !== '';
    return html`<div class="buttons">
        <vscode-button appearance="primary" ?disabled=${off} @click=${(click: MouseEvent) => this.#allow(click, false)}>Allow<kbd>${KEYS.allow}</kbd></vscode-button>
        <vscode-button appearance="secondary" ?disabled=${off} @click=${(click: MouseEvent) => this.#deny(click)}>Deny<kbd>${KEYS.deny}</kbd></vscode-button>
        ${scope === null ? nothing : html`<vscode-button appearance="secondary" ?disabled=${off} title=${scope} aria-describedby="scope-${call.id}" @click=${(click: MouseEvent) => this.#allow(click, true)}>Allow from now on</vscode-button>`}
        ${diffable ? html`<vscode-button class="push" appearance="secondary" @click=${() => store.host.post({ type: 'show_diff', tool_use_id: call.id })}>Show diff</vscode-button>` : nothing}
      </div>
      ${scope === null ? nothing : html`<p class="scope quiet" id="scope-${call.id}">From now on: ${scope.charAt(0).toLowerCase()}${scope.slice(1)}</p>`}`;
  }

  #reasonForm(reason: string, off: boolean): TemplateResult {
    const { store, call } = this;
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        store.approvals.setReason(call.id, null);
        this.updateComplete.then(() => this.focusCard());
      } else if (event.key === 'Enter' && !event.repeat && !event.isComposing) {
        event.preventDefault();
        event.stopPropagation();
        this.#sendDenial();
      }
    };
    return html`<div class="reason">
        <vscode-text-field .value=${reason} aria-label="Why you deny it, for the agent (optional)" placeholder="Why? (optional; the agent reads it)"
          @input=${(event: Event) => store.approvals.setReason(call.id, (event.target as HTMLInputElement).value)} @keydown=${onKey}></vscode-text-field>
        <vscode-button appearance="primary" ?disabled=${off} @click=${() => this.#sendDenial()}>Deny</vscode-button>
        <vscode-button appearance="secondary" @click=${() => store.approvals.setReason(call.id, null)}>Back</vscode-button>
      </div>`;
  }

  #allow(click: MouseEvent, standing: boolean): void {
    const { store, call } = this;
    if (!store.session || !store.writable || !store.approvals.clickable(call.id, click)) return;
    this.#keepFocus();
    store.approvals.send(store.session, call.id, 'allow', { standing });
  }

  #deny(click: MouseEvent): void {
    if (this.store.writable && this.store.approvals.clickable(this.call.id, click)) this.startDenying();
  }

  #sendDenial(): void {
    const { store, call } = this;
    if (!store.session || !store.writable) return;
    this.#keepFocus();
    store.approvals.send(store.session, call.id, 'deny', {});
  }

  /** The button that was pressed goes away: the focus stays with its card. */
  #keepFocus(): void {
    if (this.contains(document.activeElement)) this.focusCard();
  }
}
customElements.define('drover-approval', ApprovalCard);
