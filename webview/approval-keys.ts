import type { EventId } from '../src/protocol/ids.ts';
import type { Asking } from '../src/session/state.ts';
import type { ApprovalCard } from './approval-card.ts';
import type { QuestionCard } from './question-card.ts';
import type { Store } from './store.ts';

const isMac = navigator.platform.startsWith('Mac');

/** True if all of the element's head is on screen: a person can see what they answer. */
function inSight(element: Element): boolean {
  const head = element.querySelector('.approval-head')?.getBoundingClientRect();
  const buttons = element.querySelector('.buttons, .reason')?.getBoundingClientRect();
  const frame = element.closest('.scroller')?.getBoundingClientRect();
  if (!head || !buttons || !frame) return false;
  // A card taller than the view is seen once its buttons are.
  const tall = buttons.bottom - head.top > frame.height;
  return buttons.bottom <= frame.bottom + 1 && (tall || head.top >= frame.top - 1);
}

/**
 * Ctrl+Enter allows and Ctrl+Backspace denies (Cmd on a Mac) the card that has the focus, else the oldest in the shown
 * conversation, else the oldest of all.
 * A card that is not in sight is only brought there, and one that has just appeared takes no key: no blind answers.
 */
export class ApprovalKeys {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  onKey(event: KeyboardEvent): void {
    if (event.key !== 'Enter' && event.key !== 'Backspace') return;
    if (!(isMac ? event.metaKey : event.ctrlKey) || event.altKey || event.shiftKey || event.isComposing) return;
    if (this.#isWriting(event.target)) return;
    const call = this.#target();
    if (!call) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.repeat) return;
    this.#answer(call, event.key === 'Enter' ? 'allow' : 'deny');
  }

  /** In a text that is being written these keys belong to the text. */
  #isWriting(target: EventTarget | null): boolean {
    if (target instanceof HTMLTextAreaElement) return target.value !== '';
    return target instanceof HTMLElement && target.tagName === 'VSCODE-TEXT-FIELD';
  }

  #target(): Asking | undefined {
    const session = this.#store.session;
    if (!session) return undefined;
    const open = this.#store.approvals.open(session);
    const focused = document.activeElement?.closest<HTMLElement>('.approval')?.dataset.call;
    return open.find((call) => call.id === focused) ?? this.#store.approvalTarget();
  }

  #card(call: EventId): ApprovalCard | QuestionCard | null {
    return (
      document
        .querySelector(`.approval[data-call="${CSS.escape(call)}"]`)
        ?.closest<ApprovalCard | QuestionCard>('drover-approval, drover-question') ?? null
    );
  }

  #answer(call: Asking, result: 'allow' | 'deny'): void {
    const store = this.#store;
    const card = this.#card(call.id);
    if (!card || !inSight(card)) {
      store.focusApproval(call.id);
      return;
    }
    if (!store.session || !store.writable || !store.approvals.armed(call.id)) return;
    card.focusCard();
    if (result === 'deny') card.startDenying();
    else store.approvals.send(store.session, call.id, 'allow', {});
  }
}
