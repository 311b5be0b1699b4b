import type { EventId } from '../src/protocol/ids.ts';
import type { Scope } from '../src/protocol/record.ts';
import { pendingApprovals } from '../src/session/fold.ts';
import type { Asking, SessionState } from '../src/session/state.ts';
import type { Host } from './host.ts';

/** A card must have been before a person's eyes for so long before a key or a click on it counts. */
const ARMING_MS = 400;

/** An answer that was given here and is not in the log yet. */
export interface Answer {
  result: 'allow' | 'deny';
  standing: boolean;
  state: 'sent' | 'failed';
  problem: string | null;
}

/** How far an answer goes beyond what it is about: to calls of the same kind, or for a question its scope. */
interface Extent {
  standing?: boolean;
  scope?: Scope;
}

/** What a person does about calls that wait for them. The log decides what they are; this only holds what is half done. */
export class Approvals {
  readonly #host: Host;
  readonly #changed: () => void;
  readonly #answers = new Map<EventId, Answer>();
  /** Reasons being written, by call. */
  readonly #reasons = new Map<EventId, string>();
  readonly #shownAt = new Map<EventId, number>();
  readonly #slidAt = new Map<EventId, number>();
  #target: EventId | null = null;

  constructor(host: Host, changed: () => void) {
    this.#host = host;
    this.#changed = changed;
    document.addEventListener('visibilitychange', () => this.rearm());
  }

  /** Calls and questions that wait for an answer and have none on its way, oldest first. */
  open(session: SessionState): Asking[] {
    return pendingApprovals(session).filter((call) => this.#answers.get(call.id)?.state !== 'sent');
  }

  answer(call: EventId): Answer | undefined {
    return this.#answers.get(call);
  }

  /** The reason being written for a denial, or null while the field is closed. */
  reason(call: EventId): string | null {
    return this.#reasons.get(call) ?? null;
  }

  setReason(call: EventId, reason: string | null): void {
    if (reason === null) this.#reasons.delete(call);
    else this.#reasons.set(call, reason);
    this.#changed();
  }

  /** The card is on screen. */
  shown(call: EventId): void {
    if (!this.#shownAt.has(call)) this.#shownAt.set(call, performance.now());
  }

  /** The card left the screen: when it comes back, it has to be looked at again. */
  hidden(call: EventId): void {
    this.#shownAt.delete(call);
  }

  /** Keys now go to this call's card. A key pressed for the card before must not hit it. */
  aim(call: EventId | null): void {
    if (this.#target === call) return;
    this.#target = call;
    if (call && this.#shownAt.has(call)) this.#shownAt.set(call, performance.now());
  }

  /** The card moved by itself, because something came or went above it. */
  slid(call: EventId): void {
    this.#slidAt.set(call, performance.now());
  }

  /** Everything on screen has to be looked at again: the panel was hidden, or the page jumped. */
  rearm(): void {
    const now = performance.now();
    for (const call of this.#shownAt.keys()) this.#shownAt.set(call, now);
  }

  /** True once the card was on screen long enough to be read as what it is. */
  armed(call: EventId): boolean {
    const at = this.#shownAt.get(call);
    return at !== undefined && performance.now() - at >= ARMING_MS;
  }

  /** True for a click on a card that is armed and did not just slide under the pointer. A click by key has no pointer. */
  clickable(call: EventId, click: MouseEvent): boolean {
    const slidAt = this.#slidAt.get(call) ?? Number.NEGATIVE_INFINITY;
    const byKey = click.detail === 0;
    return this.armed(call) && (byKey || performance.now() - slidAt >= ARMING_MS);
  }

  /** Sends the answer. The card says so at once; the record that follows is the truth. */
  send(session: SessionState, call: EventId, result: 'allow' | 'deny', { standing = false, scope }: Extent): void {
    if (this.#answers.get(call)?.state === 'sent') return;
    const reason = this.#reasons.get(call)?.trim();
    const answer: Answer = { result, standing, state: 'sent', problem: null };
    this.#answers.set(call, answer);
    this.#changed();
    void this.#host
      .request({
        type: 'confirm',
        tool_use_id: call,
        result,
        ...(result === 'deny' && reason ? { deny_message: reason } : {}),
        ...(standing ? { standing: true } : {}),
        ...(scope ? { scope } : {}),
        seen: session.head.seq,
      })
      .then((problem) => {
        if (problem === null) return;
        answer.state = 'failed';
        answer.problem = problem;
        this.#changed();
      });
  }

  /** The log has the answer. */
  settled(call: EventId): void {
    this.#answers.delete(call);
    this.#reasons.delete(call);
    this.#shownAt.delete(call);
    this.#slidAt.delete(call);
  }
}
