import { afterAll, beforeAll, expect, test } from 'vitest';
import { retryDelay } from '../../../src/harness/anthropic/observe.ts';
import { type Rehearsal, startRehearsal } from '../../../src/rehearsal/server.ts';
import { ask, callOf, clientFor, failureOf } from './ask.ts';

let server: Rehearsal;
beforeAll(async () => {
  server = await startRehearsal();
});
afterAll(() => server.close());

test('two failures that pass are reported as they happen, and the third attempt is the reply', async () => {
  server.fail({ kind: 'status', status: 529, retryAfterMs: 20 }, { kind: 'status', status: 500, retryAfterMs: 30 });
  const { reply, heard } = await ask(clientFor(server.url), callOf('[rehearsal:say] here I am'));
  expect(heard.retries.map(({ error, cause, inMs }) => [error.type, cause, error.retry_status.type, inMs])).toEqual([
    ['model_overloaded_error', 'overloaded', 'retrying', 20],
    ['model_request_failed_error', 'server', 'retrying', 30],
  ]);
  expect(heard.retries[0]?.error.message).toBe('The model service is overloaded (529); trying again in 0.0 s.');
  expect(reply.blocks[0]).toMatchObject({ text: 'here I am' });
});

test('a rate limit says how long it asks to wait', async () => {
  server.fail({ kind: 'status', status: 429, retryAfterMs: 1000 });
  const { heard } = await ask(clientFor(server.url), callOf('[rehearsal:say] hello'));
  expect(heard.retries).toMatchObject([{ cause: 'rate_limited', inMs: 1000 }]);
});

test('a connection that is reset before any answer is tried again', async () => {
  server.fail({ kind: 'reset' });
  const { reply, heard } = await ask(clientFor(server.url), callOf('[rehearsal:say] back again'));
  expect(heard.retries).toMatchObject([{ cause: 'network', inMs: 500 }]);
  expect(reply.blocks[0]).toMatchObject({ text: 'back again' });
});

test('when all attempts failed the last one is the failure, not another retry, and their number is told', async () => {
  const fault = { kind: 'status', status: 529, retryAfterMs: 10 } as const;
  server.fail(fault, fault, fault);
  const { failure, heard } = await failureOf(clientFor(server.url), callOf('[rehearsal:say] hello'));
  expect(heard.retries).toHaveLength(2);
  expect(failure.error.message).toContain('also at attempt 3');
});

test('what will not pass is asked once', async () => {
  const before = server.requests.length;
  const { heard } = await failureOf(clientFor(server.url), callOf('[rehearsal:say] hello [fault:401]'));
  expect(heard.retries).toEqual([]);
  expect(server.requests.length - before).toBe(1);
});

test('without further attempts nothing is announced', async () => {
  server.fail({ kind: 'status', status: 529 });
  const { heard } = await failureOf(clientFor(server.url, { maxRetries: 0 }), callOf('[rehearsal:say] hello'));
  expect(heard.retries).toEqual([]);
});

test('the delay is what the service asks for, else doubles from half a second to eight', () => {
  const headers = (fields: Record<string, string>) => new Headers(fields);
  expect(retryDelay(1, headers({ 'retry-after-ms': '1234', 'retry-after': '9' }))).toBe(1234);
  expect(retryDelay(1, headers({ 'retry-after': '9' }))).toBe(9000);
  const inAMinute = new Date(Date.now() + 60_000).toUTCString();
  expect(retryDelay(1, headers({ 'retry-after': inAMinute }))).toBeGreaterThan(57_000);
  expect(retryDelay(1, headers({ 'retry-after': 'soon' }))).toBe(500);
  expect([1, 2, 3, 4, 5, 6].map((attempt) => retryDelay(attempt))).toEqual([500, 1000, 2000, 4000, 8000, 8000]);
});
