import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import type { Environment } from '../../protocol/environment.ts';
import { messageOf } from '../../protocol/errors.ts';
import { SandboxId, type SessionId } from '../../protocol/ids.ts';
import { draft } from '../../protocol/record.ts';
import { GuardNotes } from '../guard-notes.ts';
import type { GuardedPath } from '../guard-rails.ts';
import type { Hands, Made } from '../hands.ts';
import type { ProviderOptions } from '../provider.ts';
import type { Sync } from '../remote/sync.ts';
import { type Cleaned, SandboxLost, type SandboxOwner, SandboxUnavailable } from '../sandbox.ts';
import { workFolder } from '../work-folder.ts';
import { cleanUp, removeContainers } from './cleanup.ts';
import { connect, describeEngine, type Engine, reasonOf, statusOf } from './client.ts';
import type { ContainerSandbox } from './container-sandbox.ts';
import { composeNetwork, type DevcontainerTools, type UpRequest, upDevcontainer } from './devcontainer.ts';
import { findConfig, NoConfig } from './devcontainer-config.ts';
import { Copies, copyMount } from './elsewhere.ts';
import { makeRoom, Strays, stopIdle, USUAL_LIMITS } from './housekeeping.ts';
import { IMAGE_TARGET, needImage, startImage } from './image.ts';
import { ImageNotes } from './image-notes.ts';
import { type Keeper, KeptSandbox } from './kept-sandbox.ts';
import { LABEL, labelsFor, withLabels } from './labels.ts';
import { imageWithPackages, managersOf } from './packages.ts';
import { bindMounts, planFor } from './plan.ts';
import { settle } from './settle.ts';
import { WaysOut } from './ways-out.ts';

/** How often idle containers are looked for, in ms. */
const IDLE_CHECK_MS = 15_000;
/** ms. */
const RELAY_ENDS_MS = 500;
/** Seconds that a container gets to end by itself before it is killed. Ours ends at once when told to. */
const STOP_S = 3;

/** Sandboxes in containers of a local engine. */
export class DockerHands implements Hands {
  readonly #options: ProviderOptions;
  readonly #signal: AbortSignal;
  readonly #notes: GuardNotes;
  readonly #ways: WaysOut;
  readonly #images: ImageNotes;
  readonly #copies: Copies;
  readonly #kept = new Map<SandboxId, KeptSandbox>();
  readonly #strays = new Strays();
  readonly #idle: NodeJS.Timeout;
  #engine: Promise<Engine> | undefined;
  #serving: string | null = null;
  /** Told as lost in the log: whatever the engine says later, they are not used again. */
  readonly #lost = new Set<SandboxId>();

  /** `owners`: who asked last for each session's sandbox. `signal` ends what is being provisioned. */
  constructor(options: ProviderOptions, owners: ReadonlyMap<SessionId, SandboxOwner>, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#notes = new GuardNotes(options.cacheFolder);
    this.#ways = new WaysOut(options, owners);
    this.#images = new ImageNotes(options.cacheFolder);
    this.#copies = new Copies(options.cacheFolder);
    this.#idle = setInterval(() => void this.#stopIdle(), options.idleCheckMs ?? IDLE_CHECK_MS);
    this.#idle.unref();
  }

  recipe(environment: Environment): string {
    const { config } = environment;
    if (config.type === 'image') {
      const managers = managersOf(config.packages).map(([name, entries]) => `${name} ${entries.length}`);
      return `image ${config.image}${managers.length > 0 ? ` with packages (${managers.join(', ')})` : ''}`;
    }
    if (config.type === 'devcontainer') return config.path ?? 'devcontainer.json';
    return config.type;
  }

