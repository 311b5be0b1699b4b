import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { mint } from '../../../src/protocol/ids.ts';
import { gitHelperEnv } from '../../../src/vault/git-helper.ts';
import { PLACEHOLDER, placeholderFor } from '../../../src/vault/placeholder.ts';
import { sessionSecrets } from '../../../src/vault/session-secrets.ts';
import { openWindow, temporaryFolder, variable } from './kit.ts';

const VALUE = 'the-real-secret-value';

describe('a placeholder', () => {
  it('is unique per session and credential, and the same again after a crash', () => {
    const [session, other] = [mint.session(), mint.session()];
    const [credential, another] = [mint.credential(), mint.credential()];
    const made = placeholderFor(session, credential);
    expect(placeholderFor(session, credential)).toBe(made);
    const all = [made, placeholderFor(other, credential), placeholderFor(session, another)];
    expect(new Set(all).size).toBe(3);
    for (const one of all) expect(one.match(PLACEHOLDER)).toEqual([one]);
  });

  it('is the same in a URL, a header, JSON and a shell', () => {
    const made = placeholderFor(mint.session(), mint.credential());
    expect(encodeURIComponent(made)).toBe(made);
    expect(JSON.stringify(made)).toBe(`"${made}"`);
    expect(execFileSync('sh', ['-c', `printf %s ${made}`]).toString()).toBe(made);
  });
});

describe('what a session may use', () => {
  async function stage() {
    const { vaults } = await openWindow(await temporaryFolder());
    const [work, home] = [
      await vaults.createVault({ display_name: 'Work' }),
      await vaults.createVault({ display_name: 'Home' }),
    ];
    return { vaults, work, home, session: mint.session() };
  }

  it('is its vaults’ credentials alone: placeholders inside, values for the bound hosts outside', async () => {
    const { vaults, work, home, session } = await stage();
    const npm = await vaults.addCredential(work.id, variable('NPM_TOKEN', ['registry.example', '*.example.org']), {
      secret_value: VALUE,
    });
    const body = await vaults.addCredential(
      work.id,
      variable('FORM', undefined, { injection_location: { header: false, body: true } }),
      { secret_value: `${VALUE}\nof two lines` },
    );
    const mcp = await vaults.addCredential(
      work.id,
      { auth: { type: 'static_bearer', mcp_server_url: 'https://mcp.example:8443/sse' } },
      { token: VALUE },
    );
    await vaults.addCredential(home.id, variable('OTHER'), { secret_value: VALUE });
    const secrets = sessionSecrets(vaults, session, [work.id]);
    expect(secrets.env).toEqual({
      NPM_TOKEN: placeholderFor(session, npm.id),
      FORM: placeholderFor(session, body.id),
    });
    const injectables = await secrets.injectables();
    expect(injectables.map(({ value: _, ...rest }) => rest)).toEqual([
      {
        credentialId: npm.id,
        placeholder: placeholderFor(session, npm.id),
        bound: [{ host: 'registry.example' }, { host: '*.example.org' }],
        inHeader: true,
        inBody: false,
      },
      {
        credentialId: body.id,
        placeholder: placeholderFor(session, body.id),
        bound: 'any',
        inHeader: false,
        inBody: true,
      },
      {
        credentialId: mcp.id,
        placeholder: placeholderFor(session, mcp.id),
        bound: [{ host: 'mcp.example', port: 8443 }],
        inHeader: true,
        inBody: false,
      },
    ]);
    expect(await injectables[0]?.value()).toBe(VALUE);
    expect(JSON.stringify([secrets, injectables])).not.toContain(VALUE);
  });

  it('follows the vault while it runs: rotated and archived at once', async () => {
    const { vaults, work, session } = await stage();
    const { id } = await vaults.addCredential(work.id, variable('T'), { secret_value: VALUE });
    const secrets = sessionSecrets(vaults, session, [work.id]);
    const [before] = await secrets.injectables();
    await vaults.rotate(id, { secret_value: 'the-next-value' });
    expect(await before?.value()).toBe('the-next-value');
    await vaults.archiveCredential(id);
    await expect(before?.value()).rejects.toThrow(/archived/);
    expect(await secrets.injectables()).toEqual([]);
  });

  it('is the first vault’s where two have the same thing', async () => {
    const { vaults, work, home, session } = await stage();
    await vaults.addCredential(work.id, variable('T'), { secret_value: 'from-work' });
    const mine = await vaults.addCredential(home.id, variable('T'), { secret_value: 'from-home' });
    const injectables = await sessionSecrets(vaults, session, [home.id, work.id]).injectables();
    expect(injectables.map(({ credentialId }) => credentialId)).toEqual([mine.id]);
    expect(await injectables[0]?.value()).toBe('from-home');
  });

  it('is nothing where the session has no vault', async () => {
    const { vaults, work, session } = await stage();
    await vaults.addCredential(work.id, variable('T'), { secret_value: VALUE });
    const secrets = sessionSecrets(vaults, session, []);
    expect([secrets.env, await secrets.injectables()]).toEqual([{}, []]);
  });
});

describe('git inside', () => {
  const fill = (env: Record<string, string>, host: string) => {
    const input = `protocol=https\nhost=${host}\n\n`;
    try {
      return execFileSync('git', ['credential', 'fill'], {
        input,
        // Only what a sandbox would have, and a helper of the user's own that must not be asked.
        env: { PATH: process.env.PATH ?? '', HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1', ...env },
        stdio: ['pipe', 'pipe', 'pipe'],
      }).toString();
    } catch (error) {
      return `refused: ${error instanceof Error ? error.message : ''}`;
    }
  };

  it('answers with the user and the placeholder for that host, and for no other', () => {
    const login = { host: 'git.example:8443', user: "o'hara", placeholder: 'drover_ph_x' };
    const env = gitHelperEnv([login, { host: 'other.example', user: 'bot', placeholder: 'drover_ph_y' }]);
    expect(fill(env, 'git.example:8443')).toContain("username=o'hara\npassword=drover_ph_x\n");
    expect(fill(env, 'other.example')).toContain('username=bot\npassword=drover_ph_y\n');
    expect(fill(env, 'git.example')).toMatch(/^refused/);
    expect(fill(env, 'evil.example')).toMatch(/^refused/);
  });

  it('has no variable where there is no login', () => {
    expect(gitHelperEnv([])).toEqual({});
  });
});
