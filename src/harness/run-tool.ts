import { text } from '../protocol/content.ts';
import type { EventId, ExecutionId, SandboxId } from '../protocol/ids.ts';
import { mint } from '../protocol/ids.ts';
import { draft, type LogRecord } from '../protocol/record.ts';
import { type Sandbox, SandboxLost, SandboxUnavailable } from '../sandbox/sandbox.ts';
import type { CallResult, ToolCall } from '../session/state.ts';
import type { Outcome, ToolContext, ToolSpec } from '../tools/tools.ts';
import { acquire, release } from './acquire.ts';
import { attribution } from './attribution.ts';
import type { Awake } from './awake.ts';
import { mayChangeFiles } from './checkpoints.ts';
import { inputSha256 } from './input-hash.ts';
import { resultDraft } from './result.ts';

/** Runs an approved call: a sandbox if it needs one, the start in the log, the act, its outcome in the log. */
export async function runTool(awake: Awake, id: EventId, signal: AbortSignal): Promise<void> {
  const call = awake.call(id);
  const toolbox = awake.toolbox(awake.thread(call.thread));
  const spec = toolbox.find(call.name);
  let sandbox: Sandbox | null = null;
  if (spec?.sandboxed) {
    awake.checkpoints?.warm();
    try {
      sandbox = await acquire(awake, call.thread, signal);
    } catch (error) {
      await record(awake, call, notStarted(error, signal), null);
      return;
    }
  }
  const keeper = mayChangeFiles(spec) ? awake.checkpoints : null;
  await keeper?.before(id);
  try {
    await act(awake, call, sandbox, signal);
  } finally {
    // The result is in the log, and may be seen: its checkpoint comes after it.
    keeper?.after(id);
  }
  release(awake, sandbox);
}

/** The call's start in the log, the act, and its outcome in the log. */
async function act(awake: Awake, call: ToolCall, sandbox: Sandbox | null, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return record(awake, call, cancelled, null);
  const toolbox = awake.toolbox(awake.thread(call.thread));
  const executionId = mint.execution();
  await awake.append([
    draft(
      'drover.tool_started',
      {
        tool_use_id: call.id,
        execution_id: executionId,
        sandbox_id: sandbox?.id ?? null,
        input_sha256: inputSha256(call.input),
      },
      { thread: call.thread, local: attribution(awake, call.thread, sandbox?.id ?? null) },
    ),
  ]);
  // Who has taken the session over meanwhile finds this call begun and not run, and lets the model do it anew.
  awake.assertHeld();
  const outcome = signal.aborted
    ? cancelled
    : await toolbox.execute(call.name, call.input, context(awake, call, executionId, sandbox, signal));
  await record(awake, call, outcome, executionId);
}

const cancelled: Outcome = {
  kind: 'cancelled',
  content: [text('Tool execution was interrupted before completion. Please retry.')],
};

function notStarted(error: unknown, signal: AbortSignal): Outcome {
  if (signal.aborted) return cancelled;
  if (error instanceof SandboxUnavailable || error instanceof SandboxLost) {
    return { kind: 'failed', content: [text(`No sandbox, so the call did not run. ${error.message}`)] };
  }
  throw error;
}

/**
 * Finds out what became of a call that was started and whose end this process did not see:
 * its true result if the sandbox has it, a second run only if it is idempotent, else the honest "may have happened".
 */
export async function recoverTool(awake: Awake, id: EventId, signal: AbortSignal): Promise<void> {
  const call = awake.call(id);
  const execution = call.execution;
  if (!execution) return;
  const toolbox = awake.toolbox(awake.thread(call.thread));
  const spec = toolbox.find(call.name);
  const where = execution.sandbox ? await attach(awake, execution.sandbox) : null;
  const sandbox = where instanceof SandboxUnavailable ? null : where;
  const recovery = sandbox
    ? await toolbox.recover(call.name, call.input, context(awake, call, execution.id, sandbox, signal))
    : ({ found: 'absent' } as const);
  await awake.append([
    draft(
      'drover.tool_recovered',
      { tool_use_id: id, execution_id: execution.id, found: recovery.found },
      { thread: call.thread },
    ),
  ]);
  if (recovery.found !== 'absent') await record(awake, call, await recovery.outcome, execution.id);
  else if (spec?.idempotent) await runTool(awake, id, signal);
  else await record(awake, call, nobodyKnows(spec, execution.sandbox, where), execution.id);
  if (recovery.found !== 'absent' && mayChangeFiles(spec)) awake.checkpoints?.after(id);
  release(awake, sandbox);
}

