/** Something that is owned and must be let go. The same shape as VS Code's. */
export interface Disposable {
  dispose(): void;
}

export const disposable = (dispose: () => void): Disposable => ({ dispose });

/** Owns disposables; one that is added after `dispose()` is disposed at once. */
export class Disposables implements Disposable {
  #items: Disposable[] | null = [];

  add<T extends Disposable>(item: T): T {
    if (this.#items) this.#items.push(item);
    else item.dispose();
    return item;
  }

  dispose(): void {
    const items = this.#items ?? [];
    this.#items = null;
    for (const item of items.reverse()) item.dispose();
  }
}

/** A list of listeners. One that throws does not keep the others from hearing. */
export class Emitter<T> {
  readonly #listeners = new Set<(value: T) => void>();

  readonly on = (listener: (value: T) => void): Disposable => {
    this.#listeners.add(listener);
    return disposable(() => this.#listeners.delete(listener));
  };

  fire(value: T): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(value);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
