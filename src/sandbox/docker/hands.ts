import type Docker from 'dockerode';
import type { Environment } from '../../protocol/environment.ts';
import { messageOf } from '../../protocol/errors.ts';
import { SandboxId, type SessionId } from '../../protocol/ids.ts';
import { draft } from '../../protocol/record.ts';
import type { Hands, Made } from '../hands.ts';
import type { ProviderOptions } from '../provider.ts';
import { type SandboxOwner, SandboxUnavailable } from '../sandbox.ts';
import { connect, type Engine } from './client.ts';
import type { ContainerSandbox } from './container-sandbox.ts';
import { upDevcontainer } from './devcontainer.ts';
import { findConfig, NoConfig } from './devcontainer-config.ts';
import { startImage } from './image.ts';
import { LABEL, withLabels } from './labels.ts';
import { settle } from './settle.ts';

/** Sandboxes in containers of a local engine. */
export class DockerHands implements Hands {
  readonly #options: ProviderOptions;
  readonly #signal: AbortSignal;
  #engine: Promise<Engine> | undefined;
  /** Told as lost in the log: whatever the engine says later, they are not used again. */
  readonly #lost = new Set<SandboxId>();

  /** `signal` ends what is being provisioned. */
  constructor(options: ProviderOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
  }

  recipe(environment: Environment): string {
    const { config } = environment;
    if (config.type === 'image') return `image ${config.image}`;
    if (config.type === 'devcontainer') return config.path ?? 'devcontainer.json';
    return config.type;
  }

  async make(owner: SandboxOwner, id: SandboxId): Promise<Made> {
    const engine = await this.#connect();
    const image = this.#imageFor(owner);
    if (image !== undefined) {
      const container = await startImage(engine, owner, id, image);
      const sandbox = await this.#settle(owner, id, container, {});
      return { sandbox, detail: `container ${container.id.slice(0, 12)} of ${image}` };
    }
    const tools = {
      nodePath: this.#options.nodePath,
      devcontainerCli: this.#options.devcontainerCli,
      env: this.#options.env ?? process.env,
      cacheFolder: this.#options.cacheFolder,
      signal: this.#signal,
    };
    const { containerId, ...inside } = await upDevcontainer(tools, engine, owner, id);
    const sandbox = await this.#settle(owner, id, engine.docker.getContainer(containerId), inside);
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
      if (info.State === 'running' && found.success && !this.#lost.has(found.data)) {
        const sandbox = await this.#settle(owner, found.data, container, {}, true).catch((error: unknown) => {
          // It runs, so nobody may say that it is gone.
          if (id) throw error;
        });
        if (sandbox) return { sandbox, detail: this.#detail(info) };
      }
      // Half-made by a process that died, or dead itself: of no use to anyone.
      if (!id) await container.remove({ force: true, v: true }).catch(() => {});
    }
    return null;
  }

  async discard(session: SessionId, id: SandboxId): Promise<void> {
    await this.#removeLabelled({ session, sandbox: id }).catch(() => []);
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
    this.#engine = undefined;
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

  #settle(
    owner: SandboxOwner,
    id: SandboxId,
    container: Docker.Container,
    inside: { inside?: string; user?: string },
    adopting = false,
  ): Promise<ContainerSandbox> {
    return settle({
      id,
      container,
      ...inside,
      markReady: !adopting,
      onProgress: adopting ? undefined : owner.onProgress,
      onLost: async (reason) => {
        this.#lost.add(id);
        // The engine itself may be what went away: whoever comes next looks for one again.
        this.#engine = undefined;
        await owner.record([draft('drover.sandbox_lost', { sandbox_id: id, reason })]);
      },
    });
  }

  async #removeLabelled(
    labels: Parameters<typeof withLabels>[0],
    which: (info: Docker.ContainerInfo) => boolean = () => true,
  ): Promise<SandboxId[]> {
    const { docker } = await this.#connect();
    const all = await docker.listContainers({ all: true, filters: withLabels(labels) });
    const removed = all.filter(which).map(async (info) => {
      await docker.getContainer(info.Id).remove({ force: true, v: true });
      return SandboxId.parse(info.Labels[LABEL.sandbox]);
    });
    return (await Promise.allSettled(removed)).flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
  }
}
