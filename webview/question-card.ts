import { html, nothing, type PropertyDeclarations, type TemplateResult } from 'lit';
import type { Scope } from '../src/protocol/record.ts';
import type { Question } from '../src/session/state.ts';
import { clock } from './format.ts';
import { icon, iconButton } from './parts.ts';
import type { Store } from './store.ts';
import { View } from './view.ts';

interface Way {
  words: string;
  result: 'allow' | 'deny';
  scope?: Scope;
}

/** The answers to each kind of question; the first is the one a hasty person should give. */
const WAYS: Readonly<Record<Question['kind'], readonly Way[]>> = {
  canary: [
    { words: 'Stop the session', result: 'deny' },
    { words: 'Go on', result: 'allow' },
  ],
  host: [
    { words: 'Once', result: 'allow', scope: 'once' },
    { words: 'This session', result: 'allow', scope: 'session' },
    { words: 'Always', result: 'allow', scope: 'always' },
    { words: 'No', result: 'deny' },
  ],
};

const HEADINGS: Readonly<Record<Question['kind'], string>> = {
  canary: 'A tripwire was touched; nothing goes on until you decide',
  host: 'Something in the sandbox wants out',
};

/** A question that is no call: what happened, and the answers. Without an answer it looks and works like an approval. */
export class QuestionCard extends View {
  static override properties: PropertyDeclarations = { ...View.properties, question: { attribute: false } };
  declare question: Question;

  override connectedCallback(): void {
    super.connectedCallback();
    this.store.approvals.shown(this.question.id);
  }

  override disconnectedCallback(): void {
    this.store.approvals.hidden(this.question.id);
    super.disconnectedCallback();
  }

  focusCard(): void {
    this.querySelector<HTMLElement>('.approval')?.focus({ preventScroll: true });
  }

  /** There is no reason to write: nobody reads it. */
  startDenying(): void {
    const { session } = this.store;
    if (session) this.store.approvals.send(session, this.question.id, 'deny', {});
  }

  protected override render(): TemplateResult {
    const { store, question } = this;
    const answer = store.approvals.answer(question.id);
    const sent = answer?.state === 'sent';
    const heading = `question-${question.id}`;
    return html`<section class="card approval ${sent ? 'sent' : ''}" tabindex="-1" aria-labelledby=${heading} data-call=${question.id}>
      <header class="approval-head">
        ${icon(question.kind === 'canary' ? 'warning' : 'globe')}
        <h3 id=${heading}>${HEADINGS[question.kind]}</h3>
        ${iconButton('inspect', 'Inspect this question', () => store.select(question.id))}
      </header>
      <p class="question-text">${question.why}</p>
      ${answer?.state === 'failed' ? html`<p class="bad" role="alert">${icon('error')}${answer.problem}</p>` : nothing}
      ${sent ? html`<p class="sent-note" role="status">${icon('sync', 'codicon-modifier-spin')}Answer sent…</p>` : this.#answers()}
    </section>`;
  }

  #answers(): TemplateResult {
    const off = !this.store.writable;
    return html`<div class="buttons">
      ${WAYS[this.question.kind].map(
        (way, index) =>
          html`<vscode-button appearance=${index === 0 ? 'primary' : 'secondary'} ?disabled=${off} @click=${(click: MouseEvent) => this.#send(click, way)}>${way.words}</vscode-button>`,
      )}
      ${this.question.call ? html`<vscode-button class="push" appearance="secondary" @click=${() => this.#showCall()}>Show the call</vscode-button>` : nothing}
    </div>`;
  }

  #showCall(): void {
    if (this.question.call) this.store.reveal(this.question.call);
  }

  #send(click: MouseEvent, { result, scope }: Way): void {
    const { store, question } = this;
    if (!store.session || !store.writable || !store.approvals.clickable(question.id, click)) return;
    if (this.contains(document.activeElement)) this.focusCard();
    store.approvals.send(store.session, question.id, result, scope ? { scope } : {});
  }
}
customElements.define('drover-question', QuestionCard);

/** A question in the conversation: the card while it waits, one line once it is answered or nobody waits any more. */
export function questionView(store: Store, question: Question, open: boolean): TemplateResult {
  if (open) return html`<drover-question .store=${store} .question=${question}></drover-question>`;
  return html`<div class="line ${question.kind === 'canary' ? 'warn' : ''}">${icon(question.kind === 'canary' ? 'warning' : 'globe')}<span class="words">${answered(question)}: <span class="detail" title=${question.why}>${question.why}</span></span>
    <span class="at">${clock(question.at)}</span>${iconButton('inspect', 'Inspect this question', () => store.select(question.id), 'on-hover')}</div>`;
}

function answered({ kind, answer }: Question): string {
  if (!answer) return 'No longer asked';
  if (kind === 'canary') return answer.result === 'allow' ? 'You let it go on' : 'You stopped the session';
  if (answer.result === 'deny') return 'Refused by you';
  const scopes: Record<Scope, string> = { once: 'once', session: 'for this session', always: 'from now on' };
  return `Allowed by you ${scopes[answer.scope]}`;
}
