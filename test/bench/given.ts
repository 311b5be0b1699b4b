import type { Part } from '../../scripts/setup.mjs';
import type { Promised } from './figure.ts';

/** What scripts/bench.mjs hands over. */
export interface Given {
  /** The real parts that were found. */
  have: Partial<Record<Part, string>>;
  /** Name prefixes; empty means all. */
  groups: string[];
  json: boolean;
}

/** Measures one group. `say` is for progress, never for figures. */
export type Bench = (given: Given, say: (text: string) => void) => Promise<Promised[]>;
