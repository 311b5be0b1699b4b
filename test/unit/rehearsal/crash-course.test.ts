import { expect, it } from 'vitest';
import { readConversation } from '../../../src/rehearsal/conversation.ts';
import type { Reply } from '../../../src/rehearsal/reply.ts';
import { play } from '../../../src/rehearsal/scenarios/registry.ts';

type Call = { name: string; input: Readonly<Record<string, unknown>> };
type Result = { text: string; isError?: true };

const UNKNOWN = 'Drover was stopped while this ran, and nobody can say what became of it. It may have happened.';

/** A conversation of this piece, as the server is sent it again and again; results come from `world`. */
function converse(task: string, world: (call: Call) => Result): { calls: Call[]; last: string } {
  const messages: unknown[] = [{ role: 'user', content: task }];
  const calls: Call[] = [];
  for (let replies = 0; replies < 30; replies += 1) {
    const { parts }: Reply = play(readConversation(messages, []));
    const called = parts.flatMap((part) => (part.type === 'call' ? [part] : []));
    const words = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
    if (called.length === 0) return { calls, last: words };
    const uses = called.map(({ name, input }, index) => ({ type: 'tool_use', id: `${replies} ${index}`, name, input }));
    messages.push({ role: 'assistant', content: [{ type: 'text', text: words }, ...uses] });
    const results = uses.map((use) => {
      const { text, isError } = world(use);
      return { type: 'tool_result', tool_use_id: use.id, content: text, is_error: isError ?? false };
    });
    messages.push({ role: 'user', content: results });
    calls.push(...called);
  }
  throw new Error('The piece does not end.');
}

const leaves = (line: string) => (call: Call) => String(call.input.command).includes(`echo ${line} >>`);

it('leaves each line by one call, where nothing goes wrong', () => {
  const { calls, last } = converse('[rehearsal:crash-course]', () => ({ text: 'fine' }));
  for (const line of ['alpha', 'beta', 'delta', 'epsilon']) expect(calls.filter(leaves(line))).toHaveLength(1);
  expect(calls.map(({ name }) => name)).toContain('create_agent');
  expect(last).toContain('All is done: 7 steps, in 7 calls.');
});

it('looks before it repeats what nobody can tell, and repeats only what did not happen', () => {
  const file: string[] = [];
  let first = true;
  const { calls } = converse('[rehearsal:crash-course]', (call) => {
    if (call.name === 'read') return { text: file.join('\n') };
    for (const line of ['alpha', 'beta', 'delta', 'epsilon']) {
      if (!leaves(line)(call)) continue;
      // The first alpha never happened; delta did, and neither is known.
      const happened = line !== 'alpha' || !first;
      if (line === 'alpha') first = false;
      if (happened) file.push(line);
      return !happened || line === 'delta' ? { text: UNKNOWN, isError: true } : { text: 'fine' };
    }
    return { text: 'fine' };
  });
  expect(file.toSorted()).toEqual(['alpha', 'beta', 'delta', 'epsilon']);
  expect(calls.filter(leaves('alpha'))).toHaveLength(2);
  expect(calls.filter(({ name }) => name === 'read')).toHaveLength(2);
});

it('stops where a person says no', () => {
  const { calls, last } = converse('[rehearsal:crash-course]', (call) =>
    call.name === 'write' ? { text: 'The user denied this call.', isError: true } : { text: 'fine' },
  );
  expect(last).toContain('You did not allow me to write the report');
  expect(calls.filter(leaves('delta'))).toEqual([]);
});

it('has a part for the helper', () => {
  const { calls, last } = converse('[rehearsal:crash-course part=helper]', () => ({ text: 'fine' }));
  expect(calls.map(({ name }) => name)).toEqual(['bash']);
  expect(calls.filter(leaves('gamma'))).toHaveLength(1);
  expect(last).toContain('All is done');
});
