import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAnthropicClient } from '../../../src/harness/anthropic.ts';
import { type Rehearsal, startRehearsal } from '../../../src/rehearsal/server.ts';
import { ask, callOf, clientFor, failureOf } from './ask.ts';

/** ms an interrupt may take: far more than it does, far less than any wait it must cut short. */
const SOON = 2000;

let server: Rehearsal;
beforeAll(async () => {
  server = await startRehearsal();
});
afterAll(() => server.close());

function abortIn(ms: number) {
  const controller = new AbortController();
  let at = 0;
  setTimeout(() => {
    at = performance.now();
    controller.abort();
  }, ms);
  return { signal: controller.signal, took: () => performance.now() - at };
}

test.each([
  ['in the middle of the stream', '[rehearsal:look-around] [fault:stall after=1200 ms=20000]'],
  ['before the first word', '[rehearsal:look-around] [fault:stall after=10 ms=20000]'],
  ['while it waits to try again', '[rehearsal:say] hi [fault:429 retry_after_ms=20000]'],
])('an interrupt %s ends the request at once, and is no retry', async (_when, text) => {
  const { signal, took } = abortIn(200);
  const { failure, heard } = await failureOf(clientFor(server.url), callOf(text), signal);
  expect(failure.reason).toBe('interrupted');
  expect(took()).toBeLessThan(SOON);
  expect(heard.retries.every(({ cause }) => cause === 'rate_limited')).toBe(true);
});

test('an interrupt that was there before asks nothing', async () => {
  const before = server.requests.length;
  const { failure } = await failureOf(clientFor(server.url), callOf('hi'), AbortSignal.abort());
  expect(failure.reason).toBe('interrupted');
  expect(server.requests).toHaveLength(before);
});

test('an interrupt does not wait for a key store that never answers', async () => {
  const client = createAnthropicClient({ apiKey: () => new Promise(() => undefined), baseUrl: () => server.url });
  const { signal, took } = abortIn(50);
  const { failure } = await failureOf(client, callOf('hi'), signal);
  expect(failure.reason).toBe('interrupted');
  expect(took()).toBeLessThan(SOON);
});

test('an interrupted request says what had been used', async () => {
  const { signal } = abortIn(200);
  const { failure } = await failureOf(
    clientFor(server.url),
    callOf('[rehearsal:look-around] [fault:stall after=1200 ms=20000]'),
    signal,
  );
  expect(failure.usage?.input_tokens).toBeGreaterThan(0);
});

test('one signal for a whole session gathers no listeners', async () => {
  const { signal } = new AbortController();
  let listening = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listening += 1;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listening -= 1;
    remove(...args);
  };
  const client = clientFor(server.url);
  for (let i = 0; i < 3; i += 1) await ask(client, callOf('[rehearsal:say] hi'), signal);
  expect(listening).toBe(0);
});
