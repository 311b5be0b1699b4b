import { afterAll, beforeAll, expect, test } from 'vitest';
import { priceOf } from '../../../src/harness/prices.ts';
import { type Rehearsal, startRehearsal } from '../../../src/rehearsal/server.ts';
import { ask, BASH, callOf, clientFor } from './ask.ts';

let server: Rehearsal;
beforeAll(async () => {
  server = await startRehearsal();
});
afterAll(() => server.close());

test('text arrives piece by piece, in order, and the pieces are the reply', async () => {
  const { reply, heard } = await ask(
    clientFor(server.url),
    callOf('[rehearsal:say] one two three four five six seven'),
  );
  expect(heard.events[0]).toBe('start 0 text');
  expect(heard.events.slice(1).every((event) => event === 'delta 0')).toBe(true);
  expect(heard.events.length).toBeGreaterThan(3);
  expect(heard.texts).toEqual(['one two three four five six seven']);
  expect(reply.blocks).toEqual([{ type: 'text', text: 'one two three four five six seven', citations: null }]);
  expect(reply.stopReason).toBe('end_turn');
  expect(reply.ttftMs).toBeGreaterThan(0);
  expect(reply.requestId).toMatch(/^req_/);
});

test('text in other scripts and emoji survive the cuts between pieces', async () => {
  const words = 'Tee für 🫖👩‍🔬 und 日本語, שלום, e\u0301';
  const { reply } = await ask(clientFor(server.url), callOf(`[rehearsal:say] ${words}`));
  expect(reply.blocks[0]).toMatchObject({ text: words });
});

test('a thinking block comes first, then text, then the tool calls with their input as partial JSON', async () => {
  const { reply, heard } = await ask(clientFor(server.url), callOf('[rehearsal:look-around]'));
  expect(heard.events.filter((event) => event.startsWith('start'))).toEqual([
    'start 0 thinking',
    'start 1 text',
    'start 2 tool_use glob',
    'start 3 tool_use bash',
  ]);
  expect(JSON.parse(heard.texts[2] ?? '')).toEqual({ pattern: '**/*' });
  expect(reply.blocks[2]).toMatchObject({ type: 'tool_use', name: 'glob', input: { pattern: '**/*' } });
  expect(reply.stopReason).toBe('tool_use');
  expect(reply.malformed.size).toBe(0);
});

test('a thinking block goes back verbatim and is accepted; with one letter changed it is refused', async () => {
  const client = clientFor(server.url);
  const first = callOf('[rehearsal:look-around]');
  const { reply } = await ask(client, first);
  const results = reply.blocks
    .filter((block) => block.type === 'tool_use')
    .map((block) => ({
      type: 'tool_result',
      tool_use_id: block.id,
      content: [{ type: 'text', text: '/workspace\n' }],
    }));
  const next = (blocks: typeof reply.blocks) => ({
    ...first,
    messages: [
      ...first.messages,
      { role: 'assistant' as const, content: blocks },
      { role: 'user' as const, content: results },
    ],
  });
  const second = await ask(client, next(reply.blocks));
  expect(second.reply.stopReason).toBe('end_turn');
  expect(server.requests.at(-1)?.body).toMatchObject({ messages: [{}, { content: reply.blocks }, {}] });

  const altered = reply.blocks.map((block) =>
    block.type === 'thinking' ? { ...block, thinking: `${block.thinking}!` } : block,
  );
  await expect(ask(client, next(altered))).rejects.toMatchObject({
    reason: 'bad_request',
    message: expect.stringContaining('Invalid `signature` in `thinking` block'),
  });
});

test('usage is in disjoint classes, priced by the table, and the next request reads what this one wrote', async () => {
  const client = clientFor(server.url);
  const first = callOf('[rehearsal:say] hello', { system: 'x'.repeat(8000) });
  const { reply } = await ask(client, first);
  expect(reply.usage.cache_creation_input_tokens).toBeGreaterThan(2000);
  expect(reply.usage.cache_read_input_tokens).toBe(0);
  expect(reply).toMatchObject(priceOf(first.model, reply.usage));
  expect(reply.costUsd).toBeGreaterThan(0);

  const second = await ask(client, {
    ...first,
    messages: [
      ...first.messages,
      { role: 'assistant', content: reply.blocks },
      { role: 'user', content: [{ type: 'text', text: 'and again' }] },
    ],
  });
  const before = reply.usage.cache_creation_input_tokens + reply.usage.input_tokens;
  expect(second.reply.usage.cache_read_input_tokens).toBeGreaterThan(before * 0.99);
  expect(second.reply.usage.cache_creation_input_tokens).toBeLessThan(200);
});

test('caching is asked for at the end of the system prompt and, by the service, at the end of the request', async () => {
  await ask(clientFor(server.url), callOf('[rehearsal:say] hello'));
  expect(server.requests.at(-1)?.body).toMatchObject({
    cache_control: { type: 'ephemeral' },
    system: [{ type: 'text', cache_control: { type: 'ephemeral' } }],
  });
  await ask(clientFor(server.url), callOf('[rehearsal:say] hello', { system: '', tools: [BASH] }));
  const body = server.requests.at(-1)?.body;
  expect(body).toMatchObject({ tools: [{ name: 'bash', cache_control: { type: 'ephemeral' } }] });
  expect(body).not.toHaveProperty('system');
});

test('effort goes out as the API names it, and no tools means no field', async () => {
  await ask(clientFor(server.url), callOf('[rehearsal:say] hello', { effort: 'high', tools: [] }));
  const body = server.requests.at(-1)?.body;
  expect(body).toMatchObject({ output_config: { effort: 'high' } });
  expect(body).not.toHaveProperty('tools');
});

test('tool input that is no JSON comes as text beside an empty input, and the other blocks are whole', async () => {
  const { reply } = await ask(clientFor(server.url), callOf('[rehearsal:look-around] [fault:malformed_tool]'));
  const index = reply.blocks.findIndex((block) => block.type === 'tool_use');
  expect(reply.blocks[index]).toMatchObject({ name: 'glob', input: {} });
  expect(reply.malformed).toEqual(new Map([[index, '{"command": "echo \\"hi, "timeout_ms": }']]));
  expect(reply.blocks[0]).toMatchObject({ type: 'thinking', signature: expect.stringMatching(/.{40}/) });
});

test('max_tokens in the middle of a call says so, and the cut input is kept as it came', async () => {
  const { reply } = await ask(clientFor(server.url), callOf('[rehearsal:look-around] [fault:cut_tool]'));
  expect(reply.stopReason).toBe('max_tokens');
  expect([...reply.malformed.values()]).toEqual(['{"command": "echo the beginn']);
});

test('a refusal brings no blocks and says why', async () => {
  const { reply } = await ask(clientFor(server.url), callOf('[rehearsal:say] hi [fault:refusal]'));
  expect(reply).toMatchObject({ stopReason: 'refusal', blocks: [], stopDetails: { type: 'refusal' } });
});
