import { html, nothing, svg, type TemplateResult } from 'lit';
import { createRef, ref } from 'lit/directives/ref.js';
import { repeat } from 'lit/directives/repeat.js';
import { duration, ms } from '../format.ts';
import { icon, iconButton } from '../parts.ts';
import { vars } from '../vars.ts';
import { View } from '../view.ts';
import { type Shape, shapes } from './drawing.ts';
import { type Bar, type Lane, lanes } from './model.ts';
import { marks, moved, type Span, showing, toX, zoomed } from './scale.ts';

/** CSS px. */
const BAR = 16;
const GAP = 3;
const PAD = 7;
const CHARACTER = 6.4;
/** From the middle of the mark of kept files to its corners. */
const MARK = 4.5;

const STEP = 0.7;

const laneHeight = (lane: Lane): number => PAD * 2 + lane.rows * BAR + (lane.rows - 1) * GAP;

const shortened = (text: string, room: number): string => (text.length > room ? `${text.slice(0, room - 1)}…` : text);

/** A small diamond where a bar ends: what follows stands on the files as they were here. */
const keptMark = (x: number, y: number): string =>
  `M${x} ${y - MARK}l${MARK} ${MARK}l${-MARK} ${MARK}l${-MARK} ${-MARK}z`;

const KINDS = [
  ['model', 'Model request'],
  ['tool', 'Tool call'],
  ['wait', 'Waits for you'],
  ['sandbox', 'Sandbox'],
] as const;

/** What happened when: a lane per thread, a bar per request, call and wait. Only what is in view is drawn. */
export class Timeline extends View {
  /** What is looked at; null follows the whole session while it grows. */
  #span: Span | null = null;
  #width = 0;
  #lanes: Lane[] = [];
  #focused: string | null = null;
  #takeFocus = false;
  readonly #plot = createRef<HTMLElement>();
  readonly #resized = new ResizeObserver(() => this.#measure());

  override disconnectedCallback(): void {
    this.#resized.disconnect();
    super.disconnectedCallback();
  }

  protected override firstUpdated(): void {
    if (this.#plot.value) this.#resized.observe(this.#plot.value);
  }

  protected override updated(): void {
    if (!this.#takeFocus) return;
    this.#takeFocus = false;
    this.querySelector<SVGElement>('.bar[tabindex="0"]')?.focus();
  }

  #measure(): void {
    const width = this.#plot.value?.clientWidth ?? 0;
    if (width === this.#width) return;
    this.#width = width;
    this.requestUpdate();
  }

  /** From the first thing that happened to the last, with a little air. */
  #whole(): Span {
    const session = this.store.session;
    const now = this.store.now();
    if (!session) return { from: now - 1000, to: now };
    let from = Number.POSITIVE_INFINITY;
    let to = 0;
    for (const lane of this.#lanes) {
      for (const bar of lane.bars) {
        from = Math.min(from, bar.from);
        to = Math.max(to, bar.to ?? now);
      }
    }
    if (to === 0) from = to = ms(session.createdAt);
    const air = Math.max((to - from) * 0.02, 100);
    return { from: from - air, to: to + air };
  }

  protected override render(): TemplateResult {
    const session = this.store.session;
    if (!session) return html``;
    this.#lanes = lanes(session, this.store.index.sandboxes);
    const whole = this.#whole();
    const span = this.#span ?? whole;
    const kept = this.#lanes.some((lane) => lane.bars.some((bar) => bar.kept));
    const empty = this.#lanes.every((lane) => lane.bars.length === 0);
    return html`<div class="timeline-bar">
        <div class="legend">${KINDS.map(([kind, name]) => html`<span><i class="swatch ${kind}"></i>${name}</span>`)}${kept ? html`<span title="Changes by this call, Restore files to here and Fork session from here are a click on the bar away"><i class="kept-sign"></i>Files kept</span>` : nothing}</div>
        <span class="quiet span-length">${duration(span.to - span.from)}</span>
        ${iconButton('zoom-out', 'Zoom out (−)', () => this.#zoom(1 / STEP))}${iconButton('zoom-in', 'Zoom in (+)', () => this.#zoom(STEP))}${iconButton('screen-full', 'Fit the whole session (0)', () => this.#fit())}
      </div>
      <div class="timeline-scroll">
        <div class="lane-names"><div class="axis-corner"></div>${this.#lanes.map((lane) => this.#name(lane))}</div>
        <div class="plot" ${ref(this.#plot)} role="group" aria-label="Timeline. Arrow keys move between bars, Enter inspects, plus and minus zoom." @wheel=${{ handleEvent: this.#onWheel, passive: false }} @pointerdown=${this.#onPointer} @keydown=${this.#onKey}>
          ${this.#axis(span)}${this.#lanes.map((lane) => this.#lane(lane, span))}
          ${empty ? html`<p class="quiet none">Nothing has happened yet.</p>` : nothing}
        </div>
      </div>`;
  }

  #name(lane: Lane): TemplateResult {
    const thread = lane.thread;
    const content = html`${icon(thread ? 'agent' : 'vm')}<span>${lane.name}</span>`;
    return html`<div class="lane-name" ${vars({ '--lane': `${laneHeight(lane)}px` })}>${
      thread
        ? html`<button type="button" class="link-button" title="Show ${lane.name}’s conversation" @click=${() => {
            this.store.showThread(thread);
            this.store.showTab('conversation');
          }}>${content}</button>`
        : content
    }</div>`;
  }

