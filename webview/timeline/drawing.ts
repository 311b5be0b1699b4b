import type { Bar, Lane } from './model.ts';
import { type Span, toX } from './scale.ts';

/** What is drawn: one bar, or several that are too narrow and too close to tell apart. */
export interface Shape {
  key: string;
  bar: Bar;
  /** Bars in it; more than one is drawn as one and opens by zooming in. */
  count: number;
  span: Span;
  /** CSS px. */
  x: number;
  width: number;
}

/** A bar is never narrower than this, in CSS px, so that the shortest call can be hit. */
const NARROWEST = 3;

/** The shapes of a lane that are in view. At most a few per pixel of width and row, however long the session. */
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
      last.count++;
      last.span.to = Math.max(last.span.to, to);
      last.width = Math.max(right - last.x, NARROWEST);
      if (bar.bad) last.bar = { ...last.bar, bad: true };
      continue;
    }
    const shape = {
      key: bar.key,
      bar,
      count: 1,
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
  last.bar.kind === bar.kind &&
  right - left < NARROWEST &&
  (last.count > 1 || last.width <= NARROWEST) &&
  left - (last.x + last.width) < 1;
