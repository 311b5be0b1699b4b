import type { Conversation, PastCall } from '../conversation.ts';
import { call, type Part, say, think } from '../reply.ts';
import { type Facts, factsOf, TEST_COMMAND } from './fix-facts.ts';
import { reviewTask } from './review.ts';
import { count, excerpt, type Scenario } from './scenario.ts';
import { isGoAhead, stopped, worthRepeating } from './trouble.ts';

/** The task the demo gives: the sample project's tests fail, and the rest is the agent's to find out. */
export const SAMPLE_TASK =
  'A test of this project fails. Find out why, fix the bug, and have a second agent review the fix.';

/** A step of the piece: its reply, or undefined if this step is done. */
type Step = (facts: Facts, conversation: Conversation) => Part[] | undefined;

const STEPS: readonly Step[] = [runTests, readFiles, fix, verify, review, conclude];

/** The main demo: run the tests, read, fix with an edit that asks, verify, have a subagent review, sum up. */
export const fixTheSample: Scenario = {
  name: 'fix-the-sample',
  about: 'Finds the failing test of the sample project, fixes the bug, has a subagent review it.',
  matches: (task) => /\btests?\b/i.test(task) && /\b(fail|fails|failing|fix|bug|broken|red)\b/i.test(task),
  reply(conversation) {
    const facts = factsOf(conversation.calls);
    if (conversation.resumed) return resume(facts, conversation);
    for (const step of STEPS) {
      const parts = step(facts, conversation);
      if (parts) return parts;
    }
    return undefined;
  },
};

/** The person spoke after the end. Only a denied call is taken up again, and only if they seem to want it. */
function resume(facts: Facts, { calls, lastSaid }: Conversation): Part[] | undefined {
  const last = calls.at(-1);
  if (last?.ending !== 'denied') return undefined;
  if (!isGoAhead(lastSaid)) return [say('Understood. I leave everything as it is.')];
  if (last === facts.edit) {
    return [say('Then I will make the edit, and run the tests after it.'), call('edit', last.input)];
  }
  return [say('Then I will try that again.'), call(last.name, last.input)];
}

function runTests(facts: Facts): Part[] | undefined {
  const last = facts.runsBefore.at(-1);
  if (!last) {
    return [
      think(
        'The report is only that a test fails. Before I form an opinion I should see the failure itself, and which files there are.',
      ),
      say('I will run the tests to see the failure, and look at how the project is laid out.'),
      call('bash', { command: TEST_COMMAND }),
      call('glob', { pattern: '**/*.js' }),
      call('read', { file_path: 'package.json' }),
    ];
  }
  if (worthRepeating(facts.runsBefore)) {
    return [
      say(`The test run was cut short (${last.ending.replace('_', ' ')}). I will run the tests again.`),
      call(last.name, last.input),
    ];
  }
  const { before } = facts;
  if (!before) return stopped(last, 'run the tests');
  if (before.fail === 0) {
    return [say(`All ${count(before.tests, 'test')} pass here, so there is nothing for me to fix.`)];
  }
  return undefined;
}

function readFiles(facts: Facts): Part[] | undefined {
  if (facts.edit) return undefined;
  const { before } = facts;
  const wanted = facts.suspects.filter((path) => !facts.reads.has(path));
  if (!before || wanted.length === 0) return undefined;
  const name = before.failing ? `“${before.failing}”` : 'one of them';
  return [
    say(
      `${before.fail} of ${count(before.tests, 'test')} fails: ${name}. I will read that test and the code it is about.`,
    ),
    ...wanted.map((file_path) => call('read', { file_path })),
  ];
}

