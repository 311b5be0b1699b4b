import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { SandboxManager as Manager, SandboxRuntimeConfig } from '@anthropic-ai/sandbox-runtime';
import { messageOf } from '../../protocol/errors.ts';
import { type GuardedPath, guardRails, makeStandIns } from '../guard-rails.ts';
import { SandboxUnavailable } from '../sandbox.ts';
import { forgetBridge, noteBridge, reapBridges } from './bridges.ts';
import { OsDoor } from './door.ts';

/** What one sandbox may touch. Absolute paths on this machine. */
export interface OsLimits {
  workspace: string;
  /** The workspace folder that `workspace` is a copy of, if it is one. */
  original?: string;
  /** Where executions and temporary files of this sandbox are kept. */
  folder: string;
}

export interface RuntimeOptions {
  /** Where the runtime's relay is noted, so that it is ended if this process can't. */
  bridges: string;
  /** Path of `apply-seccomp`; undefined = where the runtime's own package keeps it. */
  seccompHelper: string | undefined;
}

/** Places of secrets in a home folder. The rest of it stays readable: tools are installed there. */
const SECRETS = `.ssh .gnupg .aws .azure .config/gcloud .config/gh .config/hub .docker .kube .netrc .npmrc .pypirc
  .git-credentials .config/git/credentials .password-store .config/Code .config/anthropic .claude .claude.json`.split(
  /\s+/,
);

let started: Promise<typeof Manager> | undefined;
let door: Promise<OsDoor> | undefined;

/** The port the runtime leads its sandboxes to, opened at first need. */
export function osDoor(): Promise<OsDoor> {
  door ??= OsDoor.open();
  return door;
}

/**
 * The runtime, loaded and started at first need; there is one per process. It fails closed: nothing runs if the
 * operating system can't hold it. Throws `SandboxUnavailable`.
 */
export function osRuntime(options: RuntimeOptions): Promise<typeof Manager> {
  if (!started) {
    const starting = start(options);
    started = starting;
    starting.catch(() => {
      started = undefined;
    });
  }
  return started;
}

/** Ends the runtime, if one was started. */
export async function endOsRuntime(options: RuntimeOptions): Promise<void> {
  const running = started;
  const opened = door;
  started = undefined;
  door = undefined;
  await opened?.then((one) => one.close()).catch(() => {});
  if (!running) return;
  await running.then((manager) => manager.reset()).catch(() => {});
  forgetBridge(options.bridges);
}

async function start(options: RuntimeOptions): Promise<typeof Manager> {
  const { SandboxManager } = await import('@anthropic-ai/sandbox-runtime');
  if (!SandboxManager.isSupportedPlatform())
    throw unavailable(
      `there is no sandbox for ${process.platform} yet`,
      'start Docker and use an environment of type "devcontainer" or "image"',
    );
  const missing = SandboxManager.checkDependencies().errors;
  if (missing.length > 0)
    throw unavailable(
      missing.join(', '),
      'install bubblewrap, socat and ripgrep, or start Docker and use another environment',
    );
  try {
    const { port } = await osDoor();
    const config = configFor(undefined, options);
    await SandboxManager.initialize({ ...config, network: { ...config.network, httpProxyPort: port } });
  } catch (error) {
    throw unavailable(messageOf(error), 'start Docker and use an environment of type "devcontainer" or "image"');
  }
  reapBridges(options.bridges);
  noteBridge(options.bridges, SandboxManager.getLinuxHttpSocketPath());
  return SandboxManager;
}

const unavailable = (why: string, advice: string): SandboxUnavailable =>
  new SandboxUnavailable('container', `The operating system's sandbox can't start (${why}); ${advice}.`);

/** Reading is open but for secrets, writing closed but for the workspace and the sandbox's own folder. The runtime
 * itself lets nobody out; what asks our door is let out by the sandbox's own rules. */
export function configFor(limits: OsLimits | undefined, { seccompHelper }: RuntimeOptions): SandboxRuntimeConfig {
  const secrets = SECRETS.map((path) => join(homedir(), path)).filter((path) => existsSync(path));
  const rails = limits ? freshRails(limits.workspace) : [];
  const inWorkspace = (...how: GuardedPath['how'][]) =>
    rails.filter((one) => limits && how.includes(one.how)).map(({ path }) => join(limits?.workspace ?? '', path));
  return {
    network: { allowedDomains: [], deniedDomains: [] },
    filesystem: {
      denyRead: [...secrets, ...inWorkspace('hidden'), ...(limits?.original ? [join(limits.original, '.drover')] : [])],
      // An editor keeps its extensions' folders among its own settings, which are hidden.
      // A copy lies in the folder of the logs it must not see.
      allowRead: limits ? [limits.folder, ...(limits.original ? [limits.workspace] : [])] : [],
      // What is allowed once more by itself can be neither moved nor removed.
      allowWrite: limits ? [limits.workspace, limits.folder, ...inWorkspace('anchor')] : [],
      denyWrite: inWorkspace('read_only', 'hidden'),
    },
    ...(seccompHelper ? { seccomp: { applyPath: seccompHelper } } : {}),
  };
}

/** As the folder is now: each call has mounts of its own. One that does not exist would show up inside as an empty device. */
export function freshRails(workspace: string): GuardedPath[] {
  const { guarded, standIns } = guardRails(workspace);
  makeStandIns(workspace, standIns);
  return guarded;
}
