import { setImmediate as nextRound } from 'node:timers/promises';

/** Work at a stretch, ms: short enough that a window's other work never waits noticeably. */
const SLICE_MS = 8;

/** Cuts long work into slices, between which everything else gets its turn. */
export class Slices {
  #since = performance.now();

  get due(): boolean {
    return performance.now() - this.#since >= SLICE_MS;
  }

  async pause(): Promise<void> {
    await nextRound();
    this.#since = performance.now();
  }
}