  async make(owner: SandboxOwner, id: SandboxId): Promise<Made> {
    const engine = await this.#connect();
    await makeRoom(engine, this.#kept.values(), this.#limits().living);
    const image = this.#imageFor(owner);
    const guarded = await this.#prepareFolder(engine, owner, id, image);
    await this.#ways.open(engine, owner, id);
    const up = this.#upRequest(engine, owner, id, guarded);
    if (image !== undefined) {
      const furnished = await this.#withPackages(engine, owner, id, image);
      const container = await startImage(engine, up.planAt(IMAGE_TARGET), furnished, owner.onProgress);
      const sandbox = await this.#keep({ engine, owner, id, container, guarded });
      return { sandbox, detail: `container ${container.id.slice(0, 12)} of ${image}` };
    }
    const { containerId, user } = await this.#up(engine, up);
    const container = engine.docker.getContainer(containerId);
    this.#images.used((await container.inspect()).Config.Image, owner.workspaceFolder);
    const sandbox = await this.#keep({ engine, owner, id, container, guarded, up, ...(user ? { user } : {}) });
    return { sandbox, detail: `container ${containerId.slice(0, 12)} from devcontainer.json` };
  }

  /** The image as its environment wants it; made at the first need. */
  async #withPackages(engine: Engine, owner: SandboxOwner, id: SandboxId, image: string): Promise<string> {
    const { config } = owner.environment;
    const packages = config.type === 'image' ? config.packages : undefined;
    if (managersOf(packages).length === 0 || !packages) return image;
    await needImage(engine, image, owner.onProgress);
    const { onProgress } = owner;
    return await imageWithPackages({
      engine,
      image,
      packages,
      way: this.#ways.get(id),
      signal: this.#signal,
      onProgress,
    });
  }

