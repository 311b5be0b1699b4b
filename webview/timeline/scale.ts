/** A stretch of time on the screen: ms since 1970. */
export interface Span {
  from: number;
  to: number;
}

/** The closest one can look, in ms. */
const CLOSEST = 100;

const STEPS = [
  10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000,
  1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000,
];

/** CSS px between two marks of the axis, at least. */
const MARK_PX = 90;

/** Where a time is, in CSS px from the left edge. */
export const toX = (time: number, span: Span, width: number): number =>
  ((time - span.from) / (span.to - span.from)) * width;

/** Looks closer (factor < 1) or from further away, keeping the time at `x` where it is; never beyond `whole`. */
export function zoomed(span: Span, factor: number, at: number, whole: Span): Span {
  const length = Math.min(Math.max((span.to - span.from) * factor, CLOSEST), whole.to - whole.from);
  const share = (at - span.from) / (span.to - span.from);
  return within({ from: at - share * length, to: at + (1 - share) * length }, whole);
}

/** Moves by `by` ms; never beyond `whole`. */
export const moved = (span: Span, by: number, whole: Span): Span =>
  within({ from: span.from + by, to: span.to + by }, whole);

function within(span: Span, whole: Span): Span {
  const length = Math.min(span.to - span.from, whole.to - whole.from);
  const from = Math.min(Math.max(span.from, whole.from), whole.to - length);
  return { from, to: from + length };
}

/** The same length, moved as little as needed to show `target`; longer if that does not fit. */
export function showing(span: Span, target: Span, whole: Span): Span {
  const length = span.to - span.from;
  const margin = length * 0.1;
  if (target.from >= span.from && target.to <= span.to) return span;
  if (target.to - target.from > length - 2 * margin) {
    const pad = (target.to - target.from) * 0.1;
    return within({ from: target.from - pad, to: target.to + pad }, whole);
  }
  const from = target.from < span.from ? target.from - margin : target.to + margin - length;
  return within({ from, to: from + length }, whole);
}

export interface Mark {
  time: number;
  label: string;
}

/** Round times for the axis, in local time, as many as there is room for. */
export function marks(span: Span, width: number): Mark[] {
  const room = Math.max(1, Math.floor(width / MARK_PX));
  const step = STEPS.find((one) => (span.to - span.from) / one <= room) ?? 86_400_000;
  const zone = new Date(span.from).getTimezoneOffset() * 60_000;
  const result: Mark[] = [];
  for (let time = Math.ceil((span.from - zone) / step) * step + zone; time <= span.to; time += step) {
    result.push({ time, label: label(new Date(time), step) });
  }
  return result;
}

function label(time: Date, step: number): string {
  const two = (n: number) => String(n).padStart(2, '0');
  const minutes = `${two(time.getHours())}:${two(time.getMinutes())}`;
  if (step >= 86_400_000) return time.toLocaleDateString();
  if (step >= 60_000) return minutes;
  const seconds = `${minutes}:${two(time.getSeconds())}`;
  return step >= 1000 ? seconds : `${seconds}.${String(time.getMilliseconds()).padStart(3, '0')}`;
}
