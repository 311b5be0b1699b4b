/** Bites once when nobody has touched it for `ms`. One timer, moved lazily, so that a touch costs nothing. */
export class Watchdog {
  readonly #ms: number;
  readonly #bite: () => void;
  #timer: NodeJS.Timeout | undefined;
  #touchedAt = 0;
  bit = false;

  constructor(ms: number, bite: () => void) {
    this.#ms = ms;
    this.#bite = bite;
  }

  touch(): void {
    this.#touchedAt = performance.now();
    this.#timer ??= this.#wait(this.#ms);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #wait(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      const rest = this.#touchedAt + this.#ms - performance.now();
      if (rest > 0) {
        this.#timer = this.#wait(rest);
        return;
      }
      this.bit = true;
      this.#bite();
    }, ms);
  }
}
