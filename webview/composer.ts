import { html, nothing, type TemplateResult } from 'lit';
import { text } from '../src/protocol/content.ts';
import { pendingApprovals } from '../src/session/fold.ts';
import type { SessionState } from '../src/session/state.ts';
import { icon } from './parts.ts';
import type { Store } from './store.ts';
import { View } from './view.ts';

/** Why nothing can be sent now, or null. */
function blocked(store: Store, session: SessionState): string | null {
  if (store.link === 'lost' || store.link === 'unanswered') return 'The extension host of this panel is not there.';
  if (store.link === 'connecting') return 'Connecting…';
  if (store.access.mode === 'follow') return `This window follows: the session is run by ${store.access.holder}.`;
  if (store.access.mode === 'read_only') return store.access.why;
  if (session.archived) return 'This session is archived.';
  if (session.status === 'terminated') return 'This session has ended.';
  return null;
}

/** What happens to a message that is sent now. */
function hint(store: Store, session: SessionState): string {
  const name = session.threads.get(session.primary)?.agentName ?? 'the agent';
  const to = store.thread === session.primary ? '' : `Messages go to ${name}. `;
  if (store.interrupted) return `${to}Sending wakes the session.`;
  if (pendingApprovals(session).length > 0)
    return `${to}Waiting for your answer above; a message is queued until then.`;
  if (session.status === 'running' || session.status === 'rescheduling') {
    return `${to}Running: a message is queued and read before the next step.`;
  }
  return to;
}

/** Where a person writes to the agent. What they wrote is kept until the host says that it is in the log. */
export class Composer extends View {
  #sending = false;
  #problem: string | null = null;

  protected override render(): TemplateResult {
    const { store } = this;
    const session = store.session;
    if (!session) return html``;
    const why = blocked(store, session);
    const off = why !== null;
    const below = this.#problem ?? why ?? hint(store, session);
    const canTake = store.link === 'live' && store.access.mode === 'follow';
    return html`<form class="composer ${off ? 'off' : ''}" @submit=${this.#onSubmit}>
        <div class="field"><div class="grow" aria-hidden="true">${store.draft}&#8203;</div>
        <textarea rows="1" aria-label="Message" aria-describedby="composer-hint" placeholder=${off ? 'Nothing can be sent now' : 'Message the agent'}
          .value=${store.draft} ?readonly=${this.#sending} ?disabled=${off} @input=${this.#onInput} @keydown=${this.#onKey}></textarea></div>
        <button type="submit" class="icon-button send" aria-label="Send" title="Send (Enter)" ?disabled=${off || this.#sending || store.draft.trim() === ''}>${icon(this.#sending ? 'loading' : 'send', this.#sending ? 'codicon-modifier-spin' : '')}</button>
      </form>
      <div class="composer-foot" id="composer-hint">
        <span class=${this.#problem ? 'bad' : 'quiet'}>${below || nothing}</span>
        ${canTake ? html`<button type="button" class="link-button" @click=${() => store.host.post({ type: 'run', command: 'takeOver' })}>Take over</button>` : html`<span class="quiet keys">Enter sends, Shift+Enter starts a line</span>`}
      </div>`;
  }

  readonly #onInput = (event: InputEvent): void => {
    if (event.target instanceof HTMLTextAreaElement) this.store.setDraft(event.target.value);
    this.#problem = null;
  };

  readonly #onKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || event.shiftKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    event.preventDefault();
    void this.#send();
  };

  readonly #onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    void this.#send();
  };

  async #send(): Promise<void> {
    const draft = this.store.draft.trim();
    if (draft === '' || this.#sending || !this.store.writable) return;
    this.#sending = true;
    this.#problem = null;
    this.requestUpdate();
    const problem = await this.store.host.request({ type: 'send', content: [text(draft)] });
    this.#sending = false;
    this.#problem = problem;
    if (problem === null) this.store.setDraft('');
    this.requestUpdate();
  }
}
customElements.define('drover-composer', Composer);
