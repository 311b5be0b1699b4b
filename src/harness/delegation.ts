import { text } from '../protocol/content.ts';
import { type EventId, mint } from '../protocol/ids.ts';
import { draft, type OutcomeKind } from '../protocol/record.ts';
import type { Step } from '../session/decide.ts';
import type { ThreadState } from '../session/state.ts';
import { lastWords } from '../session/transcript.ts';
import { attribution } from './attribution.ts';
import type { Awake } from './awake.ts';
import { inputSha256 } from './input-hash.ts';
import { resultDraft } from './result.ts';

/** What `create_agent` takes: see tools/delegation.ts for its schema. */
const field = (input: Record<string, unknown>, name: string): string => {
  const value = input[name];
  return typeof value === 'string' ? value : '';
};

/**
 * Starts a child: the call's start, its thread and its task are one write, with the task last: of a write that the power
 * cuts off, only the first of these may be left, and the others are added here. The call then stays open until the child's
 * turn ends; that, too, is read from the log alone.
 */
export async function startChild(
  awake: Awake,
  step: Extract<Step, { type: 'run_tool' | 'recover_tool' }>,
): Promise<void> {
  const call = awake.call(step.call);
  const parent = awake.thread(step.thread);
  const wanted = field(call.input, 'agent');
  const agents = [awake.state.agent, ...awake.state.roster];
  const agent = wanted === '' || wanted === 'self' ? parent.agent : agents.find((one) => one.name === wanted);
  if (!agent) {
    const known = agents.map((one) => one.name).join(', ');
    await closeWith(awake, step.call, 'failed', `There is no agent "${wanted}". Agents: ${known}.`);
    return;
  }
  const child = call.child ?? mint.thread();
  const name = field(call.input, 'title') || agent.name;
  const started = call.execution
    ? draft(
        'drover.tool_recovered',
        { tool_use_id: call.id, execution_id: call.execution.id, found: 'absent' },
        { thread: parent.id },
      )
    : draft(
        'drover.tool_started',
        {
          tool_use_id: call.id,
          execution_id: mint.execution(),
          sandbox_id: null,
          input_sha256: inputSha256(call.input),
        },
        { thread: parent.id, local: attribution(awake, parent.id, null) },
      );
  const created = draft(
    'session.thread_created',
    { session_thread_id: child, agent_name: name, workflow_run_id: null },
    { thread: parent.id, local: { created_by: call.id, agent: agent.name } },
  );
  const task = [text(field(call.input, 'task'))];
  await awake.append([
    started,
    ...(call.child ? [] : [created]),
    draft(
      'agent.thread_message_sent',
      { to_session_thread_id: child, to_agent_name: name, content: task },
      { thread: parent.id },
    ),
    draft(
      'agent.thread_message_received',
      { from_session_thread_id: parent.id, from_agent_name: parent.agentName, content: task },
      { thread: child },
    ),
  ]);
}

/** A child's answer becomes the result of the call that made it. */
export async function deliver(awake: Awake, step: Extract<Step, { type: 'deliver' }>): Promise<void> {
  const child = awake.thread(step.child);
  const [outcome, message] = answer(child);
  await closeWith(awake, step.call, outcome, message);
}

function answer(child: ThreadState): [OutcomeKind, string] {
  const words = lastWords(child);
  if (child.interrupted) return ['cancelled', `The user interrupted ${child.agentName} before it had finished.`];
  switch (child.stopReason?.type) {
    case 'retries_exhausted':
      return [
        'failed',
        `${child.agentName} could not go on: ${child.failure?.error.message ?? 'the model failed.'}\n${words}`,
      ];
    case 'refusal':
      return ['failed', `${child.agentName} refused the task.\n${words}`];
    case 'budget_reached':
      return ['failed', `The session's budget was used up before ${child.agentName} had finished.\n${words}`];
    default:
      return ['ok', words || `${child.agentName} ended without a word.`];
  }
}

/** Gives a call that will never run its result. */
export async function closeCall(awake: Awake, step: Extract<Step, { type: 'close_call' }>): Promise<void> {
  const call = awake.call(step.call);
  if (step.outcome === 'failed') {
    await closeWith(awake, step.call, 'failed', call.refused ?? 'The call could not be run.');
    return;
  }
  const reason = call.confirmation?.denyMessage;
  const by = call.confirmation ? 'The user denied this call' : `Policy denied this call: ${call.why ?? 'not allowed'}`;
  const message = `${by}${reason ? `, saying: ${reason}` : '.'}\nIt did not run. Do not try to reach the same goal another way; ask the user, or go on with something else.`;
  await closeWith(awake, step.call, 'denied', message);
}

async function closeWith(awake: Awake, id: EventId, outcome: OutcomeKind, message: string): Promise<void> {
  const call = awake.call(id);
  await awake.append([
    resultDraft(
      call,
      { content: [text(message)], is_error: outcome !== 'ok' },
      { ...attribution(awake, call.thread, null), outcome },
    ),
  ]);
}
