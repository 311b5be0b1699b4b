import type { PastCall } from '../conversation.ts';
import { type Part, say } from '../reply.ts';
import { excerpt } from './scenario.ts';

const CUT_SHORT = new Set(['lost', 'unknown', 'cancelled', 'timed_out']);

/** The call was cut short, and doing it again does no harm. At most twice: a third time would hardly help. */
export const worthRepeating = (same: readonly PastCall[]): boolean => {
  const last = same.at(-1);
  return last !== undefined && CUT_SHORT.has(last.ending) && same.length < 3;
};

/** The reason a person gave with a denial, quoted, with a space in front; "" if they gave none. */
function reasonOf(denied: PastCall): string {
  const [, reason = ''] = /saying: (.+)/.exec(denied.text) ?? [];
  return reason ? ` You said: “${excerpt(reason)}”` : '';
}

/** What an honest model says of a call that brought nothing: what it wanted, how it ended, and that it stops here. */
export function stopped(call: PastCall, wanted: string): Part[] {
  if (call.ending === 'denied') {
    return [
      say(
        `You did not allow me to ${wanted}, so I stop here.${reasonOf(call)} Tell me to go on if you change your mind.`,
      ),
    ];
  }
  return [
    say(
      `I could not ${wanted}: the \`${call.name}\` call ended “${call.ending.replace('_', ' ')}”. It said: “${excerpt(call.text, 400)}” I stop here rather than guess.`,
    ),
  ];
}

/** After a denial the person has spoken again: do they want it done after all? */
export function isGoAhead(said: string): boolean {
  return !/\b(no|not|don'?t|never|stop|leave|cancel|abort)\b/i.test(said);
}
