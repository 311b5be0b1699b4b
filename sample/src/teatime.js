import { clock } from './clock.js';
import { schedule } from './schedule.js';
import { tea } from './teas.js';

/** A card for the kitchen: one line for each tea, and one for the moment when all are ready. */
export function teatime(names) {
  const plan = schedule(names);
  const [first] = plan;
  if (!first) return 'No tea today.';
  const lines = plan.map(({ name, celsius, pourAt }) => `${clock(pourAt)}  pour the ${name} (${celsius} °C)`);
  return [...lines, `${clock(tea(first.name).seconds)}  tea is ready`].join('\n');
}
