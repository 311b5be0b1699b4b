import type { Disposable } from '../protocol/disposable.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { Preview } from '../protocol/panel.ts';

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
