import type { Bar, Lane } from './model.ts';
import { type Span, toX } from './scale.ts';

/** What is drawn: one bar, or several that are too narrow and too close to tell apart. */
export interface Shape {
  key: string;
  /** In the order of their start; more than one is drawn as one and opens by zooming in. */
  bars: [Bar, ...Bar[]];
  bad: boolean;
  span: Span;
  /** CSS px. */
  x: number;
  width: number;
}

/** A bar is never narrower than this, in CSS px, so that the shortest call can be hit. */
const NARROWEST = 3;

/** Bars drawn as one are never wider than this together, in CSS px: a click on them must lead somewhere closer. */
const WIDEST_TOGETHER = 60;

/** The shapes of a lane that are in view. At most a few per ten pixels of width and row, however long the session. */
export function shapes(lane: Lane, span: Span, width: number, now: number): Shape[] {
  const result: Shape[] = [];
  const lastOfRow: (Shape | undefined)[] = [];
  for (const bar of lane.bars) {
    const to = bar.to ?? Math.max(now, bar.from);
    if (to < span.from || bar.from > span.to) continue;
    const left = Math.max(toX(bar.from, span, width), -4);
    const right = Math.min(toX(to, span, width), width + 4);
    const last = lastOfRow[bar.row];
    if (last && joins(last, bar, left, right)) {
      last.bars.push(bar);
      last.bad ||= bar.bad;
      last.span.to = Math.max(last.span.to, to);
      last.width = Math.max(right - last.x, last.width);
      continue;
    }
    const shape: Shape = {
      key: bar.key,
      bars: [bar],
      bad: bar.bad,
      span: { from: bar.from, to },
      x: left,
      width: Math.max(right - left, NARROWEST),
    };
    lastOfRow[bar.row] = shape;
    result.push(shape);
  }
  return result;
}

const joins = (last: Shape, bar: Bar, left: number, right: number): boolean =>
  last.bars[0].kind === bar.kind &&
  right - left < NARROWEST &&
  (last.bars.length > 1 || last.width <= NARROWEST) &&
  left - (last.x + last.width) < 1 &&
  right - last.x <= WIDEST_TOGETHER;
