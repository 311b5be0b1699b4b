import type { Environment } from '../protocol/environment.ts';
import type { SandboxId, SessionId } from '../protocol/ids.ts';
import type { Cleaned, Sandbox, SandboxOwner } from './sandbox.ts';

/** A sandbox that knows whether it was seen to be gone. */
export interface LivingSandbox extends Sandbox {
  readonly lost: boolean;
}

/** A sandbox that can run commands, and what a person would look for: a container's id, what it was made from. */
export interface Made {
  sandbox: LivingSandbox;
  detail: string;
}

/** One way to get sandboxes. The provider does the records and the sharing; this does the work. */
export interface Hands {
  /** For people and the log: what the sandbox is made from. */
  recipe(environment: Environment): string;
  /** Makes one and waits until it can run a command. Throws `SandboxUnavailable`. */
  make(owner: SandboxOwner, id: SandboxId): Promise<Made>;
  /** The session's living, wholly provisioned sandbox that another process left, of this id if one is given. */
  adopt(owner: SandboxOwner, id: SandboxId | undefined): Promise<Made | null>;
  /** Removes one, or what a failed `make` left of it. Never throws: what can't be removed is reaped later. */
  discard(session: SessionId, id: SandboxId): Promise<void>;
  /** Removes all of a session's but those to `keep`; returns the ids of what is gone. */
  removeAll(session: SessionId, keep?: (id: SandboxId) => boolean): Promise<SandboxId[]>;
  reap(workspaceFolder: string, keep: ReadonlySet<SessionId>): Promise<number>;
  /** What `SandboxProvider.cleanUp` says, of this kind. Throws if it can't be looked for. */
  cleanUp(
    workspaceFolder: string,
    keep: ReadonlySet<SessionId>,
    environments: readonly Environment[],
  ): Promise<Cleaned>;
  /** One sentence on what would serve this environment. Throws if nothing would. */
  diagnose(environment: Environment): Promise<string>;
  dispose(): Promise<void>;
}
