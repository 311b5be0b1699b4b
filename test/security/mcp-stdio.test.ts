import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { ensureSampleImage } from '../../scripts/image.mjs';
import type { EnvironmentConfig } from '../../src/protocol/environment.ts';
import { type CredentialId, mint } from '../../src/protocol/ids.ts';
import { onBehalfOf } from '../../src/tools/mcp/ledger.ts';
import type { Tripped } from '../../src/vault/egress.ts';
import { placeholderFor } from '../../src/vault/placeholder.ts';
import { SessionAuthority } from '../../src/vault/proxy/authority.ts';
import { createEgress } from '../../src/vault/proxy.ts';
import { connectTo, testServer } from '../sandbox/mcp-client.ts';
import { makeImages, makeRig, type Rig, SAMPLE } from '../sandbox/rig.ts';
import { describeWith, engineAvailable, osSandboxAvailable } from '../support/engine.ts';
import { eventually } from '../support/eventually.ts';

const PUBLIC = '127.7.7.7';
const SECRET = 'the-real-value-0123456789';

let rig: Rig | undefined;
let server: Server | undefined;

afterEach(async () => {
  server?.close();
  server?.closeAllConnections();
  await rig?.clear();
  rig = undefined;
});

/** A sandbox with a credential for `api.test`, which may go to `other.test` as well; what both hosts saw and answer. */
async function open(config: Pick<EnvironmentConfig, 'type'> & Record<string, unknown>, env?: NodeJS.ProcessEnv) {
  const internet = new SessionAuthority();
  const seen: string[] = [];
  const listening = createServer(
    { SNICallback: (name, done) => done(null, internet.contextFor(name)) },
    (q, answer) => {
      seen.push(`${q.headers.host?.split(':')[0]} ${q.headers.authorization}`);
      answer.end(`you said ${q.headers.authorization}`);
    },
  );
  server = listening;
  await new Promise<void>((resolve) => listening.listen(0, PUBLIC, resolve));
  const { port } = listening.address() as AddressInfo;
  const tripped: Tripped[] = [];
  const made = await makeRig({
    ...(env ? { env } : {}),
    egress: createEgress({
      resolve: async () => [PUBLIC],
      privateRanges: [`${PUBLIC}/32`],
      extraCertificates: () => [internet.certificate],
      secrets: async (session) => {
        const placeholder = placeholderFor(session, 'cred_api' as CredentialId);
        const bound = [{ host: 'api.test', port }];
        const one = { credentialId: 'cred_api', placeholder, bound, inHeader: true, inBody: false };
        return {
          injectables: async () => [{ ...one, value: async () => SECRET }],
          env: { API_TOKEN: placeholder },
        };
      },
    }),
  });
  rig = made;
  const networking = { type: 'limited' as const, allowed_hosts: [`api.test:${port}`, `other.test:${port}`] };
  const owner = {
    ...made.owner({ ...config, networking } as EnvironmentConfig),
    egress: { vaultIds: [], mcpHosts: [], ask: async () => false, onTripped: (one: Tripped) => void tripped.push(one) },
  };
  const sandbox = await made.provider.acquire(owner);
  return {
    rig: made,
    sandbox,
    owner,
    port,
    seen,
    tripped,
    placeholder: placeholderFor(owner.session, 'cred_api' as CredentialId),
  };
}

/** What a server in a sandbox has of a secret: its placeholder, and the host that it is for. */
function holdsFor(config: Parameters<typeof open>[0], env?: NodeJS.ProcessEnv): void {
  it('has placeholders alone, and its token reaches the bound host and no other; the ledger names it, or the call it works for', async () => {
    const { rig, sandbox, owner, port, seen, tripped, placeholder } = await open(config, env);
    const { client, transport, ask } = await connectTo(sandbox, {
      ...testServer(`\${API_TOKEN}`),
      env: { SERVICE_LOGIN: `Bearer \${API_TOKEN}`, PRICE: `5\${NOBODY}` },
    });
    const variables = JSON.parse(await ask('environment'));
    expect(variables).toMatchObject({
      API_TOKEN: placeholder,
      SERVICE_LOGIN: `Bearer ${placeholder}`,
      PRICE: `5\${NOBODY}`,
    });
    expect(JSON.stringify(variables)).not.toContain(SECRET);
    const headers = { authorization: variables.SERVICE_LOGIN };
    expect(await ask('fetch', { url: `https://api.test:${port}/a`, headers })).toBe(
      `200 you said Bearer ${placeholder}`,
    );
    // Its ledger is written before the answer is told.
    const execution_id = transport.executionId;
    const ledger = () => rig.events.filter(({ type }) => type === 'drover.egress');
    expect(ledger()).toContainEqual(
      expect.objectContaining({ execution_id, host: 'api.test', path: '/a', credential_ids: ['cred_api'] }),
    );
    const call = mint.execution();
    await onBehalfOf.run(call, () => ask('fetch', { url: `https://other.test:${port}/b`, headers }));
    // The connection that is kept open since the first one, too.
    await onBehalfOf.run(call, () => ask('fetch', { url: `https://api.test:${port}/c`, headers }));
    await ask('fetch', { url: `https://nowhere.test:${port}/`, headers });
    // To a host that no credential belongs to the connection is passed on unread: what it carries is worth nothing there.
    expect(seen).toEqual([
      `api.test Bearer ${SECRET}`,
      `other.test Bearer ${placeholder}`,
      `api.test Bearer ${SECRET}`,
    ]);
    expect(ledger()).toContainEqual(expect.objectContaining({ execution_id: call, host: 'api.test', path: '/c' }));
    expect(tripped).toEqual([]);
    await client.close();
    expect(ledger()).toContainEqual(
      expect.objectContaining({ execution_id, host: 'nowhere.test', verdict: 'refused', reason: 'not_listed' }),
    );
    // What is passed on unread is put down when it ends, and it ends with the server.
    await eventually('the end of what was passed on', 10_000, () =>
      ledger().find((one) => JSON.stringify(one).includes(`"${call}"`) && 'host' in one && one.host === 'other.test'),
    );
    await rig.provider.remove(owner, 'the test is over');
    expect(JSON.stringify(rig.events)).not.toContain(SECRET);
  }, 60_000);
}

describeWith(await engineAvailable(), 'an MCP server in a container', () => {
  beforeAll(() => makeImages(ensureSampleImage));
  holdsFor({ type: 'image', image: SAMPLE });
});

describeWith(await osSandboxAvailable(), 'an MCP server in the operating system’s own sandbox', () => {
  holdsFor({ type: 'os' }, { PATH: process.env.PATH, HOME: homedir() });
});
