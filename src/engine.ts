import { createAnthropicClient, warm } from './harness/anthropic.ts';
import { createHarness, type Harness } from './harness/harness.ts';
import type { ModelClient } from './harness/model.ts';
import type { SessionStore } from './log/log.ts';
import { createPolicy } from './policy/policy.ts';
import type { SessionId, VaultId } from './protocol/ids.ts';
import type { McpTokens } from './protocol/mcp-tokens.ts';
import { REHEARSAL_MODEL } from './rehearsal/models.ts';
import { createSandboxProvider } from './sandbox/provider.ts';
import type { Checkpoints, SandboxProvider } from './sandbox/sandbox.ts';
import type { Desk } from './tools/desk.ts';
import type { Mcp } from './tools/mcp.ts';
import { createToolbox } from './tools/toolbox.ts';
import type { Egress } from './vault/egress.ts';
import type { SecretGuard } from './vault/guard.ts';
import { withoutSecrets } from './vault/host-env.ts';
import type { EgressOptions } from './vault/proxy.ts';

/*
 * Puts the rooms that run sessions together, for one workspace folder. Nothing here knows the editor; what it needs of
 * the person's settings comes as functions, asked anew each time.
 */

export interface EngineOptions {
  store: SessionStore;
  /** Absent: no checkpoints of the files are kept. */
  checkpoints?: Checkpoints;
  /** Absolute path. */
  workspaceFolder: string;
  apiKey(): Promise<string | undefined>;
  /** Empty: the service's own. */
  baseUrl(): string;
  /** Empty: found. Read once: a change counts from the next window on. */
  dockerHost: string;
  /** How many sandboxes may run, and minutes until one that nobody uses is stopped. */
  limits?: () => { living: number; idleMinutes: number };
  /** For a folder without a devcontainer.json. Empty or absent: none. */
  defaultImage?: string;
  /** Where the rehearsal's server answers; starts it. */
  rehearsalUrl(): Promise<string>;
  /** The devcontainer program that ships with the extension. */
  devcontainerCli: string;
  /** A writable folder of the extension's own; made if missing. */
  cacheFolder: string;
  onProgress(session: SessionId, line: string): void;
  /** What the person's editor knows of the folder's files. */
  desk?: Desk;
  /** Looks through what goes to the model and the panel. */
  guard?: SecretGuard | undefined;
  /** What a session's sandbox may use of the folder's vaults, and how what is outside is reached. */
  egress?: EgressOptions;
  /** What the vaults of a session have for its MCP servers; the first that has something counts. Absent: nothing. */
  mcpTokens?: (vaults: readonly VaultId[]) => McpTokens;
  /** Drover's own, as MCP servers are told it. */
  version?: string;
}

export interface Engine {
  harness: Harness;
  sandboxes: SandboxProvider;
  dispose(): Promise<void>;
}

export function createEngine(options: EngineOptions): Engine {
  // The SDK takes a while to load: it does so while the person still types. If it can't, the first request says why.
  warm().catch(() => undefined);
  const api = apiClient(options);
  const rehearsal = later(async () => {
    const url = await options.rehearsalUrl();
    return createAnthropicClient({ apiKey: async () => 'rehearsal', baseUrl: () => url });
  });
  const sandboxes = createSandboxProvider({
    nodePath: process.execPath,
    devcontainerCli: options.devcontainerCli,
    cacheFolder: options.cacheFolder,
    env: sandboxEnv(options.dockerHost),
    ...(options.limits ? { limits: options.limits } : {}),
    ...(options.defaultImage ? { defaultImage: options.defaultImage } : {}),
    egress: lateEgress(options.egress),
  });
  const mcp = lateMcp(options);
  const harness = createHarness({
    store: options.store,
    ...(options.checkpoints ? { checkpoints: options.checkpoints } : {}),
    workspaceFolder: options.workspaceFolder,
    modelFor: (model) => (model === REHEARSAL_MODEL ? rehearsal : api),
    toolbox: (of) => createToolbox({ ...of, ...(options.desk ? { desk: options.desk } : {}) }),
    mcp,
    sandboxes,
    policy: createPolicy(),
    guard: options.guard,
    onProgress: options.onProgress,
  });
  return {
    harness,
    sandboxes,
    async dispose() {
      await harness.dispose();
      await mcp.dispose();
      await sandboxes.dispose();
    },
  };
}

/**
 * On the desktop this process is VS Code's own program, which is Node only when it is told to be. What makes sandboxes
 * gets no secret of the host's.
 */
function sandboxEnv(dockerHost: string): NodeJS.ProcessEnv {
  return {
    ...withoutSecrets(process.env),
    ...(dockerHost ? { DOCKER_HOST: dockerHost } : {}),
    ...('electron' in process.versions ? { ELECTRON_RUN_AS_NODE: '1' } : {}),
  };
}

/** The client of the service itself, with the person's own key. */
export const apiClient = (options: Pick<EngineOptions, 'apiKey' | 'baseUrl'>): ModelClient =>
  createAnthropicClient({ apiKey: options.apiKey, baseUrl: () => options.baseUrl() || undefined });

/** The proxy is loaded with the first sandbox: a session without tools never needs it. */
function lateEgress(options: EgressOptions | undefined): Egress {
  let made: Promise<Egress> | undefined;
  return {
    async open(session, token) {
      made ??= import('./vault/proxy.ts').then(({ createEgress }) => createEgress(options));
      return (await made).open(session, token);
    },
  };
}

/** The client of MCP servers is loaded with the first session whose agent names one. */
function lateMcp({ mcpTokens, version = '0' }: EngineOptions): Mcp {
  let made: Promise<Mcp> | undefined;
  let ready: Mcp | undefined;
  const make = async (): Promise<Mcp> => {
    const [{ createMcp }, { stdioConnector }] = await Promise.all([
      import('./tools/mcp/hub.ts'),
      import('./tools/mcp/stdio.ts'),
    ]);
    ready = createMcp({ version, stdio: stdioConnector(), ...(mcpTokens ? { tokens: mcpTokens } : {}) });
    return ready;
  };
  const mcp = () => {
    made ??= make();
    return made;
  };
  return {
    offer: async (...of) => (await mcp()).offer(...of),
    hasNews: (...of) => ready?.hasNews(...of) ?? false,
    call: async (...of) => (await mcp()).call(...of),
    dispose: async () => (await made)?.dispose(),
  };
}

/** A client that is made at its first use. One that could not be made is tried again. */
function later(make: () => Promise<ModelClient>): ModelClient {
  let made: Promise<ModelClient> | undefined;
  const client = () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
  return {
    request: async (call, on, signal) => (await client()).request(call, on, signal),
    list: async () => (await client()).list(),
    limits: async (model) => (await client()).limits(model),
  };
}
