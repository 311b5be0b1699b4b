import { type VirtualItem, VirtualizerController } from '@tanstack/lit-virtual';
import { html, type TemplateResult } from 'lit';
import { createRef, ref } from 'lit/directives/ref.js';
import { repeat } from 'lit/directives/repeat.js';
import type { Disposable } from '../../src/protocol/disposable.ts';
import type { EventId } from '../../src/protocol/ids.ts';
import type { ApprovalCard } from '../approval-card.ts';
import type { QuestionCard } from '../question-card.ts';
import type { Wish } from '../store.ts';
import { vars } from '../vars.ts';
import { View } from '../view.ts';
import { rowView } from './row-view.ts';
import { conversationRows, estimateHeight, type Row } from './rows.ts';

/** CSS px from the end within which the list counts as being at its end. */
const AT_END = 32;

/** CSS px a card may move without having slid away under the pointer. */
const SLID = 6;

/** Frames a wish may take: far rows are drawn, measured and moved before they are in place. */
const WISH_FRAMES = 40;

/** The conversation of the shown thread: a feed of which only what is near the view is in the page. */
export class Conversation extends View {
  #rows: Row[] = [];
  #shown: string | null = null;
  #atEnd = true;
  #lastTop = 0;
  #wish: { wish: Wish; frames: number } | null = null;
  #wishes: Disposable | undefined;
  #focusedRow: string | null = null;
  #cardTops = new Map<EventId, number>();
  readonly #scroller = createRef<HTMLElement>();
  readonly #list = new VirtualizerController<HTMLElement, HTMLElement>(this, {
    count: 0,
    getScrollElement: () => this.#scroller.value ?? null,
    estimateSize: (index) => this.#estimate(index),
    getItemKey: (index) => this.#rows[index]?.key ?? index,
    overscan: 8,
    paddingStart: 8,
    paddingEnd: 16,
    rangeExtractor: (range) => this.#withFocused(range.startIndex - range.overscan, range.endIndex + range.overscan),
  });

  override connectedCallback(): void {
    super.connectedCallback();
    this.#wishes = this.store.onWish((wish) => {
      this.#wish = { wish, frames: WISH_FRAMES };
      this.requestUpdate();
    });
  }

  override disconnectedCallback(): void {
    this.#wishes?.dispose();
    super.disconnectedCallback();
  }

  protected override render(): TemplateResult {
    const session = this.store.session;
    const thread = session && this.store.thread ? session.threads.get(this.store.thread) : undefined;
    if (!session || !thread) return html`<div class="scroller" ${ref(this.#scroller)}></div>`;
    this.#rows = conversationRows(session, thread, this.store.previews);
    const list = this.#list.getVirtualizer();
    list.setOptions({ ...list.options, count: this.#rows.length });
    const item = ({ index, key, start }: VirtualItem) => {
      const row = this.#rows[index];
      return row
        ? html`<article class="row" data-index=${index} data-key=${key} tabindex="-1" aria-posinset=${index + 1} aria-setsize=${this.#rows.length} ${vars({ '--y': `${start}px` })}>${rowView(this.store, session, thread, row)}</article>`
        : html``;
    };
    return html`<div class="scroller" role="feed" tabindex="0" aria-label="Conversation of ${thread.agentName}" ${ref(this.#scroller)}
        @scroll=${this.#onScroll} @keydown=${this.#onKey}>
        <div class="sizer" ${vars({ '--h': `${list.getTotalSize()}px` })}>${repeat(list.getVirtualItems(), (one) => one.key, item)}</div>
      </div>
      ${this.#atEnd ? '' : html`<vscode-button class="to-end" appearance="secondary" @click=${this.#toEnd}>Jump to the latest</vscode-button>`}`;
  }

  protected override willUpdate(): void {
    const focused = this.contains(document.activeElement) ? document.activeElement?.closest<HTMLElement>('.row') : null;
    this.#focusedRow = focused?.dataset.key ?? null;
  }

  protected override updated(): void {
    this.#keepFocus();
    const scroller = this.#scroller.value;
    if (!scroller || this.#rows.length === 0) return;
    const list = this.#list.getVirtualizer();
    for (const row of scroller.querySelectorAll<HTMLElement>('.row')) list.measureElement(row);
    if (this.#shown !== this.store.thread) this.#enterThread();
    if (this.#wish) this.#grant(this.#wish);
    else if (this.#atEnd) this.#scrollToEnd(scroller);
    for (const call of this.#cardsMoved(scroller)) this.store.approvals.slid(call);
  }

  /** Cards that are somewhere else on screen than when this was last asked. */
  #cardsMoved(scroller: HTMLElement): EventId[] {
    const moved: EventId[] = [];
    const tops = new Map<EventId, number>();
    for (const item of this.#list.getVirtualizer().getVirtualItems()) {
      const row = this.#rows[item.index];
      if (row?.kind !== 'call') continue;
      const top = item.start - scroller.scrollTop;
      tops.set(row.key, top);
      if (Math.abs(top - (this.#cardTops.get(row.key) ?? top)) > SLID) moved.push(row.key);
    }
    this.#cardTops = tops;
    return moved;
  }

  /** What had the focus in a row may be gone, as the buttons of an answered card are: then the row itself has it. */
  #keepFocus(): void {
    if (this.#focusedRow === null || document.activeElement !== document.body) return;
    this.querySelector<HTMLElement>(`.row[data-key="${CSS.escape(this.#focusedRow)}"]`)?.focus({ preventScroll: true });
  }

  #estimate(index: number): number {
    const row = this.#rows[index];
    return row && this.store.session ? estimateHeight(row, this.store.session) : 30;
  }

  /** The rows in range, and the one that has the focus wherever it is: a focused row is never taken out of the page. */
  #withFocused(start: number, end: number): number[] {
    const focused = document.activeElement?.closest<HTMLElement>('.row')?.dataset.key;
    const indexes: number[] = [];
    const first = Math.max(0, start);
    const last = Math.min(this.#rows.length - 1, end);
    for (let i = first; i <= last; i++) indexes.push(i);
    const at = focused === undefined ? -1 : this.#rows.findIndex((row) => row.key === focused);
    if (at >= 0 && at < first) indexes.unshift(at);
    if (at > last) indexes.push(at);
    return indexes;
  }

  /** A thread is shown anew: at its end, or where the person had been. */
  #enterThread(): void {
    this.#shown = this.store.thread;
    const anchor = this.store.anchor;
    const index = anchor ? this.#rows.findIndex((row) => row.key === anchor.key) : -1;
    this.#atEnd = index < 0;
    if (!anchor || index < 0) return;
    this.#list.getVirtualizer().scrollToIndex(index, { align: 'start' });
    requestAnimationFrame(() => this.#scroller.value?.scrollBy(0, anchor.offset));
  }

  readonly #onScroll = (): void => {
    const scroller = this.#scroller.value;
    if (!scroller) return;
    const top = scroller.scrollTop;
    const distance = scroller.scrollHeight - top - scroller.clientHeight;
    const was = this.#atEnd;
    if (distance <= AT_END) this.#atEnd = true;
    // What grows below leaves the end behind without anybody scrolling: only a move up is a wish to stay.
    else if (top < this.#lastTop - 1) this.#atEnd = false;
    this.#lastTop = top;
    this.#rememberAnchor(scroller);
    // The person moved it themselves.
    this.#cardsMoved(scroller);
    if (was !== this.#atEnd) this.requestUpdate();
  };

  #rememberAnchor(scroller: HTMLElement): void {
    if (this.#atEnd) {
      this.store.setAnchor(null);
      return;
    }
    const item = this.#list.getVirtualizer().getVirtualItemForOffset(scroller.scrollTop);
    const row = item && this.#rows[item.index];
    if (item && row) this.store.setAnchor({ key: row.key, offset: Math.round(scroller.scrollTop - item.start) });
  }

  readonly #toEnd = (): void => {
    this.#atEnd = true;
    this.#scroller.value?.focus();
    this.requestUpdate();
  };

  #scrollToEnd(scroller: HTMLElement): void {
    scroller.scrollTop = scroller.scrollHeight;
    this.#lastTop = scroller.scrollTop;
  }

  /** Moves toward a row until it is drawn, then does what was wished. */
  #grant(pending: { wish: Wish; frames: number }): void {
    const { wish } = pending;
    const key = wish.type === 'reveal' ? wish.id : wish.call;
    const index = this.#rows.findIndex((row) => row.key === key);
    if (index < 0 || --pending.frames <= 0) {
      if (pending.frames <= 0 || index < 0) this.#wish = null;
      return;
    }
    this.#atEnd = false;
    const list = this.#list.getVirtualizer();
    const row = this.querySelector<HTMLElement>(`.row[data-key="${CSS.escape(key)}"]`);
    const visible = row && this.#inView(row);
    if (!visible) {
      list.scrollToIndex(index, { align: 'auto' });
      requestAnimationFrame(() => this.requestUpdate());
      return;
    }
    this.#wish = null;
    this.#onScroll();
    if (wish.type === 'focus_approval')
      row.querySelector<ApprovalCard | QuestionCard>('drover-approval, drover-question')?.focusCard();
    else row.focus({ preventScroll: true });
  }

  #inView(row: HTMLElement): boolean {
    const box = row.getBoundingClientRect();
    const frame = this.#scroller.value?.getBoundingClientRect();
    if (!frame) return false;
    return box.top >= frame.top - 1 && (box.bottom <= frame.bottom + 1 || box.height >= frame.height);
  }

  /** The keys of a feed: Page Up and Page Down go from one article to the next while one has the focus. */
  readonly #onKey = (event: KeyboardEvent): void => {
    const step = event.key === 'PageDown' ? 1 : event.key === 'PageUp' ? -1 : 0;
    const row = event.target instanceof HTMLElement ? event.target.closest<HTMLElement>('.row') : null;
    if (step === 0 || !row) return;
    const next = this.#rows[Number(row.dataset.index) + step];
    if (!next) return;
    event.preventDefault();
    this.#wish = {
      wish: { type: 'reveal', id: next.key as EventId },
      frames: WISH_FRAMES,
    };
    this.requestUpdate();
  };
}
customElements.define('drover-conversation', Conversation);
