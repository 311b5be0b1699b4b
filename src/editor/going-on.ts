import * as vscode from 'vscode';
import type { Disposable } from '../protocol/disposable.ts';
import { Disposables } from '../protocol/disposable.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { Seq } from '../protocol/record.ts';
import { decide, nothingInHand } from '../session/decide.ts';
import type { Actions } from './actions.ts';
import type { LiveSession } from './live-session.ts';
import type { Sessions } from './sessions.ts';

/** A session whose holder died under our eyes is left to its own window this long, in ms: a host that is restarted comes first. */
const GRACE_MS = 5000;

/**
 * "The session goes on": one that has something to do and nobody alive to do it is woken here, once per state of its
 * log, so that one that can't go on is not tried for ever.
 */
export class GoingOn implements Disposable {
  readonly #sessions: Sessions;
  readonly #actions: Actions;
  readonly #owned = new Disposables();
  readonly #tried = new Map<SessionId, Seq>();
  readonly #waiting = new Map<SessionId, NodeJS.Timeout>();

  constructor(sessions: Sessions, actions: Actions) {
    this.#sessions = sessions;
    this.#actions = actions;
    void sessions.ready.then(() => this.#all(0));
    this.#owned.add(sessions.onChange(() => this.#all(GRACE_MS)));
    this.#owned.add(vscode.workspace.onDidGrantWorkspaceTrust(() => this.#all(0)));
  }

  #all(delay: number): void {
    if (!vscode.workspace.isTrusted) return;
    for (const session of this.#sessions.active()) {
      if (this.#waiting.has(session.id) || !this.#abandoned(session)) continue;
      if (delay === 0) this.#wake(session);
      else
        this.#waiting.set(
          session.id,
          setTimeout(() => this.#wake(session), delay),
        );
    }
  }

  #wake(session: LiveSession): void {
    clearTimeout(this.#waiting.get(session.id));
    this.#waiting.delete(session.id);
    if (!this.#abandoned(session) || !session.state) return;
    this.#tried.set(session.id, session.state.head.seq);
    this.#actions.goOn(session, 'nobody worked on it any more');
  }

  #abandoned(session: LiveSession): boolean {
    const { state } = session;
    if (!state || session.newer || session.holder !== null || session.awake) return false;
    return this.#tried.get(session.id) !== state.head.seq && hasWork(session);
  }

  dispose(): void {
    this.#owned.dispose();
    for (const timer of this.#waiting.values()) clearTimeout(timer);
  }
}

/** True if the log asks for a step that is more than saying that it rests. */
export function hasWork(session: LiveSession): boolean {
  if (!session.state) return false;
  if (session.running) return true;
  const steps = decide(session.state, nothingInHand);
  return steps.some((step) => step.type !== 'idle_thread' && step.type !== 'idle_session');
}
