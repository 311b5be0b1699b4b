import * as vscode from 'vscode';
import { type Disposable, Disposables } from '../protocol/disposable.ts';
import type { EventId } from '../protocol/ids.ts';
import { asker, summary } from './describe.ts';
import type { LiveSession } from './live-session.ts';
import type { Sessions } from './sessions.ts';
import { type Waiting, waitingCalls } from './waiting.ts';

/** What the notifications need of the rest. */
export interface NotificationHost {
  /** The session's panel is on screen, so its card is seen there. */
  visible(session: LiveSession): boolean;
  /** Calls back when a panel has come on or left the screen. */
  onVisibleChange(listener: () => void): Disposable;
  open(session: LiveSession, call: EventId): Promise<void>;
  answer(session: LiveSession, call: EventId, result: 'allow' | 'deny', seen: number): Promise<void>;
  failed(error: unknown): void;
}

/**
 * Tells of calls that wait in sessions nobody looks at, one toast at a time. VS Code has no way to take a toast back,
 * so one whose call was answered elsewhere meanwhile says so when it is used.
 */
export class Notifications implements Disposable {
  readonly #sessions: Sessions;
  readonly #host: NotificationHost;
  readonly #told = new Set<EventId>();
  readonly #owned = new Disposables();
  #showing = false;
  #disposed = false;

  constructor(sessions: Sessions, host: NotificationHost) {
    this.#sessions = sessions;
    this.#host = host;
    this.#owned.add(sessions.onChange(() => this.#next()));
    // A card nobody answered may have left the screen with its panel.
    this.#owned.add(host.onVisibleChange(() => this.#next()));
    this.#next();
  }

  #next(): void {
    if (this.#showing || this.#disposed) return;
    const next = waitingCalls(this.#sessions).find((one) => this.#isNews(one));
    if (!next) return;
    this.#told.add(next.call.id);
    this.#showing = true;
    this.#tell(next)
      .catch((error: unknown) => this.#host.failed(error))
      .finally(() => {
        this.#showing = false;
        this.#next();
      });
  }

  #isNews({ session, call }: Waiting): boolean {
    return !this.#told.has(call.id) && !this.#host.visible(session);
  }

  async #tell({ session, call }: Waiting): Promise<void> {
    const { state } = session;
    if (!state) return;
    const seen = state.head.seq;
    const others = waitingCalls(this.#sessions).length - 1;
    const more = others > 0 ? ` (and ${others} more waiting)` : '';
    const message = `${asker(state, call)} asks: ${summary(call)}${more}`;
    // Whether a tripwire matters is not told from one line.
    const buttons = call.name === 'tripwire' ? ['Open'] : ['Allow', 'Deny', 'Open'];
    const picked = await vscode.window.showInformationMessage(message, ...buttons);
    if (picked === undefined || this.#disposed) return;
    if (picked === 'Open') return this.#host.open(session, call.id);
    if (!session.pending.some((one) => one.id === call.id)) {
      void vscode.window.showInformationMessage(`Already answered: ${summary(call)}`);
      return;
    }
    await this.#host.answer(session, call.id, picked === 'Allow' ? 'allow' : 'deny', seen);
  }

  dispose(): void {
    this.#disposed = true;
    this.#owned.dispose();
  }
}
