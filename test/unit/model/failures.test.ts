import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAnthropicClient } from '../../../src/harness/anthropic.ts';
import { type Rehearsal, startRehearsal } from '../../../src/rehearsal/server.ts';
import { ask, callOf, clientFor, failureOf, KEY } from './ask.ts';

let server: Rehearsal;
beforeAll(async () => {
  server = await startRehearsal();
});
afterAll(() => server.close());

const once = (url: string) => clientFor(url, { maxRetries: 0 });

test.each([
  [
    400,
    'model_request_failed_error',
    'bad_request',
    'exhausted',
    /could not accept the request \(400\).*refused on purpose/,
  ],
  [401, 'model_request_failed_error', 'bad_key', 'exhausted', /refused the API key \(401\); run 'Drover: Set API Key'/],
  [402, 'billing_error', 'billing', 'exhausted', /asks for payment \(402\).*billing/],
  [403, 'model_request_failed_error', 'permission', 'exhausted', /may not use the model drover-rehearsal \(403\)/],
  [
    404,
    'model_request_failed_error',
    'unknown_model',
    'exhausted',
    /does not know the model drover-rehearsal \(404\); choose/,
  ],
  [413, 'model_request_failed_error', 'too_large', 'exhausted', /too large for the model \(413\); start a new session/],
  [429, 'model_rate_limited_error', 'rate_limited', 'retrying', /limits how fast this key may ask \(429\); .*wait/],
  [500, 'model_request_failed_error', 'server', 'retrying', /error of its own \(500\)/],
  [504, 'model_request_failed_error', 'timeout', 'retrying', /took too long \(504\)/],
  [529, 'model_overloaded_error', 'overloaded', 'retrying', /overloaded \(529\); .*wait a minute/],
])('HTTP %i is told as %s, cause %s', async (status, type, reason, retry, sentence) => {
  const { failure } = await failureOf(once(server.url), callOf(`[rehearsal:say] hi [fault:${status}]`));
  expect(failure.reason).toBe(reason);
  expect(failure.error).toMatchObject({ type, retry_status: { type: retry } });
  expect(failure.error.message).toMatch(sentence);
  const ours = failure.error.message.replace(/“.*”/, '');
  expect(ours.match(/[.!?](\s|$)/g)).toHaveLength(1);
  expect(failure.usage).toBeNull();
});

test.each([
  ['overloaded_error', 'model_overloaded_error', 'overloaded'],
  ['rate_limit_error', 'model_rate_limited_error', 'rate_limited'],
  ['api_error', 'model_request_failed_error', 'server'],
  ['billing_error', 'billing_error', 'billing'],
  ['timeout_error', 'model_request_failed_error', 'timeout'],
])(
  'an error event in the middle of the stream (%s) is told as %s, with the usage so far',
  async (event, type, reason) => {
    const { failure, heard } = await failureOf(
      clientFor(server.url),
      callOf(`[rehearsal:look-around] [fault:error_event type=${event} after=1200]`),
    );
    expect(failure).toMatchObject({ reason, error: { type } });
    expect(heard.events.length).toBeGreaterThan(0);
    expect(failure.usage?.input_tokens).toBeGreaterThan(0);
    expect(failure.costUsd).toBeGreaterThan(0);
  },
);

test.each(['drop', 'cut_stream'])('a stream that breaks off (%s) is no reply', async (fault) => {
  const { failure, heard } = await failureOf(
    clientFor(server.url),
    callOf(`[rehearsal:look-around] [fault:${fault} after=1500]`),
  );
  expect(failure).toMatchObject({
    reason: 'dropped',
    error: { type: 'model_request_failed_error', retry_status: { type: 'retrying' } },
  });
  expect(failure.error.message).toMatch(/^The connection to the model service at 127\.0\.0\.1:\d+ broke/);
  expect(heard.events).toContain('start 0 thinking');
  expect(heard.retries).toEqual([]);
});

test.each([1, 100, 400, 650, 900, 1300, 2000])(
  'a drop after %i bytes is a failure, never half a reply',
  async (bytes) => {
    const { failure } = await failureOf(
      clientFor(server.url),
      callOf(`[rehearsal:look-around] [fault:drop after=${bytes}]`),
    );
    expect(failure.reason).toBe('dropped');
  },
);

test('a stream that falls silent is given up, and says so', async () => {
  const { failure } = await failureOf(
    clientFor(server.url, { stallMs: 150 }),
    callOf('[rehearsal:look-around] [fault:stall after=900]'),
  );
  expect(failure.reason).toBe('timeout');
  expect(failure.error.message).toMatch(/fell silent/);
});

