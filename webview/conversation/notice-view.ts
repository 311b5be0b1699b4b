import { html, nothing, type TemplateResult } from 'lit';
import type { ErrorCause } from '../../src/protocol/record.ts';
import { openQuestions } from '../../src/session/fold-question.ts';
import type { Notice } from '../../src/session/state.ts';
import { bytes, clock, count, duration } from '../format.ts';
import { icon, iconButton } from '../parts.ts';
import { questionView } from '../question-card.ts';
import type { Store } from '../store.ts';

type Kinds = Notice['notice'];
type Of<K extends Kinds['kind']> = Extract<Kinds, { kind: K }>;

const setKey = (store: Store) =>
  html`<vscode-button appearance="primary" @click=${() => store.host.post({ type: 'run', command: 'setApiKey' })}>Set API Key</vscode-button>`;
const rehearse = (store: Store) =>
  html`<vscode-button appearance="secondary" @click=${() => store.host.post({ type: 'run', command: 'rehearse' })}>Rehearse</vscode-button>`;

/** What a person can do about it, beyond writing again. */
function wayOut(store: Store, cause: ErrorCause | null): TemplateResult | typeof nothing {
  if (cause === 'no_key') return html`<div class="buttons">${setKey(store)}${rehearse(store)}</div>`;
  if (cause === 'bad_key' || cause === 'permission') return html`<div class="buttons">${setKey(store)}</div>`;
  return nothing;
}

/** What happens next, as the event itself says. */
function next(error: Of<'error'>): string {
  if (error.error.retry_status.type === 'retrying') {
    return error.retryInMs === null ? 'It will be tried again.' : `It is tried again in ${duration(error.retryInMs)}.`;
  }
  return error.error.retry_status.type === 'terminal' ? 'The session has ended.' : '';
}

function errorNotice(store: Store, notice: Notice, error: Of<'error'>): TemplateResult {
  const retrying = error.error.retry_status.type === 'retrying';
  const after = next(error);
  return html`<div class="notice ${retrying ? 'warn' : 'bad'}">
    ${icon(retrying ? 'warning' : 'error')}
    <div class="notice-text"><p>${error.error.message}${after ? html` <span class="quiet">${after}</span>` : nothing}</p>${wayOut(store, error.cause)}</div>
    ${iconButton('inspect', 'Inspect this error', () => store.select(notice.id), 'on-hover')}
  </div>`;
}

const SANDBOX: Readonly<Record<Of<'sandbox'>['state'], { icon: string; words: string }>> = {
  provisioning: { icon: 'vm-outline', words: 'Making a sandbox' },
  ready: { icon: 'vm-active', words: 'Sandbox ready' },
  failed: { icon: 'error', words: 'No sandbox could be made' },
  lost: { icon: 'debug-disconnect', words: 'The sandbox is gone; the next call gets a fresh one' },
  removed: { icon: 'vm-outline', words: 'Sandbox removed' },
};

/** One quiet line. */
function line(store: Store, notice: Notice, sign: string, words: string, detail: string, tone = ''): TemplateResult {
  return html`<div class="line ${tone}">${icon(sign)}<span class="words">${words}${detail ? html`: <span class="detail" title=${detail}>${detail}</span>` : nothing}</span>
    <span class="at">${clock(notice.at)}</span>${iconButton('inspect', 'Inspect this event', () => store.select(notice.id), 'on-hover')}</div>`;
}

function mcpWords({ tools, leftOut }: Of<'mcp'>): string {
  const offered = count(tools, 'tool');
  return leftOut.length > 0 ? `${offered}; not shown to the model: ${leftOut.join(', ')}` : offered;
}

/** Something a person should know that nobody said. */
export function noticeView(store: Store, notice: Notice): TemplateResult {
  const what = notice.notice;
  switch (what.kind) {
    case 'error':
      return errorNotice(store, notice, what);
    case 'damaged':
      return html`<div class="notice warn">${icon('warning')}<div class="notice-text"><p>A part of this session’s log could not be read (${bytes(what.bytes)}): ${what.reason}. What is before and after it is kept, and the agent knows of the gap.</p></div>
        ${iconButton('inspect', 'Inspect this event', () => store.select(notice.id), 'on-hover')}</div>`;
    case 'mcp':
      return line(store, notice, 'plug', `MCP server ${what.server}`, mcpWords(what));
    case 'interrupted':
      return line(
        store,
        notice,
        'debug-pause',
        what.actor?.type === 'person' ? 'Interrupted by you' : 'Interrupted',
        '',
      );
    case 'question': {
      const question = store.session?.questions.find((one) => one.id === what.question);
      const open = store.session ? openQuestions(store.session) : [];
      return question ? questionView(store, question, open.includes(question)) : html``;
    }
    case 'secret':
      return html`<div class="notice bad">${icon('warning')}<div class="notice-text"><p>A secret, ${what.name}, was about to be ${what.where === 'model_request' ? 'sent to the model' : 'written to this session’s log'}, and was taken out. Unless somebody typed it, there should be no way for it to come there: see what the session did just before.</p></div>
        ${iconButton('inspect', 'Inspect this alarm', () => store.select(notice.id), 'on-hover')}</div>`;
    case 'sandbox': {
      const { icon: sign, words } = SANDBOX[what.state];
      const tone = what.state === 'failed' ? 'bad' : what.state === 'lost' ? 'warn' : '';
      return line(store, notice, sign, words, what.text, tone);
    }
    case 'restored': {
      const words = `Files put back${what.actor?.type === 'person' ? ' by you' : ''}, ${count(what.files, 'file')} changed; the agent is told`;
      return line(store, notice, 'discard', words, what.names.join(', '));
    }
    case 'no_checkpoint':
      return html`<div class="notice warn">${icon('warning')}<div class="notice-text"><p>${what.text}</p></div>
        ${iconButton('inspect', 'Inspect this event', () => store.select(notice.id), 'on-hover')}</div>`;
    case 'forked':
      return line(store, notice, 'repo-forked', 'Forked here: what is above is a copy of', what.from);
  }
}
