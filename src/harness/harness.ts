import type { SessionStore } from '../log/log.ts';
import type { Policy } from '../policy/policy.ts';
import { type Disposable, disposable } from '../protocol/disposable.ts';
import type { AgentSnapshot } from '../protocol/drover-event.ts';
import type { SandboxLifetime, WorkspaceMode } from '../protocol/environment.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { Preview } from '../protocol/panel.ts';
import type { Checkpoints, SandboxProvider } from '../sandbox/sandbox.ts';
import type { Mcp, ThreadTools } from '../tools/mcp.ts';
import type { Toolbox } from '../tools/tools.ts';
import type { SecretGuard } from '../vault/guard.ts';
import { Awake } from './awake.ts';
import type { ModelClient } from './model.ts';

/** The door of `harness/`: the brain. It holds nothing that must survive a crash. */
export interface Harness {
  /**
   * Takes the session's lease and works until nothing can go on without a person; resolves then.
   * A session already awake is only nudged; the promise is the same. Throws `LeaseHeld`.
   */
  wake(id: SessionId, why: string): Promise<void>;
  isAwake(id: SessionId): boolean;
  /** What streams, for the panel. Never stored. */
  onPreview(listener: (session: SessionId, preview: Preview) => void): Disposable;
  /** Stops all work in this process without touching the logs: like a crash, but tidy. */
  dispose(): Promise<void>;
}

/** What the brain is given: where the log is, who answers, what hands there are, and who may say no. */
export interface HarnessDeps {
  store: SessionStore;
  /** Absolute path on the host of the folder the sessions work in. */
  workspaceFolder: string;
  /** The source that serves a model id. */
  modelFor(model: string): ModelClient;
  /**
   * The tools of one thread; `depth` is 0 for the primary, 1 for its children; `lifetime` that of their sandboxes,
   * `workspace` whose files they work on; `mcp` what its servers offer.
   */
  toolbox(of: {
    agent: AgentSnapshot;
    roster: readonly AgentSnapshot[];
    depth: number;
    lifetime: SandboxLifetime;
    workspace: WorkspaceMode;
    mcp: ThreadTools;
  }): Toolbox;
  /** Other people's tools. Absent: agents have none of their servers'. */
  mcp?: Mcp;
  sandboxes: SandboxProvider;
  /** Absent: no checkpoints of the files are kept. */
  checkpoints?: Checkpoints;
  policy: Policy;
  /** Looks through what is sent to the model and shown. Absent: there is nothing to look for. */
  guard?: SecretGuard | undefined;
  /** Test mode: throw the folded state away after every append and fold again from disk. */
  alwaysRefold?: boolean;
  /** Base of the exponential wait before a failed request is made again, ms. Default 1000. */
  retryBaseMs?: number;
  /** A line of progress for people while a sandbox is made. */
  onProgress?: (session: SessionId, line: string) => void;
}

export function createHarness(deps: HarnessDeps): Harness {
  const awake = new Map<SessionId, { session: Promise<Awake>; done: Promise<void> }>();
  const listeners = new Set<(session: SessionId, preview: Preview) => void>();
  const tell = (session: SessionId, preview: Preview) => {
    for (const listener of listeners) listener(session, preview);
  };
  let disposed = false;

  async function work(id: SessionId, opening: Promise<Awake>): Promise<void> {
    let session: Awake | undefined;
    try {
      session = await opening;
      // From here to where it counts as asleep nothing else runs: a nudge that came as the loop ended is not lost.
      do await session.run();
      while (session.hasNews());
    } finally {
      session?.close();
      awake.delete(id);
    }
  }

  return {
    wake(id, why) {
      if (disposed) return Promise.resolve();
      const known = awake.get(id);
      if (known) return known.done;
      const session = Awake.open(deps, id, why, (preview) => tell(id, preview));
      const done = work(id, session);
      awake.set(id, { session, done });
      return done;
    },
    isAwake: (id) => awake.has(id),
    onPreview(listener) {
      listeners.add(listener);
      return disposable(() => listeners.delete(listener));
    },
    async dispose() {
      disposed = true;
      await Promise.allSettled(
        [...awake.values()].map(async ({ session, done }) => {
          (await session).stop();
          await done;
        }),
      );
    },
  };
}
