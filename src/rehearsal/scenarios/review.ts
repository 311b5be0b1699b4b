import type { PastCall } from '../conversation.ts';
import { call, type Part, say, think } from '../reply.ts';
import { TEST_COMMAND } from './fix-facts.ts';
import { readTestRun } from './node-test.ts';
import { count, excerpt, linesOf, type Scenario } from './scenario.ts';
import { stopped, worthRepeating } from './trouble.ts';

const DIFF_COMMAND = 'git --no-pager diff';

/** The task given to the reviewer, by which the child's thread is known again. */
export const reviewTask = (path: string): string =>
  `Review the fix in ${path}. Run \`${TEST_COMMAND}\` yourself and read \`${DIFF_COMMAND}\`. Report whether the tests pass and whether the change is as small as it should be. Change nothing.`;

/** The subagent of the main demo: it believes nothing it has not run itself. */
export const review: Scenario = {
  name: 'review',
  about: 'Runs the tests and reads the diff, then reports.',
  matches: (task) => task.startsWith('Review the fix in '),
  reply({ calls, resumed }) {
    if (resumed) return undefined;
    const runs = calls.filter((past) => past.input.command === TEST_COMMAND);
    const diffs = calls.filter((past) => past.input.command === DIFF_COMMAND);
    const run = runs.at(-1);
    const diff = diffs.at(-1);
    if (!run || !diff) {
      return [
        think('I was told the fix works. I will see for myself: the tests, and what exactly was changed.'),
        say('I will run the tests and read the diff.'),
        call('bash', { command: TEST_COMMAND }),
        call('bash', { command: DIFF_COMMAND }),
      ];
    }
    const again = [runs, diffs].filter(worthRepeating).map((same) => same[0]);
    const repeats = again.flatMap((past) => (past ? [call(past.name, past.input)] : []));
    if (repeats.length > 0) return [say('That was cut short. I will do it again.'), ...repeats];
    return report(run, diff);
  },
};

function report(run: PastCall, diff: PastCall): Part[] {
  const result = run.ending === 'ok' || run.ending === 'failed' ? readTestRun(run.text) : undefined;
  if (!result) return stopped(run, 'run the tests');
  const tests =
    result.fail === 0
      ? `all ${count(result.tests, 'test')} pass`
      : `${result.fail} of ${count(result.tests, 'test')} fails (“${result.failing}”)`;
  const verdict = result.fail === 0 ? 'Looks right' : 'Not ready';
  return [say(`${verdict}: I ran the tests and ${tests}. ${changeOf(diff)}`)];
}

function changeOf(diff: PastCall): string {
  if (diff.ending !== 'ok') return `I could not read the diff: ${excerpt(diff.text)}`;
  const lines = linesOf(diff.text);
  const files = lines.filter((line) => line.startsWith('diff --git '));
  if (files.length === 0) return 'git shows no change, so I cannot say what was done.';
  const added = lines.filter((line) => line.startsWith('+') && !line.startsWith('+++')).length;
  const removed = lines.filter((line) => line.startsWith('-') && !line.startsWith('---')).length;
  return `The change touches ${count(files.length, 'file')}, ${count(added, 'line')} added and ${removed} removed.`;
}
