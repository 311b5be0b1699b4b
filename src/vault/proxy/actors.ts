import type { ExecutionId } from '../../protocol/ids.ts';

/** For whom programs that stay work now: what a server does for a call is the call's doing. */
export class Actors {
  readonly #worksFor = new Map<ExecutionId, ExecutionId[]>();

  /** Returns how to say that it is over. A server that works for several calls works for the last one. */
  begin(server: ExecutionId, call: ExecutionId): () => void {
    const calls = this.#worksFor.get(server) ?? [];
    this.#worksFor.set(server, calls);
    calls.push(call);
    return () => {
      const at = calls.lastIndexOf(call);
      if (at !== -1) calls.splice(at, 1);
      if (calls.length === 0 && this.#worksFor.get(server) === calls) this.#worksFor.delete(server);
    };
  }

  /** Whose doing is what comes from it now. */
  of(execution: ExecutionId | undefined): ExecutionId | undefined {
    return (execution && this.#worksFor.get(execution)?.at(-1)) ?? execution;
  }
}
