/** ms. A sync that takes less holds the event loop no longer than other work does that is done in one go. */
const QUICK_MS = 1;
/**
 * So many quick ones are needed to begin with, and for each ms that a sync takes. Handing one over costs about 1/16 ms:
 * so a stall of some ms that is met here holds the loop no longer than handing over all the quick ones would have.
 */
const PRICE = 16;
/** No more are needed, whatever the disk has done: its bad hour is over some time. */
const MOST_OWED = 8 * PRICE;
/** ms. After so much of it the event loop gets its turn, however quick each sync was. */
const TURN_MS = 4;

/**
 * Says whether the next sync is done here, where it holds the event loop, or in another thread. Handing one over costs
 * two switches of threads: nothing beside a disk's usual milliseconds, but half as much again as the sync where the disk
 * is very quick. Such a disk may stall all the same, and then the loop is held for that once, as it might have been by
 * the write just before. So a slow sync has its price: many more that are quick, in another thread, before one is done
 * here again.
 */
export class SyncPace {
  /** Quick syncs that are still to be seen. */
  #owed = PRICE;
  /** ms of this turn of the event loop that were spent here. */
  #held = 0;

  get isHere(): boolean {
    return this.#owed === 0 && this.#held < TURN_MS;
  }

  /** A sync took so many ms; `here`: on this thread. */
  took(ms: number, here: boolean): void {
    if (ms >= QUICK_MS) this.#owed = Math.min(this.#owed + Math.ceil(ms) * PRICE, MOST_OWED);
    else if (this.#owed > 0) this.#owed -= 1;
    if (!here) return;
    if (this.#held === 0) setImmediate(() => this.#letGo());
    this.#held += ms;
  }

  #letGo(): void {
    this.#held = 0;
  }
}