test('a pause shorter than the limit is no stall', async () => {
  const { reply } = await ask(
    clientFor(server.url, { stallMs: 5000 }),
    callOf('[rehearsal:say] slow and steady [fault:stall after=700 ms=200]'),
  );
  expect(reply.blocks[0]).toMatchObject({ text: 'slow and steady' });
});

test('nothing listens: the sentence names the host and port', async () => {
  const gone = await startRehearsal();
  await gone.close();
  const { failure } = await failureOf(once(gone.url), callOf('hi'));
  expect(failure.reason).toBe('network');
  expect(failure.error.message).toContain(`Nothing answers at 127.0.0.1:${gone.port}`);
  expect(failure.error.message).toContain('ECONNREFUSED');
});

test('a host whose name means nothing is named', async () => {
  const { failure } = await failureOf(once('http://model.invalid:81'), callOf('hi'));
  expect(failure).toMatchObject({ reason: 'network', message: expect.stringContaining('model.invalid:81') });
});

test('a server that is no model service is told by its base URL, not by the model', async () => {
  const other = createServer((_request, response) => response.writeHead(404).end('<html>not here</html>'));
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as AddressInfo;
  try {
    const { failure } = await failureOf(once(`http://127.0.0.1:${port}`), callOf('hi'));
    expect(failure.error.message).toBe(
      `There is no Messages API at 127.0.0.1:${port} (404); check the base URL in the settings.`,
    );
  } finally {
    other.closeAllConnections();
    other.close();
  }
});

test('an unknown model is named', async () => {
  const { failure } = await failureOf(clientFor(server.url), callOf('hi', { model: 'claude-nobody-9' }));
  expect(failure.reason).toBe('unknown_model');
  expect(failure.error.message).toContain('claude-nobody-9');
});

test('a prompt that is too long is told as too large, though it comes as 400', async () => {
  const { failure } = await failureOf(clientFor(server.url), callOf('x'.repeat(900_000)));
  expect(failure.reason).toBe('too_large');
});

test('an empty balance is told as billing, though it comes as 400', async () => {
  server.fail({ kind: 'status', status: 400, message: 'Your credit balance is too low to access the Anthropic API.' });
  const { failure } = await failureOf(clientFor(server.url), callOf('hi'));
  expect(failure).toMatchObject({ reason: 'billing', error: { type: 'billing_error' } });
});

test.each([undefined, '', '  \n'])('without a key (%j) nothing is asked, and both ways out are named', async (key) => {
  const before = server.requests.length;
  const { failure } = await failureOf(clientFor(server.url, { key }), callOf('hi'));
  expect(failure.reason).toBe('no_key');
  expect(failure.error.message).toMatch(/Drover: Set API Key.*Drover: Rehearse/);
  expect(server.requests).toHaveLength(before);
});

test('a wrong key is refused, and appears in no message, no cause and no record', async () => {
  const strict = await startRehearsal({ apiKey: 'sk-the-right-one' });
  try {
    const { failure } = await failureOf(clientFor(strict.url), callOf('hi'));
    expect(failure.reason).toBe('bad_key');
    const all = JSON.stringify([failure, failure.message, failure.cause, failure.stack, strict.requests]);
    expect(all).not.toContain(KEY);
  } finally {
    await strict.close();
  }
});

test('the right key is let in, blanks around it or not', async () => {
  const strict = await startRehearsal({ apiKey: KEY });
  try {
    const { reply } = await ask(clientFor(strict.url, { key: ` ${KEY}\n` }), callOf('[rehearsal:say] welcome'));
    expect(reply.blocks[0]).toMatchObject({ text: 'welcome' });
    expect(JSON.stringify(strict.requests)).not.toContain(KEY);
  } finally {
    await strict.close();
  }
});

test('a key that a header cannot carry is not sent, and not quoted', async () => {
  const { failure } = await failureOf(clientFor(server.url, { key: 'sk-one\nsk-two-äöü' }), callOf('hi'));
  expect(failure.reason).toBe('bad_key');
  expect(JSON.stringify([failure, failure.message, String(failure.cause)])).not.toMatch(/sk-(one|two)/);
});

test('a service that quotes the key back does not get it into the message', async () => {
  server.fail({ kind: 'status', status: 400, message: `unexpected header x-api-key: ${KEY}` });
  const { failure } = await failureOf(clientFor(server.url), callOf('hi'));
  expect(JSON.stringify([failure.message, failure.error, failure.cause, failure.stack])).not.toContain(KEY);
  expect(failure.message).toContain('[the key]');
});

test('a key store that fails is a missing key, not a crash', async () => {
  const client = createAnthropicClient({
    apiKey: () => Promise.reject(new Error('locked')),
    baseUrl: () => server.url,
  });
  const { failure } = await failureOf(client, callOf('hi'));
  expect(failure).toMatchObject({ reason: 'no_key', message: expect.stringContaining('could not be read') });
});
