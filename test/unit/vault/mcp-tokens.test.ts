import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CredentialDefinition, McpOauth } from '../../../src/protocol/vault.ts';
import { McpLogins } from '../../../src/vault/mcp-tokens.ts';
import { VaultError } from '../../../src/vault/values.ts';
import { AuthorizationServer } from '../../support/authorization-server.ts';
import { openWindow, temporaryFolder } from './kit.ts';

const SERVER = 'https://mcp.example/v1/mcp';
const HOUR = 3_600_000;

type Auth = NonNullable<McpOauth['refresh']>['token_endpoint_auth']['type'];

/** A vault with a login at a real authorization server, an hour before now. */
async function loggedIn(
  auth: Auth = 'none',
  { expired = true, more = {} as Partial<NonNullable<McpOauth['refresh']>> } = {},
) {
  const server = await AuthorizationServer.open();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const folder = await temporaryFolder();
  const window = await openWindow(folder);
  const vault = await window.vaults.createVault({ display_name: 'Work' });
  const login = server.login(auth, more.resource);
  const expires_at = new Date(Date.now() + (expired ? -HOUR : HOUR)).toISOString();
  const definition: CredentialDefinition = {
    auth: {
      type: 'mcp_oauth',
      mcp_server_url: SERVER,
      expires_at,
      refresh: {
        token_endpoint: `${server.origin}/token`,
        client_id: login.client_id,
        token_endpoint_auth: { type: auth },
        ...more,
      },
    },
  };
  const { access_token, refresh_token, client_secret } = login;
  const values = { access_token, refresh_token, ...(client_secret ? { client_secret } : {}) };
  const credential = await window.vaults.addCredential(vault.id, definition, values);
  const logins = new McpLogins(window.vaults);
  const stored = () => JSON.parse(window.secrets.kept.get(`drover.credential.${credential.id}`) ?? '{}');
  return { ...window, server, folder, vault, login, credential, logins, tokens: logins.tokens([vault.id]), stored };
}

describe('a token for an MCP server', () => {
  it('is that of the first of the session’s vaults that has one for this very address', async () => {
    const { vaults } = await openWindow(await temporaryFolder());
    const make = async (name: string, entries: Record<string, string>) => {
      const { id } = await vaults.createVault({ display_name: name });
      for (const [mcp_server_url, token] of Object.entries(entries))
        await vaults.addCredential(id, { auth: { type: 'static_bearer', mcp_server_url } }, { token });
      return id;
    };
    const work = await make('Work', { 'https://mcp.example/a/': 'work-token-a' });
    const home = await make('Home', {
      'https://mcp.example/a': 'home-token-a',
      'https://mcp.example/b?x=1': 'home-token-b',
    });
    await make('Other', { 'https://other.example/': 'other-token' });
    const logins = new McpLogins(vaults);
    const token = async (url: string, ids = [work, home]) => (await logins.tokens(ids).tokenFor(url))?.token;
    expect(await token('HTTPS://MCP.example:443/a')).toBe('work-token-a');
    expect(await token('https://mcp.example/a', [home, work])).toBe('home-token-a');
    expect(await token('https://mcp.example/b?x=1')).toBe('home-token-b');
    for (const other of ['/A', '/a/b', '', '/b', '/b?x=2'])
      expect(await token(`https://mcp.example${other}`)).toBe(undefined);
    for (const other of [
      'http://mcp.example/a',
      'https://x.mcp.example/a',
      'https://mcp.example:8443/a',
      'https://other.example',
    ])
      expect(await token(other)).toBe(undefined);
  });

  it('that the server refused is no other one, unless it was rotated meanwhile', async () => {
    const { vaults } = await openWindow(await temporaryFolder());
    const { id } = await vaults.createVault({ display_name: 'Work' });
    const made = await vaults.addCredential(
      id,
      { auth: { type: 'static_bearer', mcp_server_url: SERVER } },
      { token: 'first-token' },
    );
    const token = await new McpLogins(vaults).tokens([id]).tokenFor(SERVER);
    expect(await token?.refreshed()).toBe(undefined);
    await vaults.rotate(made.id, { token: 'second-token' });
    expect(await token?.refreshed()).toBe('second-token');
  });

  it('goes over https, or to this machine, and nowhere else', async () => {
    const { vaults } = await openWindow(await temporaryFolder());
    const { id } = await vaults.createVault({ display_name: 'Work' });
    const add = (mcp_server_url: string) =>
      vaults.addCredential(id, { auth: { type: 'static_bearer', mcp_server_url } }, { token: 'some-token' });
    for (const url of [
      'http://mcp.example/',
      'http://127.0.0.1.example/',
      'https://me:pass@mcp.example/',
      'ftp://mcp.example/',
    ])
      await expect(add(url)).rejects.toThrow(/auth\.mcp_server_url/);
    for (const url of ['http://127.0.0.1:81/', 'http://localhost:82/', 'http://[::1]:83/', 'https://mcp.example/'])
      await add(url);
  });
});

