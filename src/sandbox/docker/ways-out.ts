import type Docker from 'dockerode';
import type { SandboxId, SessionId } from '../../protocol/ids.ts';
import { egressSession } from '../egress-session.ts';
import type { ProviderOptions } from '../provider.ts';
import type { SandboxOwner } from '../sandbox.ts';
import type { Engine } from './client.ts';
import { forgetWayOut, WayOut } from './network.ts';

/** The ways out of all containers this process looks after. */
export class WaysOut {
  readonly #options: Pick<ProviderOptions, 'egress' | 'cacheFolder'>;
  readonly #owners: ReadonlyMap<SessionId, SandboxOwner>;
  readonly #open = new Map<SandboxId, WayOut>();

  /** `owners`: of each session the one who asked last. A sandbox outlives who it was made for; the ledger needs a log. */
  constructor(options: Pick<ProviderOptions, 'egress' | 'cacheFolder'>, owners: ReadonlyMap<SessionId, SandboxOwner>) {
    this.#options = options;
    this.#owners = owners;
  }

  get(id: SandboxId): WayOut | undefined {
    return this.#open.get(id);
  }

  /** For a container that is about to be made. Undefined: it will have none. */
  async open(engine: Engine, owner: SandboxOwner, id: SandboxId): Promise<WayOut | undefined> {
    return await this.#make(engine, owner, id);
  }

  /** For a container that another process made: at the same address, with the same token. */
  async reopen(engine: Engine, owner: SandboxOwner, id: SandboxId, container: Docker.Container): Promise<void> {
    if (!this.#open.has(id)) await this.#make(engine, owner, id, container);
  }

  forget(id: SandboxId): void {
    const way = this.#open.get(id);
    this.#open.delete(id);
    void way?.close().catch(() => undefined);
    void forgetWayOut(this.#options.cacheFolder, id).catch(() => undefined);
  }

  async close(): Promise<void> {
    const all = [...this.#open.values()];
    this.#open.clear();
    await Promise.allSettled(all.map((way) => way.close()));
  }

  async #make(engine: Engine, owner: SandboxOwner, id: SandboxId, container?: Docker.Container) {
    const { egress, cacheFolder } = this.#options;
    if (!egress) return undefined;
    const session = egressSession(owner, this.#owners);
    const way = await WayOut.open({ egress, engine, id, session, cacheFolder }, container);
    this.#open.set(id, way);
    return way;
  }
}
