import { expect, test } from 'vitest';
import { endingOf } from '../../../src/rehearsal/conversation.ts';
import { Faults, faultOf } from '../../../src/rehearsal/faults.ts';
import { markersIn, withoutMarkers } from '../../../src/rehearsal/marker.ts';
import { readTestRun } from '../../../src/rehearsal/scenarios/node-test.ts';

const said = (text: string) => [{ role: 'user', content: [{ type: 'text', text }] }];
const overloaded = { kind: 'status', status: 529 } as const;

test('markers are read with their arguments and taken out of the words', () => {
  const words = 'Please [rehearsal:call tool=bash] do [fault:drop after=10 note="a b"] it';
  expect(markersIn(words)).toEqual([
    { kind: 'rehearsal', name: 'call', args: { tool: 'bash' } },
    { kind: 'fault', name: 'drop', args: { after: '10', note: 'a b' } },
  ]);
  expect(withoutMarkers(words)).toBe('Please  do  it');
  expect(markersIn('[rehearsal] [other:thing] arr[0]')).toEqual([]);
});

test('a marker strikes as often as it says, then no more', () => {
  const faults = new Faults();
  const messages = said('[fault:529 times=2] hi');
  expect([1, 2, 3].map(() => faults.choose(messages))).toEqual([overloaded, overloaded, undefined]);
});

test('a marker strikes at the reply it names, and not after the person has spoken again', () => {
  const faults = new Faults();
  const asked = said('[fault:529 at=1] hi');
  const replied = [
    ...asked,
    { role: 'assistant', content: [{ type: 'text', text: 'x' }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't' }] },
  ];
  expect(faults.choose(asked)).toBeUndefined();
  expect(faults.choose(replied)).toEqual(overloaded);
  expect(faults.choose([...replied, ...said('and now?')])).toBeUndefined();
});

test('ordered faults come first, then the plan by number, then markers, then the rest of the plan', () => {
  const faults = new Faults({ requests: { 1: { kind: 'reset' } }, always: { kind: 'refusal' } });
  faults.order([{ kind: 'cut_tool' }]);
  const kinds = [said('a'), said('b'), said('[fault:529] c'), said('d')].map(
    (messages) => faults.choose(messages)?.kind,
  );
  expect(kinds).toEqual(['cut_tool', 'reset', 'status', 'refusal']);
});

test('a fault that does not exist is none', () => {
  expect(faultOf({ name: 'flood', args: {} })).toBeUndefined();
});

test.each([
  ['The user denied this call, saying: no\nIt did not run.', 'denied'],
  ['Policy denied this call: writes outside the workspace', 'denied'],
  ['The sandbox this ran in is gone, and with it the result. It may have happened, wholly or in part.', 'lost'],
  ['Drover was stopped while this ran, and nobody can say what became of it. It may have happened', 'unknown'],
  ['Interrupted by the user; this call had been started and may have taken effect.', 'unknown'],
  ['Tool execution was interrupted before completion. Please retry.', 'cancelled'],
  ['bash: ./x: Permission denied', 'failed'],
  ['✖ a test\nℹ cancelled 0\nℹ fail 1\n}', 'failed'],
  ['npm error access denied\nexit code 1', 'failed'],
  ['building\nInterrupted by nobody\n[Exit code 1.]', 'failed'],
  ['some output\n[Ended: it did not finish within 120 s, and everything it had started was killed.]', 'timed_out'],
  ['some output\n[Ended: the call was cancelled, and everything it had started was killed.]', 'cancelled'],
])('a result %j reads as %s', (text, ending) => {
  expect(endingOf(text, true)).toBe(ending);
  expect(endingOf(text, false)).toBe('ok');
});

test('a test run is read in both forms, colours and all', () => {
  const spec =
    '\u001b[32m✔ one (1.2ms)\u001b[39m\n\u001b[31m✖ two: a dash (0.3ms)\u001b[39m\nℹ tests 2\nℹ pass 1\nℹ fail 1\n\n✖ failing tests:\n\ntest at test/a.test.js:15:1\n✖ two: a dash (0.3ms)\n';
  const tap =
    "TAP version 13\n# Subtest: two: a dash\nnot ok 2 - two: a dash\n  ---\n  location: '/w/test/a.test.js:15:1'\n1..2\n# tests 2\n# pass 1\n# fail 1\n";
  const run = { tests: 2, pass: 1, fail: 1, failing: 'two: a dash' };
  expect(readTestRun(spec)).toEqual({ ...run, file: 'test/a.test.js' });
  expect(readTestRun(tap)).toEqual({ ...run, file: '/w/test/a.test.js' });
  expect(readTestRun('bash: node: command not found')).toBeUndefined();
});