describe('an OAuth login', () => {
  for (const auth of ['none', 'client_secret_basic', 'client_secret_post'] as const) {
    it(`is renewed once it has expired, by a client with ${auth}, and what is new is kept and known to the door`, async () => {
      const resource = 'https://mcp.example/v1';
      const { server, tokens, login, stored, redactor, records, folder, credential } = await loggedIn(auth, {
        more: { resource, scope: 'read write' },
      });
      const token = await tokens.tokenFor(SERVER);
      expect(server.accepts(token?.token)).toBe(true);
      expect(token?.token).not.toBe(login.access_token);
      expect(Object.fromEntries(server.asked[0] ?? [])).toMatchObject({ scope: 'read write', resource });
      expect(stored().access_token).toBe(token?.token);
      expect(stored().refresh_token).not.toBe(login.refresh_token);
      expect(stored().client_secret).toBe(login.client_secret);
      const [kept] = records.credentials();
      expect(kept?.auth).toMatchObject({ refresh: { scope: 'read write' } });
      expect(
        Date.parse(kept?.auth.type === 'mcp_oauth' ? (kept.auth.expires_at ?? '') : '') - Date.now(),
      ).toBeGreaterThan(HOUR / 2);
      const written = readFileSync(join(folder, '.drover/catalog.json'), 'utf8');
      for (const secret of server.secrets) {
        expect(written).not.toContain(secret);
        expect(redactor.text(`a ${secret} b`, () => undefined)).toBe(`a [redacted: ${SERVER}] b`);
      }
      // And again, with the refresh token that came with it: the server takes each only once.
      server.forget(token?.token ?? '');
      expect(server.accepts(await token?.refreshed())).toBe(true);
      expect((await tokens.tokenFor(SERVER))?.credentialId).toBe(credential.id);
      expect(server.asked).toHaveLength(2);
    });
  }

  it('is sent as it is while it is good, and renewed when the server refuses it all the same', async () => {
    const { server, tokens, login } = await loggedIn('none', { expired: false });
    server.lifetime = undefined;
    const token = await tokens.tokenFor(SERVER);
    expect([token?.token, server.asked.length]).toEqual([login.access_token, 0]);
    const fresh = await token?.refreshed();
    expect([server.accepts(fresh), server.asked.length]).toEqual([true, 1]);
    // Nobody said when this one expires: it is good until it is refused.
    expect((await tokens.tokenFor(SERVER))?.token).toBe(fresh);
    expect(server.asked).toHaveLength(1);
  });

  it('is renewed once for all who need it at the same time', async () => {
    const { server, tokens, login } = await loggedIn();
    const all = await Promise.all(Array.from({ length: 5 }, () => tokens.tokenFor(SERVER)));
    expect(new Set(all.map((one) => one?.token)).size).toBe(1);
    const again = await Promise.all(all.map((one) => one?.refreshed()));
    expect(new Set(again).size).toBe(1);
    expect(again[0]).not.toBe(login.access_token);
    expect(server.asked).toHaveLength(2);
  });

  it('that another window renewed first is good in this one, too', async () => {
    const { server, folder, secrets, vault, vaults, credential, tokens, logins } = await loggedIn();
    const other = await openWindow(folder, secrets);
    const theirs = await new McpLogins(other.vaults).tokens([vault.id]).tokenFor(SERVER);
    expect((await tokens.tokenFor(SERVER))?.token).toBe(theirs?.token);
    expect(server.asked).toHaveLength(1);
    // At the very same moment: this window's request is refused, and by then the other's tokens are there.
    const { values } = await vaults.open(credential.id);
    server.trouble = (response) => {
      const late = { ...values, access_token: 'access-of-the-other', refresh_token: 'refresh-of-the-other' };
      void other.vaults.rotate(credential.id, late).then(() => {
        response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}');
      });
    };
    expect(await logins.renew(credential.id)).toBe('access-of-the-other');
    expect(vaults.living([vault.id])[0]?.refresh_failed_at).toBe(undefined);
  });

  it('that is refused says so in a sentence, asks no more, and is well again after a new login', async () => {
    const { server, tokens, login, vaults, vault, credential } = await loggedIn();
    server.trouble = (response) => {
      const error_description = `your ${login.refresh_token} is no good`;
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: 'invalid_grant', error_description }));
    };
    const said = await tokens.tokenFor(SERVER).catch((error: unknown) => error);
    expect(said).toBeInstanceOf(VaultError);
    expect(String(said)).toMatch(
      /“https:\/\/mcp\.example\/v1\/mcp” needs a new login.*Rotate Credential.*invalid_grant/,
    );
    expect(JSON.stringify([said, String(said), String((said as Error).cause)])).not.toContain(login.refresh_token);
    expect(vaults.living([vault.id])[0]?.refresh_failed_at).toMatch(/^20/);
    await expect(tokens.tokenFor(SERVER)).rejects.toThrow(/needs a new login/);
    expect(server.asked).toHaveLength(1);
    const { access_token, refresh_token } = login;
    await vaults.rotate(credential.id, { access_token, refresh_token });
    expect(vaults.living([vault.id])[0]?.refresh_failed_at).toBe(undefined);
    expect((await tokens.tokenFor(SERVER))?.token).toBe(access_token);
  });

  it('that can’t be renewed just now is asked for again at the next use', async () => {
    const { server, tokens, vaults, vault } = await loggedIn();
    const answers: [number, string][] = [
      [503, 'try later'],
      [429, '{"error":"slow_down"}'],
      [200, 'x'.repeat(300_000)],
      [200, '{"access_token":"short","token_type":"Bearer"}'],
      [200, '{"token_type":"Bearer"}'],
    ];
    for (const [status, text] of answers) {
      server.trouble = (response) => void response.writeHead(status).end(text);
      await expect(tokens.tokenFor(SERVER)).rejects.toThrow(VaultError);
    }
    expect(vaults.living([vault.id])[0]?.refresh_failed_at).toBe(undefined);
    expect(server.accepts((await tokens.tokenFor(SERVER))?.token)).toBe(true);
  });

  it('is refused also by a server that says no with status 200', async () => {
    const { server, tokens } = await loggedIn();
    server.trouble = (response) => void response.writeHead(200).end('{"error":"bad_refresh_token"}');
    await expect(tokens.tokenFor(SERVER)).rejects.toThrow(/needs a new login/);
  });

  it('takes its secrets to no place it is redirected to', async () => {
    const { server, tokens } = await loggedIn('client_secret_post');
    const came: string[] = [];
    const thief = createServer((request, response) => {
      request.on('data', (piece) => came.push(String(piece))).on('end', () => response.end('{}'));
      came.push(request.url ?? '');
    });
    await new Promise<void>((resolve) => thief.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void thief.close());
    for (const place of [
      `http://127.0.0.1:${(thief.address() as AddressInfo).port}/token`,
      `${server.origin}/elsewhere`,
    ]) {
      server.trouble = (response) => void response.writeHead(307, { location: place }).end();
      await expect(tokens.tokenFor(SERVER)).rejects.toThrow(/could not be asked/);
    }
    expect(came).toEqual([]);
    expect(server.asked).toHaveLength(2);
  });

  it('stays as it was where a new one is not for the same server', async () => {
    const { vaults, credential, stored, login } = await loggedIn();
    const { auth } = credential;
    if (auth.type !== 'mcp_oauth') throw new Error('It is one.');
    const other = { ...auth, mcp_server_url: 'https://other.example' };
    const bad = { ...auth, refresh: auth.refresh && { ...auth.refresh, token_endpoint: 'http://login.example' } };
    for (const wrong of [other, bad]) {
      const values = { access_token: 'a-new-token', refresh_token: 'a-new-refresh-token' };
      await expect(vaults.rotate(credential.id, values, wrong)).rejects.toThrow(/left as it is/);
    }
    expect(stored().access_token).toBe(login.access_token);
  });

  it('leaves nothing behind when it is archived while it is renewed', async () => {
    const { server, tokens, secrets, vaults, credential } = await loggedIn();
    server.trouble = (response) => {
      void vaults.archiveCredential(credential.id).then(() => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end('{"access_token":"too-late-token","token_type":"Bearer"}');
      });
    };
    await expect(tokens.tokenFor(SERVER)).rejects.toThrow(/archived/);
    expect(secrets.kept.size).toBe(0);
  });
});
