import { mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { EnvironmentConfig } from '../../src/protocol/environment.ts';
import type { AnyEvent } from '../../src/protocol/event.ts';
import { mint } from '../../src/protocol/ids.ts';
import { createSandboxProvider, type ProviderOptions } from '../../src/sandbox/provider.ts';
import type { RunRequest, RunResult, Sandbox, SandboxOwner, SandboxProvider } from '../../src/sandbox/sandbox.ts';
import { createEgress } from '../../src/vault/proxy.ts';
import { removeDevcontainerImages, removeLabelled } from '../support/engine.ts';
import { makeFolder } from '../support/temp.ts';

export const TINY = 'drover-tiny:latest';
export const SEARCH = 'drover-search:latest';
export const SAMPLE = 'drover-sample:latest';
const CLI = fileURLToPath(new URL('../../node_modules/@devcontainers/cli/devcontainer.js', import.meta.url));

/** Makes the images that are missing. Throws with the reason if one can't be made. */
export async function makeImages(
  ...ensures: ((options: { log: () => void }) => Promise<{ ok: boolean; why: string }>)[]
): Promise<void> {
  for (const ensure of ensures) {
    const made = await ensure({ log: () => {} });
    if (!made.ok) throw new Error(made.why);
  }
}

/** A workspace folder, a provider, and everything they made, to be cleared away in one go. */
export interface Rig {
  workspace: string;
  cache: string;
  options: ProviderOptions;
  provider: SandboxProvider;
  /** Events that were appended, in order. */
  events: AnyEvent[];
  progress: string[];
  owner(config: EnvironmentConfig): SandboxOwner;
  /** Writes a file of the workspace. */
  put(path: string, content: string | Uint8Array): Promise<void>;
  clear(): Promise<void>;
}

export async function makeRig(more: Partial<ProviderOptions> = {}): Promise<Rig> {
  const workspace = await makeFolder('drover-ws-');
  const cache = await makeFolder('drover-cache-');
  const events: AnyEvent[] = [];
  const progress: string[] = [];
  const options = {
    nodePath: process.execPath,
    devcontainerCli: CLI,
    cacheFolder: cache,
    egress: createEgress(),
    ...more,
  };
  const provider = createSandboxProvider(options);
  const session = mint.session();
  return {
    workspace,
    cache,
    options,
    provider,
    events,
    progress,
    owner: (config) => ({
      session,
      environment: environmentOf(config),
      workspaceFolder: workspace,
      record: async (drafts) => {
        for (const { event } of drafts) events.push({ ...event, processed_at: event.processed_at ?? 'now' });
      },
      onProgress: (line) => progress.push(line),
    }),
    put: async (path, content) => {
      await mkdir(dirname(join(workspace, path)), { recursive: true });
      await writeFile(join(workspace, path), content);
    },
    clear: async () => {
      await provider.dispose();
      if (more.env === undefined) {
        removeLabelled(`drover.workspace=${workspace}`);
        removeDevcontainerImages(basename(workspace));
      }
      for (const folder of [workspace, cache]) await rm(folder, { recursive: true, force: true });
    },
  };
}

export const environmentOf = (config: EnvironmentConfig): SandboxOwner['environment'] => ({
  id: mint.environment(),
  type: 'environment',
  name: 'test',
  config,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
  archived_at: null,
});

/** Runs a shell line in a sandbox. */
export const sh = (sandbox: Sandbox, line: string, more: Partial<RunRequest> = {}): Promise<RunResult> =>
  sandbox.run({
    executionId: mint.execution(),
    argv: ['sh', '-c', line],
    timeoutMs: 20_000,
    signal: new AbortController().signal,
    ...more,
  });

export const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** Without the lines of progress, whose number is nobody's business. */
export const types = (events: readonly AnyEvent[]): string[] =>
  events.map((event) => event.type).filter((type) => type !== 'drover.sandbox_progress');