/** The sandbox a call ran in; null if it is gone; the reason if nobody can say. */
async function attach(awake: Awake, id: SandboxId): Promise<Sandbox | SandboxUnavailable | null> {
  try {
    return await awake.deps.sandboxes.attach(awake.owner, id);
  } catch (error) {
    if (error instanceof SandboxUnavailable) return error;
    throw error;
  }
}

function nobodyKnows(
  spec: ToolSpec | undefined,
  wasIn: SandboxId | null,
  where: Sandbox | SandboxUnavailable | null,
): Outcome {
  if (where instanceof SandboxUnavailable) {
    const message = `Drover was stopped while this ran, and its sandbox can't be asked what became of it. It may have happened, wholly or in part, or still be at work; check before you do it again. ${where.message}`;
    return { kind: 'unknown', content: [text(message)] };
  }
  if (spec?.sandboxed && wasIn && !where) {
    const message =
      'The sandbox this ran in is gone, and with it the result. It may have happened, wholly or in part; check before you do it again.';
    return { kind: 'lost', content: [text(message)] };
  }
  const message =
    'Drover was stopped while this ran, and nobody can say what became of it. It may have happened, wholly or in part; check before you do it again.';
  return { kind: 'unknown', content: [text(message)] };
}

function context(
  awake: Awake,
  call: ToolCall,
  executionId: ExecutionId,
  sandbox: Sandbox | null,
  signal: AbortSignal,
): ToolContext {
  return {
    executionId,
    thread: call.thread,
    signal,
    sandbox: () => (sandbox ? Promise.resolve(sandbox) : acquire(awake, call.thread, signal)),
    onOutput: (output) => awake.preview({ type: 'output', thread: call.thread, id: call.id, text: output }),
    seen: (path) => seen(awake, call, path),
    readLog: (range) => readLog(awake, range),
  };
}

/** The file as the call's thread last read or wrote it, by the results in the log. */
function seen(awake: Awake, call: ToolCall, path: string): string | undefined {
  let last: CallResult | undefined;
  for (const { thread, result } of awake.state.calls.values()) {
    if (thread !== call.thread || result?.realPath !== path || result.fileSha256 === null) continue;
    if (!last || result.seq > last.seq) last = result;
  }
  return last?.fileSha256 ?? undefined;
}

async function readLog(awake: Awake, range: Parameters<ToolContext['readLog']>[0]): Promise<LogRecord[]> {
  const ids = range.ids ? new Set(range.ids) : undefined;
  const records = (await awake.readRecords()).filter((record) =>
    ids ? ids.has(record.event.id) : record.seq >= (range.from ?? 0) && record.seq <= (range.to ?? Infinity),
  );
  return range.full ? Promise.all(records.map((record) => whole(awake, record))) : records;
}

/** A record with its spilled text put back in place of the preview. */
async function whole(awake: Awake, record: LogRecord): Promise<LogRecord> {
  const blob = record.local?.blobs?.find((one) => one.media_type.startsWith('text/'));
  if (!blob || !('content' in record.event)) return record;
  const bytes = await awake.deps.store.readBlob(awake.id, blob);
  const event = { ...record.event, content: [text(new TextDecoder().decode(bytes))] };
  return { ...record, event };
}

/** The outcome becomes the call's result: durable before anybody sees it. */
async function record(awake: Awake, call: ToolCall, outcome: Outcome, executionId: ExecutionId | null): Promise<void> {
  const shown = awake.deps.guard?.mask(awake.id, outcome, awake.state.revealed) ?? { ...outcome, masked: [] };
  const blob = shown.whole ? await awake.putBlob(shown.whole.bytes, shown.whole.media_type) : undefined;
  await awake.append([
    resultDraft(
      call,
      { content: resultBlocks(shown), is_error: outcome.kind !== 'ok' },
      {
        ...attribution(awake, call.thread, call.execution?.sandbox ?? null),
        outcome: outcome.kind,
        ...(executionId ? { execution_id: executionId } : {}),
        ...(outcome.sandbox ? { sandbox_id: outcome.sandbox } : {}),
        ...(outcome.exitCode === undefined ? {} : { exit_code: outcome.exitCode }),
        ...(outcome.durationMs === undefined ? {} : { duration_ms: outcome.durationMs }),
        ...(outcome.realPath === undefined ? {} : { real_path: outcome.realPath }),
        ...(outcome.fileSha256 === undefined ? {} : { file_sha256: outcome.fileSha256 }),
        ...(blob ? { blobs: [blob] } : {}),
        ...(shown.masked.length > 0 ? { masked: shown.masked } : {}),
      },
    ),
  ]);
}

const resultBlocks = (outcome: Pick<Outcome, 'content'>) =>
  outcome.content.filter((block) => block.type !== 'redacted');
