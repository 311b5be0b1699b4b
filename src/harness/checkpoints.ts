import type { EventId } from '../protocol/ids.ts';
import type { Draft, Seq } from '../protocol/record.ts';
import type { CheckpointKeeper } from '../sandbox/sandbox.ts';
import type { ToolSpec } from '../tools/tools.ts';
import type { Awake } from './awake.ts';
import { watchCheckpoints } from './tripwires.ts';

/** True of a call that needs a checkpoint before and after it. What only reads changes nothing, and can be run twice. */
export const mayChangeFiles = (spec: ToolSpec | undefined): boolean => spec?.sandboxed === true && !spec.idempotent;

/** Who takes the session's checkpoints while it is awake; null where none are kept. */
export function keeperFor(awake: Awake): CheckpointKeeper | null {
  const { session, environment, workspaceFolder, record } = awake.owner;
  const owner = {
    session,
    environment,
    workspaceFolder,
    record: async (drafts: Draft[]) => {
      await record(drafts);
      // Whether anybody hears of it does not change what is kept.
      await watchCheckpoints(awake, drafts).catch(() => undefined);
    },
  };
  return awake.deps.checkpoints?.follow({ ...owner, log: () => logOf(awake) }) ?? null;
}

function logOf(awake: Awake) {
  const { head, checkpoint, checkpointProblem, forkedFrom } = awake.state;
  return {
    head: head.seq,
    forkedAt: forkedFrom?.seq ?? -1,
    checkpoint,
    problem: checkpointProblem,
    startedAfter: (seq: Seq) => startedAfter(awake, seq),
  };
}

function startedAfter(awake: Awake, seq: Seq): EventId[] {
  const calls: EventId[] = [];
  for (const call of awake.state.calls.values()) {
    if (!call.execution || call.execution.seq <= seq) continue;
    if (mayChangeFiles(awake.toolbox(awake.thread(call.thread)).find(call.name))) calls.push(call.id);
  }
  return calls;
}
