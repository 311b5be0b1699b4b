import { tea } from './teas.js';

/**
 * When to pour the water for each tea, in seconds from the start, so that all are ready at the same moment.
 * The tea that steeps longest starts at 0; the one to pour first comes first.
 */
export function schedule(names) {
  const teas = names.map(tea);
  const longest = teas.map(({ seconds }) => seconds).sort().at(-1) ?? 0;
  return teas
    .map(({ name, celsius, seconds }) => ({ name, celsius, pourAt: longest - seconds }))
    .toSorted((a, b) => a.pourAt - b.pourAt);
}
