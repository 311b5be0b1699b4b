import { createHash } from 'node:crypto';
import { inputSha256 } from '../harness/input-hash.ts';
import { canonicalJson } from '../protocol/canonical.ts';
import type { EventId } from '../protocol/ids.ts';
import { draft, type Scope, type Seq, type StandingRule } from '../protocol/record.ts';
import { askingOf, pendingApprovals } from '../session/fold.ts';
import type { Asking, SessionState, ToolCall } from '../session/state.ts';
import { type Actions, person, type Via } from './actions.ts';
import { allowHost } from './allow-host.ts';
import { unsaved } from './dirty.ts';
import type { LiveSession } from './live-session.ts';
import { Refusal } from './refusal.ts';

/** One answer of a person to one call. */
export interface Answer {
  call: EventId;
  result: 'allow' | 'deny';
  denyMessage?: string;
  /** Allow this from now on, in this session. */
  standing?: boolean;
  /** How far the yes to a question goes. */
  scope?: Scope;
  via: Via;
  /** The seq the view had folded that the person answered from. */
  seen: Seq;
}

/**
 * Appends a person's answer and wakes the harness. Throws `Refusal`, with nothing appended, if the call no longer waits,
 * if the person can't have seen it, if the file has unsaved changes, or if this window may not write.
 */
export async function answer(actions: Actions, session: LiveSession, given: Answer): Promise<void> {
  const known = session.state?.calls.get(given.call);
  if (known && given.result === 'allow') await unsaved(session.folder, known);
  await actions.write(session, 'an approval was answered', (state) => {
    const call = waiting(state, given);
    return [
      draft(
        'user.tool_confirmation',
        {
          tool_use_id: call.id,
          result: given.result,
          ...(given.result === 'deny' && given.denyMessage ? { deny_message: given.denyMessage } : {}),
        },
        {
          thread: call.thread,
          local: {
            actor: person(given.via),
            shown_sha256: shownSha256(call),
            ...(given.standing && given.result === 'allow' ? standing(state.calls.get(call.id)) : {}),
            ...(given.scope ? { scope: given.scope } : {}),
          },
        },
      ),
    ];
  });
  actions.goOn(session, 'an approval was answered');
  const question = session.state?.questions.find((one) => one.id === given.call);
  if (given.result === 'allow' && given.scope === 'always' && question?.host) await allowHost(session, question.host);
}

/** The call or question, if it still waits and the person can have seen it. */
function waiting(state: SessionState, given: Answer): Asking {
  const call = askingOf(state, given.call);
  if (!call) throw new Refusal('This call is no longer in the session’s log, so nothing was answered.');
  if (!pendingApprovals(state).includes(call)) throw new Refusal(alreadyAnswered(state, call));
  if (given.seen < call.seq) {
    throw new Refusal('This view had not shown the call yet when it was answered; look at it and answer again.');
  }
  return call;
}

function alreadyAnswered(state: SessionState, call: Asking): string {
  const said = state.calls.get(call.id)?.confirmation;
  if (!state.calls.has(call.id)) return 'This question no longer waits for an answer, so yours changed nothing.';
  if (!said) return `This ${call.name} call no longer waits for an answer, so yours changed nothing.`;
  const what = said.result === 'allow' ? 'allowed' : 'denied';
  return `This ${call.name} call was already answered: it was ${what} at ${new Date(said.at).toLocaleTimeString()}.`;
}

const standing = (call: ToolCall | undefined) => (call ? { standing: standingRule(call) } : {});

/** A shell command is only ever allowed word for word: anything shorter would allow what nobody has seen. */
export const standingRule = (call: Pick<ToolCall, 'name' | 'input' | 'mcp'>): StandingRule =>
  call.name === 'bash'
    ? { tool: 'bash', input_sha256: inputSha256(call.input) }
    : { tool: call.mcp?.rule ?? call.name };

/** SHA-256, hex, of what every view shows of a call before it is answered: the tool, its whole input, and why it asks. */
const shownSha256 = (call: Asking): string =>
  createHash('sha256')
    .update(canonicalJson({ name: call.name, input: call.input, why: call.why }))
    .digest('hex');