function fix(facts: Facts): Part[] | undefined {
  const { edit, remedy } = facts;
  if (facts.applied) return undefined;
  if (edit && worthRepeating(facts.edits)) return checkEdit(facts, edit);
  if (edit?.ending === 'denied') return stopped(edit, `change \`${edit.input.file_path}\``);
  if (edit) return stopped(edit, `edit ${edit.input.file_path}`);
  if (remedy) {
    return [
      think(`${remedy.why} That explains the failure exactly, and one line is enough to put it right.`),
      say(`Found it, in \`${remedy.path}\`: ${remedy.why} I will give it a numeric comparison.`),
      call('edit', { file_path: remedy.path, old_string: remedy.line, new_string: remedy.fixed }),
    ];
  }
  const unread = facts.sources.filter((path) => !facts.reads.has(path));
  if (unread.length > 0) {
    return [
      say('The cause is not in what I have read. I will read the other source files.'),
      ...unread.slice(0, 5).map((file_path) => call('read', { file_path })),
    ];
  }
  return [
    say(
      `I read ${count(facts.reads.size, 'file')} and did not find the cause of “${facts.before?.failing}”. I have changed nothing. As a rehearsal I only know the bug of the bundled sample project; a real model would go on from here.`,
    ),
  ];
}

/** Nobody knows whether the edit happened, so the file decides. */
function checkEdit(facts: Facts, edit: PastCall): Part[] {
  const path = String(edit.input.file_path);
  if (!facts.readsSinceEdit.has(path)) {
    return [
      say(
        `I do not know whether my edit of \`${path}\` took effect (${edit.ending}). I will look before I do it again.`,
      ),
      call('read', { file_path: path }),
    ];
  }
  return [say('The edit is not in the file, so I will make it now.'), call('edit', edit.input)];
}

function verify(facts: Facts): Part[] | undefined {
  const last = facts.runsAfter.at(-1);
  if (!last) return [say('Now the tests again, to see whether that was it.'), call('bash', { command: TEST_COMMAND })];
  if (worthRepeating(facts.runsAfter)) return [say('That run was cut short. Once more.'), call(last.name, last.input)];
  const { after } = facts;
  if (!after) return stopped(last, 'run the tests after the edit, which is in place');
  if (after.fail === 0) return undefined;
  const path = String(facts.edit?.input.file_path);
  if (!facts.readsSinceEdit.has(path)) {
    return [
      say(
        `${after.fail} of ${count(after.tests, 'test')} still fails after my edit. I will look at the file as it is now.`,
      ),
      call('read', { file_path: path }),
    ];
  }
  return [
    say(
      `My edit of \`${path}\` did not do it: ${after.fail} of ${count(after.tests, 'test')} still fails, now “${after.failing}”. I do not want to guess further. The edit is still in place; tell me whether to keep it.`,
    ),
  ];
}

function review(facts: Facts, { tools }: Conversation): Part[] | undefined {
  if (facts.review || !tools.has('create_agent')) return undefined;
  const path = String(facts.edit?.input.file_path);
  return [
    say('The tests pass. A second agent should look at it with fresh eyes.'),
    call('create_agent', { title: 'Reviewer', task: reviewTask(path) }),
  ];
}

function conclude(facts: Facts): Part[] {
  const { before, after, edit, review: reviewed } = facts;
  const lines = [
    `- Before: ${before?.fail} of ${before?.tests} tests failed (“${before?.failing}”).`,
    `- Change: one line in \`${edit?.input.file_path}\`, now \`${excerpt(String(edit?.input.new_string))}\`.`,
    `- After: ${after?.pass} of ${after?.tests} tests pass, ${after?.fail} fail.`,
    reviewLine(reviewed),
  ];
  const done = reviewed && reviewed.ending !== 'ok' ? 'The bug is fixed, but not reviewed.' : 'The bug is fixed.';
  return [say(`${done}\n\n${lines.join('\n')}`)];
}

function reviewLine(reviewed: PastCall | undefined): string {
  if (!reviewed) return '- Review: none, I cannot start other agents here.';
  if (reviewed.ending === 'ok') return `- Review: ${excerpt(reviewed.text, 400)}`;
  return `- Review: none, the call ended “${reviewed.ending.replace('_', ' ')}”: ${excerpt(reviewed.text)}`;
}