  /** What a sandbox needs of the folder before it is made: guard rails here, or a copy on an engine elsewhere. */
  async #prepareFolder(engine: Engine, owner: SandboxOwner, id: SandboxId, image: string | undefined) {
    if (!engine.elsewhere) return this.#notes.prepare(id, workFolder(owner));
    this.#notes.prepareCopy(id, workFolder(owner));
    await this.#copies.make(engine, owner, id, image);
    return [];
  }

  #upRequest(engine: Engine, owner: SandboxOwner, id: SandboxId, guarded: readonly GuardedPath[]): UpRequest {
    const folder = workFolder(owner);
    const planAt = (target: string) =>
      planFor({
        ...{ owner, id, target, engine },
        mounts: engine.elsewhere ? [copyMount(id, target)] : bindMounts(folder, target, guarded),
        way: this.#ways.get(id),
      });
    return { owner, id, folder, guarded, planAt, onProgress: owner.onProgress };
  }

  async adopt(owner: SandboxOwner, id: SandboxId | undefined): Promise<Made | null> {
    const engine = await this.#connectTo(id);
    // Without an engine there is nothing to adopt; `make` says in words that there is none.
    if (!engine) return null;
    const filters = withLabels({ session: owner.session, ...(id ? { sandbox: id } : {}) });
    for (const info of await this.#list(engine, filters)) {
      // A service beside the sandbox goes where the sandbox goes.
      if (info.Labels[LABEL.inside] === undefined && info.Labels['com.docker.compose.service'] !== undefined) continue;
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
      if (!id && found.success) await this.discard(owner.session, found.data);
      else if (!id) await container.remove({ force: true, v: true }).catch(() => {});
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
    const asleep = info.State !== 'running' && this.#notes.resting(id);
    if (info.State !== 'running' && !asleep) return undefined;
    const known = this.#kept.get(id);
    if (known && !known.lost) return known;
    const guarded = this.#notes.guarded(id);
    if (!guarded || isSevered(info, id)) return undefined;
    const container = engine.docker.getContainer(info.Id);
    const up = info.Labels['devcontainer.metadata'] ? { up: this.#upRequest(engine, owner, id, guarded) } : {};
    return await this.#keep({ engine, owner, id, container, guarded, ...up, adopting: asleep ? 'asleep' : 'running' });
  }

  async discard(session: SessionId, id: SandboxId): Promise<void> {
    try {
      await this.#removeLabelled({ session, sandbox: id });
      const { docker } = await this.#connect();
      const left = await docker.listContainers({ all: true, filters: withLabels({ sandbox: id }) });
      // As long as one is there, so are its guard rails.
      if (left.length === 0) this.#forget(id);
    } catch {
      // No engine: what is left carries its labels, and is reaped at the next start.
    }
  }

  removeAll(session: SessionId, keep?: (id: SandboxId) => boolean): Promise<SandboxId[]> {
    const kept = (info: Docker.ContainerInfo) => {
      const { success, data } = SandboxId.safeParse(info.Labels[LABEL.sandbox]);
      return success && keep?.(data) === true;
    };
    return this.#removeLabelled({ session }, (info) => !kept(info));
  }

  async reap(workspaceFolder: string, keep: ReadonlySet<SessionId>): Promise<number> {
    return (await this.#cleanUp(workspaceFolder, keep, false, [])).here;
  }

  async cleanUp(
    workspaceFolder: string,
    keep: ReadonlySet<SessionId>,
    environments: readonly Environment[],
  ): Promise<Cleaned> {
    return await this.#cleanUp(workspaceFolder, keep, true, environments);
  }

  async #cleanUp(
    workspaceFolder: string,
    keep: ReadonlySet<SessionId>,
    all: boolean,
    environments: readonly Environment[],
  ) {
    const { docker } = await this.#connect();
    const input = { docker, notes: this.#notes, images: this.#images, workspaceFolder, keep, all, environments };
    const cleaned = await cleanUp(input);
    this.#strays.notice(cleaned.kept);
    return cleaned;
  }

  async diagnose(environment: Environment): Promise<string> {
    return `A container made from ${this.recipe(environment)} by ${describeEngine(await this.#connect())}.`;
  }

  /** The engine in use, in words; null if none was asked for yet. */
  serving(): string | null {
    return this.#serving;
  }

  async dispose(): Promise<void> {
    clearInterval(this.#idle);
    await Promise.all([...this.#kept.values()].map((kept) => kept.close()));
    this.#engine = undefined;
    await this.#ways.close();
  }

  async #stopIdle(): Promise<void> {
    const { idleMinutes } = this.#limits();
    for (const [id, kept] of this.#kept) if (kept.idleMs !== undefined) this.#notes.touch(id);
    await stopIdle(this.#kept.values(), idleMinutes);
    const engine = await this.#engine?.catch(() => undefined);
    if (!engine) return;
    await this.#strays.stop(engine.docker, idleMinutes, {
      unusedMs: (id) => this.#notes.unusedMs(id),
      rest: (id) => this.#notes.rest(id, true),
    });
  }

  #limits() {
    return this.#options.limits?.() ?? USUAL_LIMITS;
  }

  #tools(): DevcontainerTools {
    const { nodePath, devcontainerCli, cacheFolder, env = process.env } = this.#options;
    return { nodePath, devcontainerCli, cacheFolder, env, signal: this.#signal };
  }

  /** What a devcontainer.json runs when its container starts has the way out, too. */
  async #up(engine: Engine, up: UpRequest) {
    const started = await this.#ways.get(up.id)?.enterWhenStarted(engine, labelsFor(up.owner, up.id));
    try {
      return await upDevcontainer(this.#tools(), engine, up);
    } finally {
      started?.();
    }
  }

  #forget(id: SandboxId): void {
    this.#kept.delete(id);
    this.#notes.forget(id);
    this.#copies.forget(id);
    this.#ways.forget(id);
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
      connecting.then(
        (engine) => {
          this.#serving = describeEngine(engine);
        },
        () => {
          if (this.#engine === connecting) this.#engine = undefined;
        },
      );
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
    if (of.engine.elsewhere && !of.adopting) await this.#copies.held(of.engine, of.id);
    if (of.adopting) await this.#ways.reopen(of.engine, of.owner, of.id, of.container);
    const running = asleep ? undefined : await this.#settleAndEnter(of);
    if (of.adopting) await running?.endLeft();
    const workspace = running?.workspace ?? (await of.container.inspect()).Config.Labels[LABEL.inside] ?? IMAGE_TARGET;
    const sync = of.engine.elsewhere ? this.#copies.sync(of.owner, of.id, of.container, workspace) : undefined;
    const keeper = { ...this.#keeper(of), ...(sync ? carrying(sync) : {}) };
    const kept = new KeptSandbox({ id: of.id, workspace, running, keeper });
    this.#kept.set(of.id, kept);
    return kept;
  }

  /** The way out is opened meanwhile: what looks at the container does not need it. */
  async #settleAndEnter(of: Keeping): Promise<ContainerSandbox> {
    const entering = this.#ways.get(of.id)?.enter(of.container);
    const settling = this.#settle(of, of.adopting === 'running');
    const [settled, entered] = await Promise.allSettled([settling, entering]);
    if (entered.status === 'rejected' && settled.status === 'fulfilled') settled.value.close();
    await entering;
    return await settling;
  }

  async #settle(of: Keeping, adopting: boolean): Promise<ContainerSandbox> {
    const { engine, owner, id, container, guarded, user, up } = of;
    const network = up ? await closedNetwork(engine.docker, id) : undefined;
    return await settle({
      id,
      container,
      promised: {
        folder: engine.elsewhere ? undefined : workFolder(owner),
        guarded,
        network,
        wayOut: this.#ways.get(id)?.mount,
      },
      markReady: !adopting,
      ours: new Set(Object.keys(this.#ways.get(id)?.env ?? {})),
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
    const { owner, id } = of;
    const lose = async (reason: string, cause?: unknown): Promise<SandboxLost> => {
      await this.#tellLost(owner, id, reason);
      return new SandboxLost(`The sandbox was lost (${reason}); the next call gets a fresh one.`, { cause });
    };
    return {
      guarded: () => this.#notes.hold(id),
      after: async () => {
        for (const path of this.#notes.sweep(id))
          owner.onProgress?.(`${path} was made in the sandbox and removed: git would have run what it leads to`);
      },
      env: (execution) => this.#ways.get(id)?.envFor(execution) ?? {},
      actFor: (server, call) => this.#ways.get(id)?.actFor(server, call),
      ran: async (execution) => this.#ways.get(id)?.settle(execution),
      stop: async () => {
        this.#notes.rest(id, true);
        // Services beside it, too.
        const all = await of.engine.docker.listContainers({ filters: withLabels({ sandbox: id }) });
        await Promise.all(all.map(({ Id }) => of.engine.docker.getContainer(Id).stop({ t: STOP_S })));
      },
      revive: async () => {
        if (!this.#notes.renew(id)) throw await lose('what has to be write-protected in this folder has changed');
        try {
          await this.#start(of);
          await this.#enterAgain(of);
          this.#notes.rest(id, false);
          return await this.#settle(of, true);
        } catch (error) {
          throw await lose(`its container could not be started again: ${reasonOf(error)}`, error);
        }
      },
    };
  }

  /** The relay of before may take a moment to end, and there is room for one. */
  async #enterAgain({ id, container }: Keeping): Promise<void> {
    const way = this.#ways.get(id);
    await way?.enter(container).catch(async () => {
      await sleep(RELAY_ENDS_MS);
      await way.enter(container);
    });
  }

  /** Starts a container whether it is stopped or runs: its mounts are made anew, its files stay. */
  async #start({ engine, container, up }: Keeping): Promise<void> {
    await container.stop({ t: STOP_S }).catch((error: unknown) => {
      // 304: it is stopped already.
      if (statusOf(error) !== 304) throw error;
    });
    if (up) await this.#up(engine, up);
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

/** Around each call: the person's newer files go to the copy, what the call changed comes back. */
const carrying = (sync: Sync): Pick<Keeper, 'before' | 'after'> => ({
  before: (running) => sync.up(running),
  after: (running) => sync.down(running),
});

/** It was cut off from the network of its Compose services: none of them can be reached from it any more. */
const isSevered = ({ HostConfig: host, NetworkSettings: settings }: Docker.ContainerInfo, id: SandboxId): boolean =>
  host.NetworkMode === composeNetwork(id) && !(composeNetwork(id) in settings.Networks);

/** The network of a sandbox's Compose services, if it is one that leads nowhere. */
async function closedNetwork(docker: Docker, id: SandboxId): Promise<string | undefined> {
  const name = composeNetwork(id);
  try {
    const { Internal, Options, Labels }: Docker.NetworkInspectInfo = await docker.getNetwork(name).inspect();
    const closed = Internal && Options?.['com.docker.network.bridge.inhibit_ipv4'] === 'true';
    return closed && Labels?.[LABEL.sandbox] === id ? name : undefined;
  } catch {
    // There is none: it is no Compose devcontainer.
    return undefined;
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
