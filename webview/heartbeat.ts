/** `alive` comes once a second; so many missed ones mean that the extension host is gone. */
const MISSED = 3;
const BEAT_MS = 1000;
/** A message may be late by this much on a busy machine before it counts as missed. */
const GRACE_MS = 400;
const READY_EVERY_MS = 2000;
const READY_TIMES = 15;

export type Link = 'connecting' | 'live' | 'lost' | 'unanswered';

/**
 * Knows whether the extension host is there. `connecting`: `ready` is being sent. `unanswered`: it was sent often
 * enough without an answer. `lost`: the host was there and fell silent.
 * A hidden panel gets no beats, so its silence means nothing.
 */
export class Heartbeat {
  link: Link = 'connecting';
  readonly #ready: () => void;
  readonly #changed: (link: Link) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param ready sends `ready` to the host. @param changed is told of every change of `link`. */
  constructor(ready: () => void, changed: (link: Link) => void) {
    this.#ready = ready;
    this.#changed = changed;
    document.addEventListener('visibilitychange', () => this.#arm());
  }

  start(): void {
    this.#knock(READY_TIMES);
  }

  /** The host said hello: whatever was before, it is there now. */
  hello(): void {
    this.#become('live');
    this.#arm();
  }

  /** Anything the host says shows that it lives, but only `hello` brings back one that was given up. */
  beat(): void {
    if (this.link === 'live') this.#arm();
  }

  #knock(left: number): void {
    clearTimeout(this.#timer);
    if (left === 0) {
      this.#become('unanswered');
      return;
    }
    this.#ready();
    this.#timer = setTimeout(() => this.#knock(left - 1), READY_EVERY_MS);
  }

  #arm(): void {
    if (this.link !== 'live') return;
    clearTimeout(this.#timer);
    if (document.visibilityState === 'hidden') return;
    this.#timer = setTimeout(() => this.#become('lost'), MISSED * BEAT_MS + GRACE_MS);
  }

  #become(link: Link): void {
    if (this.link === link) return;
    this.link = link;
    this.#changed(link);
  }
}
