import type { Environment } from '../protocol/environment.ts';
import { messageOf } from '../protocol/errors.ts';
import type { SandboxId, SessionId } from '../protocol/ids.ts';
import { draft } from '../protocol/record.ts';
import type { Egress } from '../vault/egress.ts';
import { DockerHands } from './docker/hands.ts';
import { examine } from './examine.ts';
import type { Hands } from './hands.ts';
import { HostHands } from './host/hands.ts';
import { removeLeftCopies } from './isolated/copy.ts';
import { Lasting } from './lasting.ts';
import { OsHands } from './os/hands.ts';
import { PerCall } from './per-call.ts';
import type { Check, Cleaned, Sandbox, SandboxOwner, SandboxProvider } from './sandbox.ts';

export interface ProviderOptions {
  /** The Node program that runs the devcontainer CLI. */
  nodePath: string;
  /** Entry file of the devcontainer CLI (`devcontainer.js` beside its `dist` and `scripts`). */
  devcontainerCli: string;
  /** The OS sandbox runtime's `apply-seccomp` for this processor (Linux). Default: where its package keeps it. */
  seccompHelper?: string;
  /** A folder of our own, writable; made if missing. */
  cacheFolder: string;
  /** Opens each sandbox's way out. Absent: a sandbox has none. */
  egress?: Egress;
  /** Where DOCKER_HOST and the like are read from. Default: this process's. */
  env?: NodeJS.ProcessEnv;
  /** Asked anew each time they matter. Default: 12 living, 30 minutes idle. */
  limits?: () => { living: number; idleMinutes: number };
  /** How often idle sandboxes are looked for, in ms. Default: 15 s. */
  idleCheckMs?: number;
  /** Serves an environment of type `devcontainer` in a folder that has no devcontainer.json. */
  defaultImage?: string;
}

/**
 * Makes sandboxes when a call needs one. Nothing is connected to, loaded or started before that.
 */
export function createSandboxProvider(options: ProviderOptions): SandboxProvider {
  return new Provider(options);
}

class Provider implements SandboxProvider {
  readonly #docker: DockerHands;
  readonly #os: Hands;
  readonly #host: Hands;
  readonly #ending = new AbortController();
  readonly #owners = new Map<SessionId, SandboxOwner>();
  readonly #lasting: Lasting;
  readonly #perCall: PerCall;

  constructor(options: ProviderOptions) {
    this.#docker = new DockerHands(options, this.#owners, this.#ending.signal);
    this.#os = new OsHands(options, this.#owners);
    this.#host = new HostHands(options);
    const handsFor = (owner: SandboxOwner) => this.#handsFor(owner);
    this.#lasting = new Lasting(handsFor);
    this.#perCall = new PerCall(handsFor);
  }

  async acquire(owner: SandboxOwner): Promise<Sandbox> {
    this.#owners.set(owner.session, owner);
    return await this.#lifetime(owner).acquire(owner);
  }

  prepare(owner: SandboxOwner): void {
    this.#owners.set(owner.session, owner);
    this.#lifetime(owner).prepare(owner);
  }

  async attach(owner: SandboxOwner, id: SandboxId): Promise<Sandbox | null> {
    this.#owners.set(owner.session, owner);
    return await this.#lifetime(owner).attach(owner, id);
  }

  release(owner: SandboxOwner, id: SandboxId): void {
    if (owner.environment.lifetime === 'call') this.#perCall.release(owner, id);
  }

  async remove(owner: Pick<SandboxOwner, 'session' | 'record'>, reason: string): Promise<void> {
    await this.#lasting.forget(owner.session);
    await this.#perCall.forget(owner.session);
    this.#owners.delete(owner.session);
    for (const hands of [this.#docker, this.#os, this.#host]) {
      try {
        for (const sandbox_id of await hands.removeAll(owner.session))
          await owner.record([draft('drover.sandbox_removed', { sandbox_id, reason })]);
      } catch {
        // No engine, or a log that can't be written: what is left carries its labels, and is reaped at the next start.
      }
    }
  }

  async reap(workspaceFolder: string, keep: ReadonlySet<SessionId>): Promise<number> {
    await removeLeftCopies(workspaceFolder).catch(() => undefined);
    const counts = [this.#docker, this.#os, this.#host].map((hands) =>
      hands.reap(workspaceFolder, keep).catch(() => 0),
    );
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  }

  async cleanUp(
    workspaceFolder: string,
    keep: ReadonlySet<SessionId>,
    environments: readonly Environment[],
  ): Promise<Cleaned> {
    const all = await Promise.allSettled(
      [this.#docker, this.#os, this.#host].map((hands) => hands.cleanUp(workspaceFolder, keep, environments)),
    );
    const cleaned = all.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    const [failed] = all.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    const sum = (count: (one: Cleaned) => number) => cleaned.reduce((total, one) => total + count(one), 0);
    const { sandboxes, images, others, packages } = {
      sandboxes: sum((one) => one.sandboxes),
      images: sum((one) => one.images),
      others: sum((one) => one.others),
      packages: sum((one) => one.packages),
    };
    if (failed !== undefined && sandboxes + images + others === 0) throw failed;
    return { sandboxes, images, others, packages };
  }

  async examine(owner: Omit<SandboxOwner, 'session' | 'record'>): Promise<Check[]> {
    try {
      return await examine(this.#handsFor(owner), owner);
    } catch (error) {
      return [{ what: 'engine', ok: false, text: messageOf(error) }];
    }
  }

  serving(): string | null {
    return this.#docker.serving();
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
    await this.#perCall.dispose();
    await this.#os.dispose();
    await this.#host.dispose();
    await this.#docker.dispose();
  }

  #lifetime(owner: SandboxOwner): Lasting | PerCall {
    return owner.environment.lifetime === 'call' ? this.#perCall : this.#lasting;
  }

  #handsFor(owner: Pick<SandboxOwner, 'environment'>): Hands {
    const { type } = owner.environment.config;
    if (type === 'host') return this.#host;
    return type === 'os' ? this.#os : this.#docker;
  }
}
