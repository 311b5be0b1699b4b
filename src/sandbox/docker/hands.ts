import type Docker from 'dockerode';
import type { Environment } from '../../protocol/environment.ts';
import { messageOf } from '../../protocol/errors.ts';
import { SandboxId, type SessionId } from '../../protocol/ids.ts';
import { draft } from '../../protocol/record.ts';
import type { GuardedPath } from '../guard-rails.ts';
import type { Hands, Made } from '../hands.ts';
import type { ProviderOptions } from '../provider.ts';
import { SandboxLost, type SandboxOwner, SandboxUnavailable } from '../sandbox.ts';
import { workFolder } from '../work-folder.ts';
import { connect, type Engine, reasonOf, statusOf } from './client.ts';
import type { ContainerSandbox } from './container-sandbox.ts';
import { type DevcontainerTools, type UpRequest, upDevcontainer } from './devcontainer.ts';
import { findConfig, NoConfig } from './devcontainer-config.ts';
import { GuardNotes } from './guard-notes.ts';
import { makeRoom, removeContainers, stopIdle, USUAL_LIMITS } from './housekeeping.ts';
import { IMAGE_TARGET, startImage } from './image.ts';
import { type Keeper, KeptSandbox } from './kept-sandbox.ts';
import { LABEL, withLabels } from './labels.ts';
import { bindMounts, planFor } from './plan.ts';
import { settle } from './settle.ts';

/** How often idle containers are looked for, in ms. */
const IDLE_CHECK_MS = 30_000;
/** Seconds that a container gets to end by itself before it is killed. Ours ends at once when told to. */
const STOP_S = 3;

/** Sandboxes in containers of a local engine. */
export class DockerHands implements Hands {
  readonly #options: ProviderOptions;
  readonly #signal: AbortSignal;
  readonly #notes: GuardNotes;
  readonly #kept = new Map<SandboxId, KeptSandbox>();
  readonly #idle: NodeJS.Timeout;
  #engine: Promise<Engine> | undefined;
  /** Told as lost in the log: whatever the engine says later, they are not used again. */
  readonly #lost = new Set<SandboxId>();

  /** `signal` ends what is being provisioned. */
  constructor(options: ProviderOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#notes = new GuardNotes(options.cacheFolder);
    this.#idle = setInterval(() => void stopIdle(this.#kept.values(), this.#limits().idleMinutes), IDLE_CHECK_MS);
    this.#idle.unref();
  }

  recipe(environment: Environment): string {
    const { config } = environment;
    if (config.type === 'image') return `image ${config.image}`;
    if (config.type === 'devcontainer') return config.path ?? 'devcontainer.json';
    return config.type;
  }

  async make(owner: SandboxOwner, id: SandboxId): Promise<Made> {
    const engine = await this.#connect();
    await makeRoom(engine, this.#kept.values(), this.#limits().living);
    const folder = workFolder(owner);
    const guarded = this.#notes.prepare(id, folder);
    const keepUserId = engine.kind === 'podman' && engine.rootless;
    const planAt = (target: string) =>
      planFor({ owner, id, target, mounts: bindMounts(folder, target, guarded), keepUserId });
    const image = this.#imageFor(owner);
    if (image !== undefined) {
      const container = await startImage(engine, planAt(IMAGE_TARGET), image, owner.onProgress);
      const sandbox = await this.#keep({ engine, owner, id, container, guarded });
      return { sandbox, detail: `container ${container.id.slice(0, 12)} of ${image}` };
    }
    const up = { owner, id, folder, guarded, planAt, onProgress: owner.onProgress };
    const { containerId, user } = await upDevcontainer(this.#tools(), engine, up);
    const container = engine.docker.getContainer(containerId);
    const sandbox = await this.#keep({ engine, owner, id, container, guarded, up, ...(user ? { user } : {}) });
    return { sandbox, detail: `container ${containerId.slice(0, 12)} from devcontainer.json` };
  }

  async adopt(owner: SandboxOwner, id: SandboxId | undefined): Promise<Made | null> {
    const engine = await this.#connectTo(id);
    // Without an engine there is nothing to adopt; `make` says in words that there is none.
    if (!engine) return null;
    const filters = withLabels({ session: owner.session, ...(id ? { sandbox: id } : {}) });
    for (const info of await this.#list(engine, filters)) {
      const container = engine.docker.getContainer(info.Id);
      const found = SandboxId.safeParse(info.Labels[LABEL.sandbox]);
      if (found.success && !this.#lost.has(found.data)) {
        const sandbox = await this.#adoptOne(owner, engine, info, found.data).catch((error: unknown) => {
          // It is there, so nobody may say that it is gone.
          if (id) throw error;
        });
        if (sandbox) return { sandbox, detail: this.#detail(info) };
      }
      // Half-made by a process that died, or dead itself: of no use to anyone.
      if (!id) {
        await container.remove({ force: true, v: true }).catch(() => {});
        if (found.success) this.#forget(found.data);
      }
    }
    return null;
  }

  /** One that was stopped for want of use sleeps on until a call needs it; one that ended by itself is dead. */
  async #adoptOne(
    owner: SandboxOwner,
    engine: Engine,
    info: Docker.ContainerInfo,
    id: SandboxId,
  ): Promise<KeptSandbox | undefined> {
    const known = this.#kept.get(id);
    if (known && !known.lost) return known;
    const guarded = this.#notes.guarded(id);
    const asleep = info.State !== 'running' && this.#notes.resting(id);
    if (!guarded || (info.State !== 'running' && !asleep)) return undefined;
    const container = engine.docker.getContainer(info.Id);
    return await this.#keep({ engine, owner, id, container, guarded, adopting: asleep ? 'asleep' : 'running' });
  }

