import type { SandboxId, SessionId } from '../protocol/ids.ts';
import type { Hands, LivingSandbox } from './hands.ts';
import { adoptLogged, makeLogged, recordGone } from './provisioning.ts';
import type { Sandbox, SandboxOwner } from './sandbox.ts';

/** What failed ahead of its call less than so many ms ago is not tried again for it. */
export const FRESH_FAILURE_MS = 10_000;

/** Everything about one session's sandbox that this process remembers; the engine's labels know the rest. */
interface Slot {
  sandbox: Promise<LivingSandbox>;
}

/** One sandbox for all calls of a session, made once however many ask, and found again by whoever comes later. */
export class Lasting {
  readonly #handsFor: (owner: SandboxOwner) => Hands;
  readonly #slots = new Map<SessionId, Slot>();

  constructor(handsFor: (owner: SandboxOwner) => Hands) {
    this.#handsFor = handsFor;
  }

  async acquire(owner: SandboxOwner): Promise<Sandbox> {
    const slot = this.#slots.get(owner.session) ?? this.#provision(owner);
    try {
      const sandbox = await slot.sandbox;
      if (!sandbox.lost) return sandbox;
    } catch (error) {
      this.#forget(owner.session, slot);
      throw error;
    }
    this.#forget(owner.session, slot);
    return await this.acquire(owner);
  }

  prepare(owner: SandboxOwner): void {
    const known = this.#slots.get(owner.session);
    if (known) {
      // One that was lost is made anew; a failure that nobody has asked for yet waits for whoever does.
      known.sandbox.then((sandbox) => (sandbox.lost ? this.acquire(owner) : sandbox)).catch(() => undefined);
      return;
    }
    const slot = this.#provision(owner);
    slot.sandbox.catch(() => {
      setTimeout(() => this.#forget(owner.session, slot), FRESH_FAILURE_MS).unref();
    });
  }

  async attach(owner: SandboxOwner, id: SandboxId): Promise<Sandbox | null> {
    const slot = this.#slots.get(owner.session);
    if (slot) {
      const sandbox = await slot.sandbox.catch(() => undefined);
      if (sandbox?.id === id) return sandbox.lost ? null : sandbox;
    }
    const found = await this.#handsFor(owner).adopt(owner, id);
    if (!found) await recordGone(owner, id);
    if (found && !slot) this.#slots.set(owner.session, { sandbox: Promise.resolve(found.sandbox) });
    return found?.sandbox ?? null;
  }

  /** Lets go of a session's, once what is being made of it has come to an end. */
  async forget(session: SessionId): Promise<void> {
    const slot = this.#slots.get(session);
    this.#slots.delete(session);
    await slot?.sandbox.catch(() => undefined);
  }

  #provision(owner: SandboxOwner): Slot {
    const slot: Slot = { sandbox: this.#make(owner) };
    this.#slots.set(owner.session, slot);
    return slot;
  }

  #forget(session: SessionId, slot: Slot): void {
    if (this.#slots.get(session) === slot) this.#slots.delete(session);
  }

  async #make(owner: SandboxOwner): Promise<LivingSandbox> {
    const hands = this.#handsFor(owner);
    const found = await adoptLogged(owner, hands);
    if (found) return found;
    await this.#tellGone(owner, hands);
    return await makeLogged(owner, hands);
  }

  /** The log may believe in a sandbox that went away while nobody looked. An engine that can't be asked is no proof of it. */
  async #tellGone(owner: SandboxOwner, hands: Hands): Promise<void> {
    const id = owner.inUse?.();
    if (!id) return;
    const living = await hands.adopt(owner, id).catch(() => undefined);
    if (living === null) await recordGone(owner, id);
  }
}
