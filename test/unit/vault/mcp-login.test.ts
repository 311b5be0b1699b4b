import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Callback } from '../../../src/vault/mcp-callback.ts';
import { checkLogin } from '../../../src/vault/mcp-check.ts';
import { type LoginBrowser, logIn } from '../../../src/vault/mcp-login.ts';
import { McpLogins } from '../../../src/vault/mcp-tokens.ts';
import { AuthorizationServer } from '../../support/authorization-server.ts';
import { ProtectedMcp } from '../../support/protected-mcp.ts';
import { openWindow, temporaryFolder } from './kit.ts';

async function servers() {
  const authorization = await AuthorizationServer.open();
  const accepts = (token: string | undefined) => authorization.accepts(token);
  const mcp = await ProtectedMcp.open({ accepts, issuer: authorization.origin });
  onTestFinished(() => authorization[Symbol.asyncDispose]());
  onTestFinished(() => mcp[Symbol.asyncDispose]());
  return { authorization, mcp };
}

/** A browser whose person says yes, and that goes where it is sent. */
async function browser(change: (back: URL) => void = () => undefined): Promise<LoginBrowser & { pages: string[] }> {
  const callback = await Callback.open();
  onTestFinished(() => callback.close());
  const pages: string[] = [];
  return {
    redirectUrl: callback.url,
    pages,
    async visit(url, state) {
      const waiting = callback.wait(state, AbortSignal.timeout(15_000));
      const sent = await fetch(url, { redirect: 'manual' });
      const back = new URL(sent.headers.get('location') ?? 'about:blank');
      change(back);
      pages.push(await (await fetch(back)).text());
      return await waiting;
    },
  };
}

describe('logging in at an MCP server in the browser', () => {
  for (const auth of ['none', 'client_secret_basic', 'client_secret_post'] as const) {
    it(`gets tokens that work and can be renewed, for a client that registers itself with ${auth}`, async () => {
      const { authorization, mcp } = await servers();
      authorization.auths = [auth];
      authorization.lifetime = 30;
      const person = await browser();
      const login = await logIn(mcp.url, person);
      if (!login) throw new Error('Nobody changed their mind.');
      expect(person.pages[0]).toContain('You are logged in');
      expect(login.auth).toMatchObject({
        mcp_server_url: mcp.url,
        refresh: {
          token_endpoint: `${authorization.origin}/token`,
          resource: mcp.url,
          token_endpoint_auth: { type: auth },
        },
      });
      expect(authorization.accepts(login.values.access_token)).toBe(true);
      const { vaults } = await openWindow(await temporaryFolder());
      const { id } = await vaults.createVault({ display_name: 'Work' });
      await vaults.addCredential(id, { auth: login.auth }, login.values);
      // It expires within the minute, so it is renewed at once: as the very client that logged in.
      const token = await new McpLogins(vaults).tokens([id]).tokenFor(mcp.url);
      expect(token?.token).not.toBe(login.values.access_token);
      expect(authorization.accepts(token?.token)).toBe(true);
    });
  }

  it('takes no answer but that to its own question', async () => {
    const { mcp } = await servers();
    const callback = await Callback.open();
    onTestFinished(() => callback.close());
    const waiting = callback.wait('the-state', AbortSignal.timeout(15_000));
    for (const path of ['callback?code=evil', 'callback?code=evil&state=other', 'other?code=evil&state=the-state'])
      expect((await fetch(new URL(path, callback.url))).status).toBe(404);
    expect((await fetch(`${callback.url}?code=evil&state=the-state`, { method: 'POST' })).status).toBe(404);
    expect((await fetch(`${callback.url}?code=good&state=the-state`)).status).toBe(200);
    expect((await waiting).get('code')).toBe('good');
    const another = await browser((back) => back.searchParams.set('iss', 'https://other.example'));
    await expect(logIn(mcp.url, another)).rejects.toThrow(/another authorization server/);
  });

  it('ends in a sentence where somebody says no, and in nothing where a person changes their mind', async () => {
    const { mcp } = await servers();
    const no = await browser((back) => {
      back.searchParams.delete('code');
      back.searchParams.set('error', 'access_denied');
    });
    await expect(logIn(mcp.url, no)).rejects.toThrow(/You were not logged in.*access_denied/);
    expect(no.pages[0]).toContain('You were not logged in');
    const wrong = await browser((back) => back.searchParams.set('code', 'code-of-somebody-else'));
    await expect(logIn(mcp.url, wrong)).rejects.toThrow(/gave no token \(invalid_grant\)/);
    const away = { redirectUrl: 'http://127.0.0.1:1/callback', visit: async () => undefined };
    expect(await logIn(mcp.url, away)).toBe(undefined);
    await expect(logIn('http://127.0.0.1:9/mcp', away)).rejects.toThrow(/127\.0\.0\.1:9 could not be reached/);
  });

  it('is not led to a page or an endpoint that is not https', async () => {
    const { mcp, authorization } = await servers();
    const liar = createServer((request, response) => {
      const path = request.url ?? '';
      response.writeHead(path.startsWith('/.well-known/oauth-auth') ? 200 : 404, {
        'content-type': 'application/json',
      });
      const endpoint = 'http://login.example';
      response.end(
        JSON.stringify({
          issuer: endpoint,
          authorization_endpoint: `${authorization.origin}/authorize`,
          token_endpoint: `${endpoint}/token`,
          registration_endpoint: `${endpoint}/register`,
          response_types_supported: ['code'],
        }),
      );
    });
    await new Promise<void>((resolve) => liar.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void liar.close());
    const led = await ProtectedMcp.open({
      accepts: () => false,
      issuer: `http://127.0.0.1:${(liar.address() as AddressInfo).port}`,
    });
    onTestFinished(() => led[Symbol.asyncDispose]());
    await expect(logIn(led.url, await browser())).rejects.toThrow(/led to http:\/\/login\.example, which is not https/);
    expect(mcp.bearers).toEqual([]);
  });
});

