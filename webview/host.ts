/// <reference types="vscode-webview" />
import type { PanelMessage } from '../src/protocol/panel.ts';

type Numbered = Extract<PanelMessage, { n: number }>;
type Unnumbered<M> = M extends Numbered ? Omit<M, 'n'> : never;

const LOST = 'The extension host stopped before it answered; the conversation shows whether it went through.';

/** The wire to the extension host: messages out, and the answers to those that carry a number. */
export class Host {
  readonly #api = acquireVsCodeApi<unknown>();
  readonly #waiting = new Map<number, (problem: string | null) => void>();
  #n = 0;

  post(message: PanelMessage): void {
    this.#api.postMessage(message);
  }

  /** Sends a message that gets an answer. Resolves to null when it went well, else to the problem as a sentence. */
  request(message: Unnumbered<Numbered>): Promise<string | null> {
    const n = ++this.#n;
    return new Promise((resolve) => {
      this.#waiting.set(n, resolve);
      this.post({ ...message, n });
    });
  }

  answered(n: number, problem: string | null): void {
    this.#waiting.get(n)?.(problem);
    this.#waiting.delete(n);
  }

  /** The host died: nothing that waits will be answered any more. */
  abandon(): void {
    for (const resolve of this.#waiting.values()) resolve(LOST);
    this.#waiting.clear();
  }

  get saved(): unknown {
    return this.#api.getState();
  }

  save(state: unknown): void {
    this.#api.setState(state);
  }
}
