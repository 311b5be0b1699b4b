/** One measured value beside its baseline. */
export interface Figure {
  name: string;
  value: number;
  unit: 'ms' | 'bytes' | '%';
  /** The same thing measured of the other design, in the same run; for a size, the limit. */
  baseline: number;
  /** value / baseline. */
  ratio: number;
}

/** What the project promises of a figure: the largest ratio. */
export interface Promised extends Figure {
  atMost: number;
}

export const figure = (
  name: string,
  unit: Figure['unit'],
  value: number,
  baseline: number,
  atMost: number,
): Promised => ({ name, value, unit, baseline, ratio: value / baseline, atMost });

/** The value below which a share of the samples lies; linear between neighbours. `share` is 0…1. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place % 1);
}