describe('a credential of an MCP server', () => {
  it('is valid, invalid or unknown, as the server itself says', async () => {
    const { authorization, mcp } = await servers();
    const { vaults } = await openWindow(await temporaryFolder());
    const { id } = await vaults.createVault({ display_name: 'Work' });
    const logins = new McpLogins(vaults);
    const check = async () => {
      const [one] = vaults.living([id]);
      if (!one) throw new Error('There is one.');
      return await checkLogin(logins, one);
    };
    const login = await logIn(mcp.url, await browser());
    if (!login) throw new Error('Nobody changed their mind.');
    const made = await vaults.addCredential(id, { auth: login.auth }, login.values);
    expect(await check()).toMatchObject({ status: 'valid' });
    expect(mcp.open).toBe(0);
    authorization.forget(login.values.access_token ?? '');
    expect(await check()).toMatchObject({ status: 'valid' });
    authorization.trouble = (response) => void response.writeHead(400).end('{"error":"invalid_grant"}');
    authorization.forget((await vaults.open(made.id)).values.access_token ?? '');
    expect(await check()).toMatchObject({ status: 'invalid', said: expect.stringContaining('needs a new login') });
    expect(vaults.living([id])[0]?.refresh_failed_at).toMatch(/^20/);
    // Somebody has mended it at the server: whoever checks it sees it.
    expect(await check()).toMatchObject({ status: 'valid' });
    expect(vaults.living([id])[0]?.refresh_failed_at).toBe(undefined);
  });

  it('can’t be judged where the server does not answer', async () => {
    const { vaults } = await openWindow(await temporaryFolder());
    const { id } = await vaults.createVault({ display_name: 'Work' });
    const auth = { type: 'static_bearer' as const, mcp_server_url: 'http://127.0.0.1:9/mcp' };
    const made = await vaults.addCredential(id, { auth }, { token: 'some-token' });
    expect(await checkLogin(new McpLogins(vaults), made)).toMatchObject({
      status: 'unknown',
      said: expect.stringContaining('could not be reached'),
    });
    const { mcp } = await servers();
    const wrong = { type: 'static_bearer' as const, mcp_server_url: mcp.url };
    const other = await vaults.addCredential(id, { auth: wrong }, { token: 'some-token' });
    expect(await checkLogin(new McpLogins(vaults), other)).toMatchObject({ status: 'invalid' });
  });
});
