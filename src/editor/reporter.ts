import * as vscode from 'vscode';
import { DroverError, messageOf } from '../protocol/errors.ts';
import type { Redactor } from '../vault/redactor.ts';

/** Milliseconds in which the same trouble in the background is told only once. */
const QUIET_MS = 60_000;

/** Tells a person what went wrong, once per cause, and keeps the details in the "Drover" output. */
export class Reporter implements vscode.Disposable {
  readonly #log = vscode.window.createOutputChannel('Drover', { log: true });
  readonly #redactor: Redactor;
  readonly #told = new Map<string, number>();

  /** @param redactor what it takes out is neither shown nor logged */
  constructor(redactor: Redactor) {
    this.#redactor = redactor;
  }

  /** A line of the "Drover" output. */
  info(line: string): void {
    this.#log.info(this.#clean(line));
  }

  /** Opens the "Drover" output. */
  showLog(): void {
    this.#log.show();
  }

  /** A person asked for something and it failed: always said. */
  failed(error: unknown): void {
    this.#details(error);
    this.#show(this.#clean(sentence(error)));
  }

  /** Something failed by itself: said once, then only logged until it has been quiet for a while. */
  background(error: unknown): void {
    this.#details(error);
    const message = this.#clean(sentence(error));
    const last = this.#told.get(message) ?? 0;
    this.#told.set(message, Date.now());
    if (Date.now() - last > QUIET_MS) this.#show(message);
  }

  /** Something is not as it should be, but all goes on: said once. */
  notice(text: string): void {
    const message = this.#clean(text);
    this.#log.warn(message);
    if (this.#told.has(message)) return;
    this.#told.set(message, Date.now());
    void vscode.window.showWarningMessage(message);
  }

  #show(message: string): void {
    const details = 'Show Diagnostics';
    void vscode.window.showErrorMessage(message, details).then((picked) => {
      if (picked === details) this.showLog();
    });
  }

  #details(error: unknown): void {
    this.#log.error(this.#clean(error instanceof Error ? (error.stack ?? error.message) : messageOf(error)));
    let cause = error instanceof Error ? error.cause : undefined;
    for (let depth = 0; cause !== undefined && depth < 5; depth += 1) {
      this.#log.error(this.#clean(`  because: ${messageOf(cause)}`));
      cause = cause instanceof Error ? cause.cause : undefined;
    }
  }

  #clean(text: string): string {
    return this.#redactor.text(text, () => undefined);
  }

  dispose(): void {
    this.#log.dispose();
  }
}

/** What a person reads. Our own errors are sentences already; anything else is a fault of ours, and says so. */
export function sentence(error: unknown): string {
  if (error instanceof DroverError) return error.message;
  return `Drover hit a fault of its own and stopped what it was doing (${messageOf(error)}); nothing in the log is lost, so try again, or look at the diagnostics.`;
}
