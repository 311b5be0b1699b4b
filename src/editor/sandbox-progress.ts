import { setTimeout as sleep } from 'node:timers/promises';
import * as vscode from 'vscode';
import type { Disposable } from '../protocol/disposable.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { LiveSession } from './live-session.ts';
import type { Sessions } from './sessions.ts';

/** ms. What is made faster than this is not worth a notification. */
const SHOW_AFTER_MS = 1_500;
/** Characters of a line that a notification has room for. */
const LINE_MAX = 120;

/** Shows what makes a session's sandbox, line by line, until it is ready or has failed. */
export class SandboxProgress implements Disposable {
  readonly #sessions: () => Sessions;
  readonly #open = new Map<SessionId, Showing>();
  #follow: Disposable | undefined;

  constructor(sessions: () => Sessions) {
    this.#sessions = sessions;
  }

  line(id: SessionId, text: string): void {
    this.#follow ??= this.#sessions().onChange(() => this.#endFinished());
    const showing = this.#open.get(id) ?? this.#start(id);
    showing.line(text);
  }

  #start(id: SessionId): Showing {
    const showing = new Showing();
    this.#open.set(id, showing);
    void showing.show(() => this.#sessions().get(id)?.title ?? 'a session');
    return showing;
  }

  #endFinished(): void {
    for (const [id, showing] of this.#open) {
      if (beingMade(this.#sessions().get(id))) continue;
      this.#open.delete(id);
      showing.end();
    }
  }

  dispose(): void {
    this.#follow?.dispose();
    for (const showing of this.#open.values()) showing.end();
    this.#open.clear();
  }
}

const beingMade = (session: LiveSession | undefined): boolean =>
  [...(session?.state?.sandboxes.values() ?? [])].some((box) => box.state === 'provisioning');

/** One notification; its last line is kept for when it appears. */
class Showing {
  #latest = '';
  #report: ((line: string) => void) | undefined;
  #ended = false;
  end: () => void = () => {
    this.#ended = true;
  };

  line(text: string): void {
    this.#latest = text.trim().slice(0, LINE_MAX);
    this.#report?.(this.#latest);
  }

  async show(title: () => string): Promise<void> {
    await sleep(SHOW_AFTER_MS, undefined, { ref: false });
    if (this.#ended) return;
    const location = vscode.ProgressLocation.Notification;
    await vscode.window.withProgress({ location, title: `Drover: making the sandbox of “${title()}”` }, (progress) => {
      this.#report = (message) => progress.report({ message });
      this.#report(this.#latest);
      return new Promise<void>((resolve) => {
        this.end = resolve;
      });
    });
  }
}
