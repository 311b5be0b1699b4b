import type { ContentBlock } from '../protocol/content.ts';
import { text } from '../protocol/content.ts';
import { messageOf } from '../protocol/errors.ts';
import { type RunResult, SandboxLost, SandboxUnavailable } from '../sandbox/sandbox.ts';
import type { Outcome } from './tools.ts';

export const ok = (content: string | ContentBlock[], more: Partial<Outcome> = {}): Outcome => ({
  kind: 'ok',
  content: typeof content === 'string' ? [text(content)] : content,
  ...more,
});

export const failed = (words: string, more: Partial<Outcome> = {}): Outcome => ({
  kind: 'failed',
  content: [text(words)],
  ...more,
});

/** What a thrown error means for a call, honestly. `may`: what may have happened, for a call that changes things. */
export function outcomeOfError(error: unknown, signal: AbortSignal, changes: boolean): Outcome {
  if (signal.aborted && !(error instanceof SandboxLost)) return { kind: 'cancelled', content: [text(CANCELLED)] };
  if (error instanceof SandboxLost)
    return {
      kind: 'lost',
      content: [
        text(
          `${error.message} ${changes ? 'This call may or may not have happened, in whole or in part: look before you repeat it. ' : ''}What was only inside the sandbox (processes, files outside the workspace, the shell's state) is gone; the workspace is as it was left.`,
        ),
      ],
    };
  if (error instanceof SandboxUnavailable) return failed(error.message);
  return failed(`The tool could not do its work: ${messageOf(error)}`);
}

const CANCELLED = 'The call was cancelled before it finished.';

/** The outcome of a helper program that did not end by itself; undefined if it did. */
export function interrupted(result: RunResult): Outcome | undefined {
  if (result.ended === 'cancelled') return { kind: 'cancelled', content: [text(CANCELLED)] };
  if (result.ended === 'lost')
    return {
      kind: 'lost',
      content: [text('What waited for this in the sandbox was killed: it may have happened, in whole or in part.')],
    };
  if (result.ended === 'timed_out')
    return {
      kind: 'timed_out',
      content: [text('The sandbox did not answer in time; try again with a narrower request.')],
    };
  return undefined;
}
