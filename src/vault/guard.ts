import type { Preview } from '../protocol/panel.ts';
import type { Draft } from '../protocol/record.ts';

/*
 * What the harness knows of secrets: that somebody looks through what it sends and shows. It never learns a value.
 */

/** A request to a model, as far as a value could be in it. */
export interface Sendable {
  system: string;
  messages: readonly { role: string; content: readonly { type: string }[] }[];
  tools: readonly unknown[];
}

export interface SecretGuard {
  /** The request as it may be sent, the same if nothing was taken out, and the alarms to be stored. */
  request<T extends Sendable>(request: T): { request: T; alarms: Draft[] };
  /** Passes previews on without values, also where a value comes in pieces. */
  previews(send: (preview: Preview) => void): (preview: Preview) => void;
}
