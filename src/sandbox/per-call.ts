import { mint, type SandboxId, type SessionId } from '../protocol/ids.ts';
import { draft } from '../protocol/record.ts';
import type { Hands, LivingSandbox } from './hands.ts';
import { FRESH_FAILURE_MS } from './lasting.ts';
import { makeLogged, recordGone } from './provisioning.ts';
import { type Sandbox, type SandboxOwner, SandboxUnavailable } from './sandbox.ts';

/** A spare that no call has asked for so many ms after it was made goes: the session is not at work. */
const SPARE_MS = 120_000;

/**
 * An engine goes on with what a process that died had asked it for: so many ms after the first look for what is left
 * over, there is a second one.
 */
const LATE_MS = 10_000;

const LEFT_OVER = 'It was left over.';

/** What this process knows of one session: the sandbox for its next call, and those that calls run in. */
interface Session {
  spare: Spare | undefined;
  /** Sandboxes of calls whose result is not in the log yet. */
  busy: Set<SandboxId>;
  /** Made or being made by this process. */
  own: Set<SandboxId>;
  /** What former processes left has been cleared away. */
  swept: Promise<void>;
  /** Until the second look. */
  late: NodeJS.Timeout | undefined;
}

interface Spare {
  owner: SandboxOwner;
  sandbox: Promise<LivingSandbox>;
  timer: NodeJS.Timeout | undefined;
}

/**
 * A fresh sandbox for each call, dead after it. Making one takes longer than most calls, so while a session is at work
 * the next one stands by: made, started, and used by nobody before.
 */
export class PerCall {
  readonly #handsFor: (owner: SandboxOwner) => Hands;
  readonly #sessions = new Map<SessionId, Session>();
  /** Removals under way. */
  readonly #ending = new Set<Promise<void>>();

  constructor(handsFor: (owner: SandboxOwner) => Hands) {
    this.#handsFor = handsFor;
  }

  async acquire(owner: SandboxOwner): Promise<Sandbox> {
    const session = this.#session(owner);
    const spare = session.spare ?? this.#make(owner, session);
    this.#drop(session, spare);
    const sandbox = await spare.sandbox;
    if (sandbox.lost) return await this.acquire(owner);
    session.busy.add(sandbox.id);
    // While this one's call runs, that for the next is made.
    this.prepare(owner);
    return forOneCall(sandbox);
  }

  prepare(owner: SandboxOwner): void {
    const session = this.#session(owner);
    if (session.spare) return;
    const spare = this.#make(owner, session);
    session.spare = spare;
    spare.sandbox.then(
      ({ id }) => {
        if (session.spare === spare) this.#expire(session, spare, id);
      },
      () => {
        spare.timer = setTimeout(() => this.#drop(session, spare), FRESH_FAILURE_MS).unref();
      },
    );
  }

  async attach(owner: SandboxOwner, id: SandboxId): Promise<Sandbox | null> {
    const session = this.#session(owner);
    session.busy.add(id);
    const found = await this.#handsFor(owner).adopt(owner, id);
    if (!found) await recordGone(owner, id);
    return found ? forOneCall(found.sandbox) : null;
  }

  /** The result of the call that ran in it is in the log, or it was never used. */
  release(owner: SandboxOwner, id: SandboxId): void {
    if (!this.#sessions.get(owner.session)?.busy.delete(id)) return;
    this.#end(owner, id, 'Its call has ended.');
  }

  async forget(id: SessionId): Promise<void> {
    const session = this.#sessions.get(id);
    this.#sessions.delete(id);
    if (!session) return;
    clearTimeout(session.late);
    clearTimeout(session.spare?.timer);
    await session.spare?.sandbox.catch(() => undefined);
    await Promise.all(this.#ending);
  }

  /** Takes what stands by away; what calls run in stays, for whoever asks what became of them. */
  async dispose(): Promise<void> {
    const spares = [...this.#sessions.values()].flatMap(({ spare }) => spare ?? []);
    for (const { late } of this.#sessions.values()) clearTimeout(late);
    this.#sessions.clear();
    for (const { owner, sandbox, timer } of spares) {
      clearTimeout(timer);
      const made = await sandbox.catch(() => undefined);
      if (made) this.#end(owner, made.id, 'Drover was closed.');
    }
    await Promise.all(this.#ending);
  }

  #session(owner: SandboxOwner): Session {
    const known = this.#sessions.get(owner.session);
    if (known) return known;
    const nothing = { spare: undefined, late: undefined, swept: Promise.resolve() };
    const session: Session = { ...nothing, busy: new Set(), own: new Set() };
    this.#sessions.set(owner.session, session);
    session.swept = this.#sweep(owner, session);
    session.swept.catch(() => undefined);
    session.late = setTimeout(() => this.#sweep(owner, session).catch(() => undefined), LATE_MS).unref();
    return session;
  }

  #make(owner: SandboxOwner, session: Session): Spare {
    const id = mint.sandbox();
    session.own.add(id);
    const sandbox = session.swept.then(() => makeLogged(owner, this.#handsFor(owner), id));
    sandbox.catch(() => undefined);
    return { owner, sandbox, timer: undefined };
  }

  #expire(session: Session, spare: Spare, id: SandboxId): void {
    spare.timer = setTimeout(() => {
      if (this.#drop(session, spare)) this.#end(spare.owner, id, 'No call has asked for it.');
    }, SPARE_MS).unref();
  }

  #drop(session: Session, spare: Spare): boolean {
    clearTimeout(spare.timer);
    if (session.spare !== spare) return false;
    session.spare = undefined;
    return true;
  }

  /** Beside what goes on: nobody waits for it. What can't be removed or told of is found by its labels later. */
  #end(owner: SandboxOwner, sandbox_id: SandboxId, reason: string): void {
    const ending = this.#handsFor(owner)
      .discard(owner.session, sandbox_id)
      .then(() => owner.record([draft('drover.sandbox_removed', { sandbox_id, reason })]))
      .catch(() => undefined)
      .then(() => void this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  /** A former process may have left spares, and sandboxes whose call has its result. */
  async #sweep(owner: SandboxOwner, session: Session): Promise<void> {
    const acting = owner.acting?.() ?? new Set();
    const keep = (id: SandboxId) => acting.has(id) || session.busy.has(id) || session.own.has(id);
    const removed = await this.#handsFor(owner)
      .removeAll(owner.session, keep)
      .catch(() => undefined);
    // Nobody can be asked: whoever makes one says so in words.
    if (!removed) return;
    const believed = owner.inUse?.();
    if (believed && !keep(believed) && !removed.includes(believed)) removed.push(believed);
    if (removed.length > 0)
      await owner.record(
        removed.map((sandbox_id) => draft('drover.sandbox_removed', { sandbox_id, reason: LEFT_OVER })),
      );
  }
}

/** Nothing that stays can be opened in it: it would be asked of once and then taken away. */
function forOneCall(sandbox: LivingSandbox): Sandbox {
  return {
    id: sandbox.id,
    kind: sandbox.kind,
    workspace: sandbox.workspace,
    run: (request) => sandbox.run(request),
    lookup: (executionId, maxBytes) => sandbox.lookup(executionId, maxBytes),
    peek: async (path, maxBytes, signal) => (await sandbox.peek?.(path, maxBytes, signal)) ?? null,
    open: async () => {
      throw new SandboxUnavailable(
        'container',
        'A server can’t run in this environment, whose sandboxes live for one call ("lifetime": "call"); use one of "lifetime": "session".',
      );
    },
  };
}
