import { messageOf } from '../protocol/errors.ts';
import { mint, type SandboxId, type SessionId } from '../protocol/ids.ts';
import { draft } from '../protocol/record.ts';
import { DockerHands } from './docker/hands.ts';
import type { Hands, LivingSandbox } from './hands.ts';
import { OsHands } from './os/hands.ts';
import { type Sandbox, type SandboxOwner, type SandboxProvider, SandboxUnavailable } from './sandbox.ts';

export interface ProviderOptions {
  /** The Node program that runs the devcontainer CLI. */
  nodePath: string;
  /** Entry file of the devcontainer CLI (`devcontainer.js` beside its `dist` and `scripts`). */
  devcontainerCli: string;
  /** The OS sandbox runtime's `apply-seccomp` for this processor (Linux). Default: where its package keeps it. */
  seccompHelper?: string;
  /** A folder of our own, writable; made if missing. */
  cacheFolder: string;
  /** Where DOCKER_HOST and the like are read from. Default: this process's. */
  env?: NodeJS.ProcessEnv;
  /** Serves an environment of type `devcontainer` in a folder that has no devcontainer.json. */
  defaultImage?: string;
}

/** What failed ahead of its call less than so many ms ago is not tried again for it. */
const FRESH_FAILURE_MS = 10_000;

/** Everything about one session's sandbox that this process remembers; the engine's labels know the rest. */
interface Slot {
  sandbox: Promise<LivingSandbox>;
}

/**
 * Makes sandboxes when a call needs one. Nothing is connected to, loaded or started before that.
 */
export function createSandboxProvider(options: ProviderOptions): SandboxProvider {
  return new Provider(options);
}

class Provider implements SandboxProvider {
  readonly #docker: Hands;
  readonly #os: Hands;
  readonly #slots = new Map<SessionId, Slot>();
  readonly #ending = new AbortController();

  constructor(options: ProviderOptions) {
    this.#docker = new DockerHands(options, this.#ending.signal);
    this.#os = new OsHands(options);
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

  /** Made once, however many ask meanwhile. */
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
    const from = performance.now();
    const took = () => Math.round(performance.now() - from);
    const found = await hands.adopt(owner, undefined);
    if (found) {
      const { sandbox, detail } = found;
      const ready = {
        sandbox_id: sandbox.id,
        kind: sandbox.kind,
        detail: `found again: ${detail}`,
        duration_ms: took(),
      };
      await owner.record([draft('drover.sandbox_ready', ready)]);
      return sandbox;
    }
    await this.#tellGone(owner, hands);
    const id = mint.sandbox();
    const recipe = hands.recipe(owner.environment);
    await owner.record([draft('drover.sandbox_provisioning', { sandbox_id: id, recipe })]);
    try {
      const { sandbox, detail } = await hands.make(owner, id);
      const ready = { sandbox_id: id, kind: sandbox.kind, detail, duration_ms: took() };
      await owner.record([draft('drover.sandbox_ready', ready)]);
      return sandbox;
    } catch (error) {
      await hands.discard(owner.session, id);
      const unavailable =
        error instanceof SandboxUnavailable
          ? error
          : new SandboxUnavailable('container', `The sandbox could not be made: ${messageOf(error)}.`, {
              cause: error,
            });
      await owner.record([draft('drover.sandbox_failed', { sandbox_id: id, message: unavailable.message })]);
      throw unavailable;
    }
  }

  /** The log may believe in a sandbox that went away while nobody looked. An engine that can't be asked is no proof of it. */
  async #tellGone(owner: SandboxOwner, hands: Hands): Promise<void> {
    const id = owner.inUse?.();
    if (!id) return;
    const living = await hands.adopt(owner, id).catch(() => undefined);
    if (living === null) await this.#recordGone(owner, id);
  }

  async #recordGone(owner: SandboxOwner, sandbox_id: SandboxId): Promise<void> {
    if (owner.inUse?.() !== sandbox_id) return;
    const reason = 'It was gone when the session went on.';
    await owner.record([draft('drover.sandbox_lost', { sandbox_id, reason })]);
  }

  async attach(owner: SandboxOwner, id: SandboxId): Promise<Sandbox | null> {
    const slot = this.#slots.get(owner.session);
    if (slot) {
      const sandbox = await slot.sandbox.catch(() => undefined);
      if (sandbox?.id === id) return sandbox.lost ? null : sandbox;
    }
    const found = await this.#handsFor(owner).adopt(owner, id);
    if (!found) await this.#recordGone(owner, id);
    if (found && !slot) this.#slots.set(owner.session, { sandbox: Promise.resolve(found.sandbox) });
    return found?.sandbox ?? null;
  }

  async remove(owner: Pick<SandboxOwner, 'session' | 'record'>, reason: string): Promise<void> {
    const slot = this.#slots.get(owner.session);
    this.#slots.delete(owner.session);
    await slot?.sandbox.catch(() => undefined);
    for (const hands of [this.#docker, this.#os]) {
      try {
        for (const sandbox_id of await hands.removeAll(owner.session))
          await owner.record([draft('drover.sandbox_removed', { sandbox_id, reason })]);
      } catch {
        // No engine, or a log that can't be written: what is left carries its labels, and is reaped at the next start.
      }
    }
  }

  async reap(workspaceFolder: string, keep: ReadonlySet<SessionId>): Promise<number> {
    const counts = [this.#docker, this.#os].map((hands) => hands.reap(workspaceFolder, keep).catch(() => 0));
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  }

  async diagnose(environment: SandboxOwner['environment']): Promise<{ ok: boolean; text: string }> {
    try {
      return { ok: true, text: await this.#handsFor({ environment }).diagnose(environment) };
    } catch (error) {
      return { ok: false, text: messageOf(error) };
    }
  }

  async dispose(): Promise<void> {
    this.#ending.abort();
    await this.#os.dispose();
    await this.#docker.dispose();
  }

  #handsFor(owner: Pick<SandboxOwner, 'environment'>): Hands {
    const { type } = owner.environment.config;
    if (type === 'host')
      throw new SandboxUnavailable(
        'container',
        'An environment of type "host" has no sandbox; use another environment.',
      );
    return type === 'os' ? this.#os : this.#docker;
  }
}
