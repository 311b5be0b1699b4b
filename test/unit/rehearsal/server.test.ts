import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Rehearsal, startRehearsal } from '../../../src/rehearsal/server.ts';

let server: Rehearsal;
beforeAll(async () => {
  server = await startRehearsal();
});
afterAll(() => server.close());

const HEADERS = { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', 'x-api-key': 'sk-any' };
const BODY = {
  model: 'drover-rehearsal',
  max_tokens: 100,
  messages: [{ role: 'user', content: '[rehearsal:say] one two three four five' }],
};

async function post(body: unknown, more: { path?: string; headers?: Record<string, string>; url?: string } = {}) {
  const response = await fetch(`${more.url ?? server.url}${more.path ?? '/v1/messages'}`, {
    method: 'POST',
    headers: more.headers ?? HEADERS,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

test('it listens on the loopback interface alone', () => {
  expect(server.url).toBe(`http://127.0.0.1:${server.port}`);
});

test('a reply streams in the order of the real service', async () => {
  const { text, headers } = await post({ ...BODY, stream: true });
  const events = [...text.matchAll(/^event: (.+)$/gm)].map(([, name]) => name);
  expect(headers.get('content-type')).toMatch(/^text\/event-stream/);
  expect(headers.get('request-id')).toMatch(/^req_/);
  expect(events).toEqual([
    'message_start',
    'ping',
    'content_block_start',
    'content_block_delta',
    'content_block_delta',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ]);
});

test('pieces of a tool input never part an emoji', async () => {
  const input = JSON.stringify({ command: `echo ${'🫖'.repeat(60)}` });
  const messages = [{ role: 'user', content: `[rehearsal:call tool=bash] ${input}` }];
  const { text } = await post({ ...BODY, messages, stream: true });
  const pieces = [...text.matchAll(/^data: (.*"input_json_delta".*)$/gm)].map(
    ([, data = '']) => JSON.parse(data).delta.partial_json,
  );
  expect(pieces.join('')).toBe(input);
  expect(pieces.length).toBeGreaterThan(5);
  expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
});

test('without streaming the same reply comes in one piece', async () => {
  const { status, text } = await post(BODY);
  expect(status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'one two three four five' }],
    stop_reason: 'end_turn',
    usage: { output_tokens: expect.any(Number) },
  });
});

test('the same request gets the same reply with the same ids, from any server', async () => {
  const other = await startRehearsal();
  try {
    const body = { ...BODY, messages: [{ role: 'user', content: '[rehearsal:parallel]' }] };
    const first = JSON.parse((await post(body)).text);
    const second = JSON.parse((await post(body, { url: other.url })).text);
    expect(second).toEqual(first);
    expect(first.content[1].id).toMatch(/^toolu_01\w{22}$/);
  } finally {
    await other.close();
  }
});

test.each<[string, unknown, number, string, RegExp]>([
  ['no JSON', '{', 400, 'invalid_request_error', /not valid JSON/],
  ['no object', '[]', 400, 'invalid_request_error', /should be an object/],
  ['no model', { ...BODY, model: undefined }, 400, 'invalid_request_error', /model: Field required/],
  ['an unknown model', { ...BODY, model: 'gpt' }, 404, 'not_found_error', /^model: gpt$/],
  ['no max_tokens', { ...BODY, max_tokens: undefined }, 400, 'invalid_request_error', /max_tokens: Field required/],
  ['max_tokens 0', { ...BODY, max_tokens: 0 }, 400, 'invalid_request_error', /greater than or equal to 1/],
  ['too many max_tokens', { ...BODY, max_tokens: 1e6 }, 400, 'invalid_request_error', /1000000 > 64000/],
  ['an unknown field', { ...BODY, colour: 'red' }, 400, 'invalid_request_error', /colour: Extra inputs/],
  [
    'two tools of one name',
    { ...BODY, tools: [1, 2].map(() => ({ name: 'a', input_schema: { type: 'object' } })) },
    400,
    'invalid_request_error',
    /must be unique/,
  ],
  [
    'a tool without a schema',
    { ...BODY, tools: [{ name: 'a' }] },
    400,
    'invalid_request_error',
    /tools\.0\.custom\.input_schema/,
  ],
  [
    'a tool name with a dot',
    { ...BODY, tools: [{ name: 'a.b', input_schema: { type: 'object' } }] },
    400,
    'invalid_request_error',
    /tools\.0\.custom\.name/,
  ],
  [
    'empty system text',
    { ...BODY, system: [{ type: 'text', text: '' }] },
    400,
    'invalid_request_error',
    /system: text content blocks/,
  ],
  [
    'five cache marks',
    {
      ...BODY,
      messages: [1, 2, 3, 4, 5].map((n) => ({
        role: 'user',
        content: [{ type: 'text', text: `${n}`, cache_control: { type: 'ephemeral' } }],
      })),
    },
    400,
    'invalid_request_error',
    /maximum of 4 blocks with cache_control.*Found 5/,
  ],
])('%s is answered as the API does', async (_name, body, status, type, message) => {
  const answer = await post(body);
  expect(answer.status).toBe(status);
  const { error, type: kind, request_id } = JSON.parse(answer.text);
  expect([kind, error.type]).toEqual(['error', type]);
  expect(error.message).toMatch(message);
  expect(request_id).toBe(answer.headers.get('request-id'));
});

test('a configured key is demanded, and no key is kept in the record', async () => {
  const strict = await startRehearsal({ apiKey: 'sk-right' });
  try {
    expect((await post(BODY, { url: strict.url })).status).toBe(401);
    expect((await post(BODY, { url: strict.url, headers: { ...HEADERS, 'x-api-key': 'sk-right' } })).status).toBe(200);
    expect(JSON.stringify(strict.requests)).not.toMatch(/sk-/);
    expect(strict.requests).toHaveLength(2);
  } finally {
    await strict.close();
  }
});

test('a request without a version is refused', async () => {
  const { 'anthropic-version': _, ...headers } = HEADERS;
  expect((await post(BODY, { headers })).text).toContain('anthropic-version: header is required');
});

test('tokens are counted without a reply', async () => {
  const { text } = await post({ model: BODY.model, messages: BODY.messages }, { path: '/v1/messages/count_tokens' });
  expect(JSON.parse(text).input_tokens).toBeGreaterThan(5);
  const bad = await post({ model: BODY.model, messages: [] }, { path: '/v1/messages/count_tokens' });
  expect(bad.status).toBe(400);
});

test('an address that is none of the API is not found', async () => {
  expect((await post(BODY, { path: '/v1/teapots' })).status).toBe(404);
  const model = await fetch(`${server.url}/v1/models/nobody`, { headers: HEADERS });
  expect(model.status).toBe(404);
});

test('a body over 32 MiB is too large', async () => {
  const { status } = await post({ ...BODY, system: 'x'.repeat(33 * 1024 * 1024) });
  expect(status).toBe(413);
});

test('the first token and each piece keep their pace', async () => {
  const slow = await startRehearsal({ delays: { firstTokenMs: 120, perChunkMs: 30 } });
  try {
    const at = performance.now();
    await post({ ...BODY, stream: true }, { url: slow.url });
    // three pieces of five words: 120 + 3 × 30, timers may be a little early
    expect(performance.now() - at).toBeGreaterThan(190);
  } finally {
    await slow.close();
  }
});

test('closing ends what still streams', async () => {
  const slow = await startRehearsal({ delays: { firstTokenMs: 60_000, perChunkMs: 0 } });
  const pending = post({ ...BODY, stream: true }, { url: slow.url }).catch((error: unknown) => error);
  await expect.poll(() => slow.requests.length).toBe(1);
  await slow.close();
  expect(await pending).toBeInstanceOf(Error);
});
