import { afterEach, expect, test, vi } from 'vitest';
import { fromConnection } from '../../../src/harness/anthropic/failure.ts';
import { createAnthropicClient } from '../../../src/harness/anthropic.ts';
import { startRehearsal } from '../../../src/rehearsal/server.ts';
import { ask, callOf, KEY } from './ask.ts';

afterEach(() => vi.unstubAllEnvs());

/** As fetch gives it: what happened is the cause of the cause. */
const failed = (code: string) => new TypeError('fetch failed', { cause: Object.assign(new Error('inner'), { code }) });

test.each([
  ['ECONNREFUSED', 'network', true, /Nothing answers at h:1/],
  ['ENOTFOUND', 'network', true, /name of the model service h:1 could not be resolved/],
  ['EAI_AGAIN', 'network', true, /could not be resolved/],
  ['ECONNRESET', 'network', true, /could not be reached/],
  ['EHOSTUNREACH', 'network', true, /could not be reached/],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'network', false, /certificate of the model service at h:1.*SELF_SIGNED_CERT_IN_CHAIN/],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'network', false, /certificate/],
  ['CERT_HAS_EXPIRED', 'network', false, /certificate/],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'network', false, /certificate/],
  ['ETIMEDOUT', 'timeout', true, /did not answer in time/],
  ['UND_ERR_CONNECT_TIMEOUT', 'timeout', true, /did not answer in time/],
])('%s is told in words, by host and code', (code, reason, passes, what) => {
  expect(fromConnection(failed(code), 'h:1')).toMatchObject({ reason, passes, what: expect.stringMatching(what) });
});

test('a host with several addresses is told by the code of the first', () => {
  const all = new AggregateError([Object.assign(new Error('v6'), { code: 'ECONNREFUSED' })], '');
  expect(fromConnection(new TypeError('fetch failed', { cause: all }), 'h:1').what).toContain('ECONNREFUSED');
});

test('where no base URL is set, the environment of this process says where the service is', async () => {
  const server = await startRehearsal();
  vi.stubEnv('ANTHROPIC_BASE_URL', server.url);
  try {
    const client = createAnthropicClient({ apiKey: async () => KEY, baseUrl: () => undefined });
    expect((await ask(client, callOf('[rehearsal:say] here'))).reply.blocks[0]).toMatchObject({ text: 'here' });
  } finally {
    await server.close();
  }
});

test('no other credential of the environment goes along with the key', async () => {
  const server = await startRehearsal();
  vi.stubEnv('ANTHROPIC_AUTH_TOKEN', 'another-secret-token');
  let sent = new Headers();
  const client = createAnthropicClient({
    apiKey: async () => KEY,
    baseUrl: () => server.url,
    fetch: (input, init) => {
      sent = new Headers(init?.headers);
      return fetch(input, init);
    },
  });
  try {
    await ask(client, callOf('[rehearsal:say] hi'));
    const all = JSON.stringify([...sent]);
    expect(all.split(KEY)).toHaveLength(2);
    expect(all).not.toContain('another-secret-token');
  } finally {
    await server.close();
  }
});
