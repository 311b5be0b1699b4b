/**
 * The base of every error a user may see. `message` is one sentence: what failed, what it means, what to do next.
 * `part` says which of the parts failed, so that no two of them share one message.
 */
export class DroverError extends Error {
  readonly part: 'harness' | 'network' | 'model' | 'engine' | 'container' | 'tool' | 'log' | 'settings';

  constructor(part: DroverError['part'], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.part = part;
    this.name = new.target.name;
  }
}

/** The text of anything thrown. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