  #axis(span: Span): TemplateResult {
    return html`<svg class="axis" width=${this.#width} height="22" aria-hidden="true">${marks(span, this.#width).map(
      (mark) => {
        const x = Math.round(toX(mark.time, span, this.#width)) + 0.5;
        const fits = x + 4 + mark.label.length * CHARACTER < this.#width;
        return svg`<line x1=${x} x2=${x} y1="14" y2="22"></line>${fits ? svg`<text x=${x + 4} y="15">${mark.label}</text>` : nothing}`;
      },
    )}</svg>`;
  }

  #lane(lane: Lane, span: Span): TemplateResult {
    const height = laneHeight(lane);
    const drawn = shapes(lane, span, this.#width, this.store.now());
    return html`<svg class="lane" width=${this.#width} height=${height} role="group" aria-label=${lane.name}>
      ${marks(span, this.#width).map((mark) => {
        const x = Math.round(toX(mark.time, span, this.#width)) + 0.5;
        return svg`<line class="grid" x1=${x} x2=${x} y1="0" y2=${height}></line>`;
      })}
      ${repeat(
        drawn,
        (shape) => shape.key,
        (shape) => this.#shape(shape),
      )}
    </svg>`;
  }

  #shape(shape: Shape): TemplateResult {
    const { bars, x, width } = shape;
    const bar = bars[0];
    const y = PAD + bar.row * (BAR + GAP);
    const many = bars.length > 1;
    const label = many ? `${bars.length} bars too close together to draw, from ${bar.label}` : bar.label;
    const took = bar.to === null ? 'still going on' : duration(shape.span.to - shape.span.from);
    const room = Math.floor((width - 8) / CHARACTER);
    const written = many ? `${bars.length}×` : bar.short;
    const words = room < Math.min(4, written.length) ? '' : shortened(written, room);
    const selected = !many && this.store.selection === bar.id;
    const classes = `bar ${bar.kind}${shape.bad ? ' bad' : ''}${bar.to === null ? ' open' : ''}${selected ? ' selected' : ''}`;
    const tabStop = this.#tabStop();
    return svg`<g class=${classes} role="button" tabindex=${bars.some((one) => one.key === tabStop) ? 0 : -1} aria-label="${label}, ${took}" data-key=${shape.key}
      @click=${() => this.#choose(shape)} @focus=${() => this.#focus(shape)}>
      <title>${label} · ${took}</title>
      <rect x=${x} y=${y} width=${width} height=${BAR} rx="2"></rect>${words ? svg`<text x=${x + 5} y=${y + 12}>${words}</text>` : nothing}${bars.some((one) => one.kept) ? svg`<path class="kept" d=${keptMark(x + width, y)}></path>` : nothing}
    </g>`;
  }

  /** The one bar that Tab reaches: the last that had the focus, else the first. */
  #tabStop(): string | null {
    if (this.#focused !== null) return this.#focused;
    for (const lane of this.#lanes) if (lane.bars[0]) return lane.bars[0].key;
    return null;
  }

  #focus(shape: Shape): void {
    if (shape.bars.some((bar) => bar.key === this.#focused)) return;
    this.#focused = shape.bars[0].key;
    this.requestUpdate();
  }

  #choose(shape: Shape): void {
    this.#focus(shape);
    if (shape.bars.length === 1) {
      this.store.select(shape.bars[0].id);
      return;
    }
    const pad = Math.max((shape.span.to - shape.span.from) * 0.2, 20);
    this.#takeFocus = true;
    this.#look({ from: shape.span.from - pad, to: shape.span.to + pad });
  }

  #look(span: Span): void {
    const whole = this.#whole();
    const all = span.to - span.from >= whole.to - whole.from;
    this.#span = all ? null : span;
    this.requestUpdate();
  }

  #fit(): void {
    this.#span = null;
    this.requestUpdate();
  }

  /** @param at the time that stays where it is; default: that of the bar with the focus, if it is in view. */
  #zoom(factor: number, at = this.#focusTime()): void {
    const whole = this.#whole();
    this.#look(zoomed(this.#span ?? whole, factor, at, whole));
  }

  #focusTime(): number {
    const span = this.#span ?? this.#whole();
    const middle = (span.from + span.to) / 2;
    if (!this.contains(document.activeElement)) return middle;
    const bar = this.#lanes.flatMap((lane) => lane.bars).find((one) => one.key === this.#focused);
    const at = bar ? (bar.from + (bar.to ?? this.store.now())) / 2 : middle;
    return at >= span.from && at <= span.to ? at : middle;
  }

  /** The time at an x of the plot, in CSS px. */
  #timeAt(x: number): number {
    const span = this.#span ?? this.#whole();
    return span.from + (x / Math.max(1, this.#width)) * (span.to - span.from);
  }

  #pan(px: number): void {
    const whole = this.#whole();
    const span = this.#span ?? whole;
    this.#look(moved(span, (px / Math.max(1, this.#width)) * (span.to - span.from), whole));
  }

  /** Up and down zoom at the pointer, sideways (or with Shift) moves; where lanes overflow, zooming needs Ctrl. */
  readonly #onWheel = (event: WheelEvent): void => {
    const plot = this.#plot.value;
    const scroller = plot?.parentElement;
    if (!plot || !scroller) return;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      this.#pan(sideways);
      return;
    }
    const overflows = scroller.scrollHeight > scroller.clientHeight + 1;
    if (overflows && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.#zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, this.#timeAt(event.clientX - plot.getBoundingClientRect().left));
  };

  /** Dragging the ground moves the view. */
  readonly #onPointer = (event: PointerEvent): void => {
    const plot = this.#plot.value;
    if (!plot || event.button !== 0 || (event.target instanceof Element && event.target.closest('.bar'))) return;
    let last = event.clientX;
    const move = (next: PointerEvent) => {
      this.#pan(last - next.clientX);
      last = next.clientX;
    };
    const end = () => {
      plot.removeEventListener('pointermove', move);
      plot.removeEventListener('pointerup', end);
      plot.removeEventListener('pointercancel', end);
    };
    plot.setPointerCapture(event.pointerId);
    plot.addEventListener('pointermove', move);
    plot.addEventListener('pointerup', end);
    plot.addEventListener('pointercancel', end);
  };

  readonly #onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key;
    if (key === '+' || key === '=') this.#zoom(STEP);
    else if (key === '-') this.#zoom(1 / STEP);
    else if (key === '0') this.#fit();
    else if (key === 'Enter' || key === ' ') this.#press();
    else if (!this.#step(key)) return;
    event.preventDefault();
  };

  #press(): void {
    this.querySelector('.bar[tabindex="0"]')?.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  }

  /** Moves the focus: left and right in time, up and down to the bar of the next lane that is nearest in time. */
  #step(key: string): boolean {
    const stop = this.#tabStop();
    const laneAt = this.#lanes.findIndex((lane) => lane.bars.some((bar) => bar.key === stop));
    const lane = this.#lanes[laneAt];
    const bar = lane?.bars.find((one) => one.key === stop);
    if (!lane || !bar) return false;
    const target = this.#neighbour(key, laneAt, lane, bar);
    if (target === null) return false;
    if (!target) return true;
    this.#focused = target.key;
    this.#takeFocus = true;
    const whole = this.#whole();
    this.#look(showing(this.#span ?? whole, { from: target.from, to: target.to ?? this.store.now() }, whole));
    return true;
  }

  /** The bar a key leads to; undefined at the edge; null for a key that leads nowhere. */
  #neighbour(key: string, laneAt: number, lane: Lane, bar: Bar): Bar | undefined | null {
    const at = lane.bars.indexOf(bar);
    // Bars that are drawn as one are one step.
    const here = shapes(lane, this.#span ?? this.#whole(), this.#width, this.store.now()).find((shape) =>
      shape.bars.includes(bar),
    );
    const elsewhere = (one: Bar) => one !== bar && !here?.bars.includes(one);
    if (key === 'ArrowRight') return lane.bars.find((one, i) => i > at && elsewhere(one));
    if (key === 'ArrowLeft') return lane.bars.findLast((one, i) => i < at && elsewhere(one));
    if (key === 'Home') return lane.bars[0];
    if (key === 'End') return lane.bars.at(-1);
    if (key !== 'ArrowDown' && key !== 'ArrowUp') return null;
    const others = (key === 'ArrowDown' ? this.#lanes.slice(laneAt + 1) : this.#lanes.slice(0, laneAt).reverse()).find(
      (one) => one.bars.length > 0,
    );
    return others?.bars.reduce((best, one) =>
      Math.abs(one.from - bar.from) < Math.abs(best.from - bar.from) ? one : best,
    );
  }
}
customElements.define('drover-timeline', Timeline);
