/** How hot the water is, in °C, and how long the tea steeps, in seconds. */
const TEAS = {
  assam: { celsius: 95, seconds: 240 },
  chamomile: { celsius: 100, seconds: 420 },
  darjeeling: { celsius: 90, seconds: 180 },
  gyokuro: { celsius: 60, seconds: 90 },
  oolong: { celsius: 85, seconds: 150 },
  sencha: { celsius: 75, seconds: 60 },
};

/** The tea of that name. Throws a RangeError that names the teas there are. */
export function tea(name) {
  if (!Object.hasOwn(TEAS, name)) {
    throw new RangeError(`There is no ${name}. We have ${Object.keys(TEAS).join(', ')}.`);
  }
  return { name, ...TEAS[name] };
}
