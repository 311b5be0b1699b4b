import { expect, test } from 'vitest';
import { ReplyBuilder, type StreamEvent } from '../../../src/harness/anthropic/reply.ts';
import { listener } from './ask.ts';

function build(events: StreamEvent[]) {
  const on = listener();
  const builder = new ReplyBuilder(on);
  for (const event of events) builder.take(event);
  return { builder, ...builder.finish(), heard: on.heard };
}
const start = (index: number, content_block: object): StreamEvent => ({
  type: 'content_block_start',
  index,
  content_block,
});
const delta = (index: number, fields: object): StreamEvent => ({ type: 'content_block_delta', index, delta: fields });

test('citations are kept in order beside their text', () => {
  const { blocks } = build([
    start(0, { type: 'text', text: '', citations: null }),
    delta(0, { type: 'text_delta', text: 'Tea' }),
    delta(0, { type: 'citations_delta', citation: { n: 1 } }),
    delta(0, { type: 'text_delta', text: ' is hot.' }),
    delta(0, { type: 'citations_delta', citation: { n: 2 } }),
  ]);
  expect(blocks).toEqual([{ type: 'text', text: 'Tea is hot.', citations: [{ n: 1 }, { n: 2 }] }]);
});

test('redacted thinking and kinds of blocks this version does not know are kept as they came', () => {
  const redacted = { type: 'redacted_thinking', data: 'EqQB+/=' };
  const unknown = { type: 'hologram', depth: 3, parts: [{ a: null }] };
  const { blocks, heard } = build([start(0, redacted), start(1, unknown)]);
  expect(blocks).toEqual([redacted, unknown]);
  expect(heard.events).toEqual(['start 0 redacted_thinking', 'start 1 hologram']);
});

test('a delta of an unknown kind leaves its fields on the block, as a compaction block needs', () => {
  const { blocks } = build([
    start(0, { type: 'compaction', content: null }),
    delta(0, { type: 'compaction_delta', content: 'the story so far', encrypted_content: 'x9' }),
  ]);
  expect(blocks).toEqual([{ type: 'compaction', content: 'the story so far', encrypted_content: 'x9' }]);
});

test('a signature stands on its thinking block', () => {
  const { blocks } = build([
    start(0, { type: 'thinking', thinking: '', signature: '' }),
    delta(0, { type: 'thinking_delta', thinking: 'Hm' }),
    delta(0, { type: 'thinking_delta', thinking: 'm.' }),
    delta(0, { type: 'signature_delta', signature: 'c2ln' }),
  ]);
  expect(blocks).toEqual([{ type: 'thinking', thinking: 'Hmm.', signature: 'c2ln' }]);
});

test.each(['[1]', '"text"', 'null', '3', '{"a":', '{} {}'])('input %s is no JSON object: malformed', (json) => {
  const { blocks, malformed } = build([
    start(0, { type: 'tool_use', id: 't', name: 'bash', input: {} }),
    delta(0, { type: 'input_json_delta', partial_json: json }),
  ]);
  expect(blocks).toEqual([{ type: 'tool_use', id: 't', name: 'bash', input: {} }]);
  expect(malformed.get(0)).toBe(json);
});

test('a call without input is an empty object, and an input given whole at the start is kept', () => {
  const { blocks, malformed } = build([
    start(0, { type: 'tool_use', id: 'a', name: 'x', input: {} }),
    delta(0, { type: 'input_json_delta', partial_json: '' }),
    start(1, { type: 'tool_use', id: 'b', name: 'y', input: { z: 1 } }),
  ]);
  expect(blocks.map((block) => block.input)).toEqual([{}, { z: 1 }]);
  expect(malformed.size).toBe(0);
});

test('indices count from 0 without gaps, whatever the stream calls them', () => {
  const { blocks, heard } = build([
    start(4, { type: 'text', text: 'a' }),
    start(9, { type: 'text', text: '' }),
    delta(9, { type: 'text_delta', text: 'b' }),
  ]);
  expect(blocks.map((block) => block.text)).toEqual(['a', 'b']);
  expect(heard.events).toEqual(['start 0 text', 'delta 0', 'start 1 text', 'delta 1']);
});

test('totals that arrive later replace the earlier ones; a null says nothing', () => {
  const { builder } = build([
    { type: 'message_start', message: { usage: { input_tokens: 10, cache_read_input_tokens: 5, output_tokens: 1 } } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { input_tokens: null, output_tokens: 42 } },
  ]);
  expect(builder.usage).toEqual({
    input_tokens: 10,
    cache_read_input_tokens: 5,
    cache_creation_input_tokens: 0,
    output_tokens: 42,
  });
  expect(builder.complete).toBe(false);
});