  async discard(session: SessionId, id: SandboxId): Promise<void> {
    await this.#removeLabelled({ session, sandbox: id }).catch(() => []);
    this.#forget(id);
  }

  removeAll(session: SessionId, keep?: (id: SandboxId) => boolean): Promise<SandboxId[]> {
    const kept = (info: Docker.ContainerInfo) => {
      const { success, data } = SandboxId.safeParse(info.Labels[LABEL.sandbox]);
      return success && keep?.(data) === true;
    };
    return this.#removeLabelled({ session }, (info) => !kept(info));
  }

  async reap(workspaceFolder: string, keep: ReadonlySet<SessionId>): Promise<number> {
    const removed = await this.#removeLabelled(
      { workspace: workspaceFolder },
      (info) => ![...keep].some((session) => session === info.Labels[LABEL.session]),
    );
    return removed.length;
  }

  async diagnose(environment: Environment): Promise<string> {
    const engine = await this.#connect();
    return `A container made from ${this.recipe(environment)} by the engine at ${engine.endpoint.host} (${engine.version}).`;
  }

  async dispose(): Promise<void> {
    clearInterval(this.#idle);
    this.#engine = undefined;
  }

  #limits() {
    return this.#options.limits?.() ?? USUAL_LIMITS;
  }

  #tools(): DevcontainerTools {
    const { nodePath, devcontainerCli, cacheFolder, env = process.env } = this.#options;
    return { nodePath, devcontainerCli, cacheFolder, env, signal: this.#signal };
  }

  #forget(id: SandboxId): void {
    this.#kept.delete(id);
    this.#notes.forget(id);
  }

  #detail(info: Docker.ContainerInfo): string {
    const from = info.Labels['devcontainer.metadata'] === undefined ? `of ${info.Image}` : 'from devcontainer.json';
    return `container ${info.Id.slice(0, 12)} ${from}`;
  }

  /** For a certain sandbox "no engine" is no answer: it may live. */
  async #connectTo(id: SandboxId | undefined): Promise<Engine | undefined> {
    try {
      return await this.#connect();
    } catch (error) {
      if (id) throw error;
      return undefined;
    }
  }

  /** The containers of these labels, dead ones too. An engine that fails once is asked again; throws `SandboxUnavailable`. */
  async #list(engine: Engine, filters: ReturnType<typeof withLabels>): Promise<Docker.ContainerInfo[]> {
    const list = () => engine.docker.listContainers({ all: true, filters });
    try {
      return await list().catch(list);
    } catch (error) {
      this.#engine = undefined;
      throw new SandboxUnavailable(
        'engine',
        `The engine at ${engine.endpoint.host} did not say which sandboxes there are (${messageOf(error)}), so none was used or made; see that it runs, then try again.`,
        { cause: error },
      );
    }
  }

  /** Connected to once; forgotten when it failed, so that an engine started later is found. */
  #connect(): Promise<Engine> {
    if (!this.#engine) {
      const connecting = connect(this.#options.env ?? process.env);
      this.#engine = connecting;
      connecting.catch(() => {
        if (this.#engine === connecting) this.#engine = undefined;
      });
    }
    return this.#engine;
  }

  #imageFor(owner: SandboxOwner): string | undefined {
    const { config } = owner.environment;
    if (config.type === 'image') return config.image;
    const { defaultImage } = this.#options;
    if (defaultImage === undefined || config.type !== 'devcontainer' || config.path !== undefined) return undefined;
    try {
      findConfig(owner.workspaceFolder, undefined);
      return undefined;
    } catch (error) {
      if (!(error instanceof NoConfig)) throw error;
      owner.onProgress?.(`This folder has no devcontainer.json: using the image ${defaultImage}`);
      return defaultImage;
    }
  }

  /** Makes a container one of ours to use: checked, and looked after from now on. */
  async #keep(of: Keeping): Promise<KeptSandbox> {
    const asleep = of.adopting === 'asleep';
    const running = asleep ? undefined : await this.#settle(of, of.adopting === 'running');
    const workspace = running?.workspace ?? (await of.container.inspect()).Config.Labels[LABEL.inside] ?? IMAGE_TARGET;
    const kept = new KeptSandbox({ id: of.id, workspace, running, keeper: this.#keeper(of) });
    this.#kept.set(of.id, kept);
    return kept;
  }

  #settle({ owner, id, container, guarded, user }: Keeping, adopting: boolean): Promise<ContainerSandbox> {
    return settle({
      id,
      container,
      promised: { folder: workFolder(owner), guarded },
      markReady: !adopting,
      onProgress: adopting ? undefined : owner.onProgress,
      onLost: (reason) => this.#tellLost(owner, id, reason),
      ...(user ? { user } : {}),
    });
  }

  async #tellLost(owner: SandboxOwner, id: SandboxId, reason: string): Promise<void> {
    this.#lost.add(id);
    // The engine itself may be what went away: whoever comes next looks for one again.
    this.#engine = undefined;
    await owner.record([draft('drover.sandbox_lost', { sandbox_id: id, reason })]);
  }

  #keeper(of: Keeping): Keeper {
    const { owner, id, container } = of;
    const lose = async (reason: string, cause?: unknown): Promise<SandboxLost> => {
      await this.#tellLost(owner, id, reason);
      return new SandboxLost(`The sandbox was lost (${reason}); the next call gets a fresh one.`, { cause });
    };
    return {
      guarded: () => this.#notes.hold(id),
      stop: async () => {
        this.#notes.rest(id, true);
        await container.stop({ t: STOP_S });
      },
      revive: async () => {
        if (!this.#notes.renew(id)) throw await lose('what has to be write-protected in this folder has changed');
        try {
          await this.#start(of);
          this.#notes.rest(id, false);
          return await this.#settle(of, true);
        } catch (error) {
          throw await lose(`its container could not be started again: ${reasonOf(error)}`, error);
        }
      },
    };
  }

  /** Starts a container whether it is stopped or runs: its mounts are made anew, its files stay. */
  async #start({ engine, container, up }: Keeping): Promise<void> {
    await container.stop({ t: STOP_S }).catch((error: unknown) => {
      // 304: it is stopped already.
      if (statusOf(error) !== 304) throw error;
    });
    if (up) await upDevcontainer(this.#tools(), engine, up);
    else await container.start();
  }

  async #removeLabelled(
    labels: Parameters<typeof withLabels>[0],
    which: (info: Docker.ContainerInfo) => boolean = () => true,
  ): Promise<SandboxId[]> {
    const { docker } = await this.#connect();
    const all = await docker.listContainers({ all: true, filters: withLabels(labels) });
    const gone = await removeContainers(docker, all.filter(which));
    for (const id of gone) this.#forget(id);
    return gone;
  }
}

/** A container and all that is needed to look after it. */
interface Keeping {
  engine: Engine;
  owner: SandboxOwner;
  id: SandboxId;
  container: Docker.Container;
  guarded: readonly GuardedPath[];
  user?: string;
  /** How to bring it up again, if it comes from a devcontainer.json. */
  up?: UpRequest;
  /** It was there already. */
  adopting?: 'running' | 'asleep';
}
