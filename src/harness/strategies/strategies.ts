import { elide } from './elide.ts';
import { everything } from './everything.ts';
import type { Strategy } from './strategy.ts';

const all: readonly Strategy[] = [elide, everything];

/** The strategy of this name; of an unknown one, written by a newer version, the default. */
export const strategyNamed = (name: string): Strategy => all.find((one) => one.name === name) ?? elide;
