import { afterAll, beforeAll, expect, test } from 'vitest';
import { REHEARSAL_MODEL } from '../../../src/rehearsal/models.ts';
import { type Rehearsal, startRehearsal } from '../../../src/rehearsal/server.ts';
import { ask, callOf, clientFor } from './ask.ts';

let server: Rehearsal;
beforeAll(async () => {
  server = await startRehearsal({ models: [REHEARSAL_MODEL, 'claude-sonnet-5-5'] });
});
afterAll(() => server.close());

const asked = (path: string) => server.requests.filter((request) => request.path === path).length;

test('the models of the service are listed with their limits', async () => {
  expect(await clientFor(server.url).list()).toEqual([
    { id: REHEARSAL_MODEL, name: 'Rehearsal (simulated, nothing is billed)', maxInput: 200_000, maxOutput: 64_000 },
    { id: 'claude-sonnet-5-5', name: 'claude-sonnet-5-5', maxInput: 200_000, maxOutput: 64_000 },
  ]);
});

test('a list that cannot be had says why', async () => {
  await expect(clientFor(server.url, { key: undefined }).list()).rejects.toMatchObject({ reason: 'no_key' });
  const gone = await startRehearsal();
  await gone.close();
  await expect(clientFor(gone.url, { maxRetries: 0 }).list()).rejects.toMatchObject({ reason: 'network' });
});

test('limits are asked once for each model, however many ask at once', async () => {
  const client = clientFor(server.url);
  const path = `/v1/models/${REHEARSAL_MODEL}`;
  const before = asked(path);
  const limits = await Promise.all([1, 2, 3].map(() => client.limits(REHEARSAL_MODEL)));
  await client.limits(REHEARSAL_MODEL);
  expect(limits).toEqual([1, 2, 3].map(() => ({ context: 200_000, output: 64_000 })));
  expect(asked(path) - before).toBe(1);
});

test('limits of a model nobody describes are a safe guess, and are not asked for at every turn', async () => {
  const client = clientFor(server.url);
  const before = asked('/v1/models/nobody');
  expect(await client.limits('nobody')).toEqual({ context: 200_000, output: 32_000 });
  expect(await client.limits('nobody')).toEqual({ context: 200_000, output: 32_000 });
  expect(asked('/v1/models/nobody') - before).toBe(1);
});

test('adaptive thinking is asked for only of a model that is known to take it', async () => {
  const client = clientFor(server.url);
  await ask(client, callOf('[rehearsal:say] hi'));
  expect(server.requests.at(-1)?.body).not.toHaveProperty('thinking');
  await client.limits(REHEARSAL_MODEL);
  await ask(client, callOf('[rehearsal:say] hi'));
  expect(server.requests.at(-1)?.body).toMatchObject({ thinking: { type: 'adaptive' } });
});
