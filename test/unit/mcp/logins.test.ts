import { describe, expect, it } from 'vitest';
import { CredentialId } from '../../../src/protocol/ids.ts';
import { eventsOf } from '../../support/events.ts';
import { said } from '../../support/mcp-server.ts';
import { ALLOW, callTask, onlyCall, open, serve, shownTo, words } from './kit.ts';

describe('a login', () => {
  const vault = (tokens: { now: string; next?: string }) => ({
    tokens: () => ({
      tokenFor: async (url: string) =>
        url.endsWith('/mcp')
          ? { credentialId: CredentialId.parse('vcrd_1'), token: tokens.now, refreshed: async () => tokens.next }
          : undefined,
    }),
  });

  it('is put in by the host on each request, renewed once when it is refused, and is nowhere else', async () => {
    const wiki = await serve({ echo: { act: ({ text }) => said(String(text)) } });
    wiki.letsIn = new Set(['fresh-token']);
    const rig = await open({ wiki }, { default_config: ALLOW }, vault({ now: 'stale-token', next: 'fresh-token' }));
    const state = await rig.run(callTask('mcp__wiki__echo', { text: 'in' }));
    expect(words(onlyCall(state))).toBe('in');
    expect(wiki.seen.every(({ authorization }) => /^Bearer (stale|fresh)-token$/.test(authorization ?? ''))).toBe(true);
    const everything = JSON.stringify([await rig.records(), rig.rehearsal.requests]);
    expect(everything).not.toMatch(/(stale|fresh)-token/);
    expect(eventsOf(await rig.records(), 'drover.egress').at(-1)?.credential_ids).toEqual(['vcrd_1']);
  });

  it('that is refused is an authentication error in one sentence, and the session goes on', async () => {
    const wiki = await serve({ echo: {} });
    wiki.letsIn = new Set(['another']);
    const rig = await open({ wiki }, {}, vault({ now: 'stale-token', next: 'wrong-token' }));
    expect((await rig.run('[rehearsal:say] hello')).stopReason).toEqual({ type: 'end_turn' });
    const [refused] = eventsOf(await rig.records(), 'session.error');
    expect(refused?.error).toMatchObject({ type: 'mcp_authentication_failed_error', mcp_server_name: 'wiki' });
    expect(refused?.error.message).toMatch(/refused the token that the session’s vaults have for it \(status 401\)/);
    const bare = await open({ wiki });
    await bare.run('[rehearsal:say] hello');
    const [missing] = eventsOf(await bare.records(), 'session.error');
    expect(missing?.error.message).toMatch(
      /wants a login \(status 401\), and the session’s vaults have no credential for http/,
    );
  });

  it('that ends during a turn costs the server’s tools, and the call says that it did not run', async () => {
    const wiki = await serve({ echo: {} });
    const tokens = { now: 'good' };
    wiki.letsIn = new Set(['good']);
    const rig = await open({ wiki }, {}, vault(tokens));
    const asking = await rig.run(callTask('mcp__wiki__echo'));
    wiki.letsIn = new Set();
    const state = await rig.answer(onlyCall(asking).id, 'allow');
    expect(onlyCall(state).result?.outcome).toBe('failed');
    expect(words(onlyCall(state))).toMatch(/The call did not run\.$/);
    expect(shownTo(rig)).toEqual([]);
  });

  it('never follows a redirect to another host', async () => {
    const thief = await serve({});
    const wiki = await serve({});
    wiki.redirect = { status: 307, location: thief.url };
    const rig = await open({ wiki }, {}, vault({ now: 'secret-token' }));
    await rig.run('[rehearsal:say] hello');
    expect(thief.seen).toEqual([]);
    const [error] = eventsOf(await rig.records(), 'session.error');
    expect(error?.error.type).toBe('mcp_connection_failed_error');
    expect(error?.error.message).toMatch(/Redirect to .* not followed/);
  });
});
