import { describe, expect, test } from 'vitest';
import { validateMessages } from '../../../src/rehearsal/validate.ts';

const text = (value: string) => ({ type: 'text', text: value });
const use = (id: string, input: unknown = {}) => ({ type: 'tool_use', id, name: 'bash', input });
const result = (id: string, content: unknown = 'done') => ({ type: 'tool_result', tool_use_id: id, content });
const user = (...content: unknown[]) => ({ role: 'user', content });
const assistant = (...content: unknown[]) => ({ role: 'assistant', content });

describe('accepted', () => {
  test.each([
    ['one message', [user(text('hi'))]],
    ['a string as content', [{ role: 'user', content: 'hi' }]],
    ['two user messages in a row, which the API takes as one turn', [user(text('a')), user(text('b'))]],
    ['a call and its result', [user(text('a')), assistant(text('b'), use('t1')), user(result('t1'))]],
    [
      'parallel calls answered in another order',
      [user(text('a')), assistant(use('t1'), use('t2')), user(result('t2'), result('t1'))],
    ],
    ['words after the results', [user(text('a')), assistant(use('t1')), user(result('t1'), text('and'))]],
    [
      'results spread over two messages of one turn',
      [user(text('a')), assistant(use('t1'), use('t2')), user(result('t1')), user(result('t2'))],
    ],
    [
      'a result without content',
      [user(text('a')), assistant(use('t1')), user({ type: 'tool_result', tool_use_id: 't1' })],
    ],
    ['blank output', [user(text('a')), assistant(use('t1')), user(result('t1', [text('\n')]))]],
    [
      'an image in a result',
      [
        user(text('a')),
        assistant(use('t1')),
        user(result('t1', [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } }])),
      ],
    ],
    [
      'thinking with a signature',
      [user(text('a')), assistant({ type: 'thinking', thinking: 'hm', signature: 'x' }, text('b')), user(text('c'))],
    ],
    [
      'redacted thinking',
      [user(text('a')), assistant({ type: 'redacted_thinking', data: 'x' }, text('b')), user(text('c'))],
    ],
    ['emoji', [user(text('👩‍🔬'))]],
  ])('%s', (_name, messages) => {
    expect(validateMessages(messages)).toBeUndefined();
  });
});

describe('refused', () => {
  test.each<[string, unknown, RegExp]>([
    ['no messages', undefined, /messages: Field required/],
    ['an empty list', [], /at least one message/],
    ['no list', {}, /valid list/],
    ['a strange role', [{ role: 'system', content: 'x' }], /Unexpected role "system"/],
    ['an unknown field of a message', [{ ...user(text('a')), id: 1 }], /messages\.0\.id: Extra inputs/],
    ['an assistant at the start', [assistant(text('a')), user(text('b'))], /first message must use the "user" role/],
    ['an assistant at the end', [user(text('a')), assistant(text('b'))], /must end with a user message/],
    ['empty content', [user()], /non-empty content/],
    ['empty text', [user(text(''))], /text content blocks must be non-empty/],
    ['blank text', [user(text(' \n'))], /non-whitespace text/],
    ['an unknown kind of block', [user({ type: 'hologram' })], /messages\.0\.content\.0: Input tag 'hologram'/],
    [
      'an unknown field of a block',
      [user({ ...text('a'), local: 1 })],
      /messages\.0\.content\.0\.text\.local: Extra inputs/,
    ],
    ['a call by the user', [user(use('t1'))], /can only be in `assistant` messages/],
    [
      'a result by the assistant',
      [user(text('a')), assistant(result('t1')), user(text('b'))],
      /can only be in `user` messages/,
    ],
    [
      'a call without a result',
      [user(text('a')), assistant(use('t1')), user(text('b'))],
      /messages\.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1/,
    ],
    [
      'one of two results missing',
      [user(text('a')), assistant(use('t1'), use('t2')), user(result('t1'))],
      /immediately after: t2\./,
    ],
    ['a call at the end', [user(text('a')), assistant(use('t1'))], /immediately after: t1/],
    [
      'words before the results',
      [user(text('a')), assistant(use('t1')), user(text('b'), result('t1'))],
      /immediately after: t1/,
    ],
    [
      'a result one turn late',
      [user(text('a')), assistant(use('t1')), user(text('b')), assistant(text('c')), user(result('t1'))],
      /immediately after: t1/,
    ],
    [
      'a result without a call',
      [user(text('a')), assistant(text('b')), user(result('t9'))],
      /messages\.2\.content\.0: unexpected `tool_use_id` found in `tool_result` blocks: t9/,
    ],
    ['a result at the very start', [user(result('t9'))], /unexpected `tool_use_id`/],
    [
      'two results for one call',
      [user(text('a')), assistant(use('t1')), user(result('t1'), result('t1'))],
      /must have a single result.*t1/,
    ],
    [
      'one id for two calls',
      [user(text('a')), assistant(use('t1')), user(result('t1')), assistant(use('t1')), user(result('t1'))],
      /ids must be unique: t1/,
    ],
    [
      'an id with strange characters',
      [user(text('a')), assistant(use('a b')), user(result('a b'))],
      /tool_use\.id: String should match pattern/,
    ],
    [
      'an input that is no object',
      [user(text('a')), assistant(use('t1', 'x')), user(result('t1'))],
      /tool_use\.input: Input should be a valid dictionary/,
    ],
    ['an input that is a list', [user(text('a')), assistant(use('t1', [])), user(result('t1'))], /tool_use\.input/],
    ['empty text in a result', [user(text('a')), assistant(use('t1')), user(result('t1', [text('')]))], /non-empty/],
    [
      'thinking without a signature',
      [user(text('a')), assistant({ type: 'thinking', thinking: 'hm' }), user(text('b'))],
      /thinking\.signature: Field required/,
    ],
    [
      'thinking with an empty signature',
      [user(text('a')), assistant({ type: 'thinking', thinking: 'hm', signature: '' }), user(text('b'))],
      /Invalid `signature`/,
    ],
    ['half an emoji', [user(text('👩'.slice(0, 1)))], /no low surrogate/],
    [
      'half an emoji deep in a result',
      [user(text('a')), assistant(use('t1')), user(result('t1', [text('x\ud83d')]))],
      /no low surrogate/,
    ],
    [
      'an image of a strange kind',
      [user({ type: 'image', source: { type: 'base64', media_type: 'image/bmp', data: 'AA' } })],
      /media_type/,
    ],
  ])('%s', (_name, messages, problem) => {
    expect(validateMessages(messages)).toMatch(problem);
  });
});

test('a signature is held against the thinking it stands on, if there is a way to', () => {
  const messages = (thinking: string) => [
    user(text('a')),
    assistant({ type: 'thinking', thinking, signature: 'of hm' }, text('b')),
    user(text('c')),
  ];
  const options = { verifyThinking: (thinking: string, signature: string) => signature === `of ${thinking}` };
  expect(validateMessages(messages('hm'), options)).toBeUndefined();
  expect(validateMessages(messages('hm!'), options)).toMatch(
    /messages\.1\.content\.0: Invalid `signature` in `thinking` block/,
  );
});
