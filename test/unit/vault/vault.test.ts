import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CatalogError } from '../../../src/log/catalog.ts';
import type { CredentialDefinition } from '../../../src/protocol/vault.ts';
import { VaultError } from '../../../src/vault/values.ts';
import { openWindow, temporaryFolder, variable } from './kit.ts';

const VALUE = 'npm_Zx81-secret-value';

/** Everything that is written in the folder. */
function written(folder: string): string {
  const root = join(folder, '.drover');
  return readdirSync(root)
    .map((name) => readFileSync(join(root, name), 'utf8'))
    .join('\n');
}

async function oneVault() {
  const folder = await temporaryFolder();
  const window = await openWindow(folder);
  const vault = await window.vaults.createVault({ display_name: 'Work' });
  return { folder, vault, ...window };
}

describe('a vault', () => {
  it('keeps descriptions in the catalog, under the public names, and values in the secret storage alone', async () => {
    const { folder, vault, vaults, secrets, records } = await oneVault();
    const definition = variable('NPM_TOKEN', ['api.example.com', '*.example.org']);
    const made = await vaults.addCredential(vault.id, definition, { secret_value: VALUE });
    expect(vault).toMatchObject({ type: 'vault', display_name: 'Work', archived_at: null });
    expect(vault.id).toMatch(/^vlt_/);
    expect(made).toMatchObject({ type: 'vault_credential', vault_id: vault.id, ...definition, archived_at: null });
    expect(made.id).toMatch(/^vcrd_/);
    expect([...secrets.kept]).toEqual([[`drover.credential.${made.id}`, `{"secret_value":"${VALUE}"}`]]);
    expect(written(folder)).not.toContain(VALUE);
    expect(written(folder)).toContain('NPM_TOKEN');
    expect(records.credentials(vault.id)).toEqual([made]);
    expect(await vaults.value(made.id)).toBe(VALUE);
  });

  it('never shows a value again: nothing that describes a credential has one', async () => {
    const { vault, vaults } = await oneVault();
    await vaults.addCredential(vault.id, variable('NPM_TOKEN'), { secret_value: VALUE });
    expect(JSON.stringify([vaults.vaults(), vaults.credentials(vault.id), vaults.living([vault.id])])).not.toContain(
      VALUE,
    );
  });

  it('rotates: the new value is used from then on, and both are known to the door of the log', async () => {
    const { vault, vaults, redactor } = await oneVault();
    const { id, updated_at } = await vaults.addCredential(vault.id, variable('T'), { secret_value: VALUE });
    const after = await vaults.rotate(id, { secret_value: 'another-secret' });
    expect(after.updated_at >= updated_at).toBe(true);
    expect(await vaults.value(id)).toBe('another-secret');
    expect(redactor.text(`${VALUE}, another-secret`, () => undefined)).toBe('[redacted: T], [redacted: T]');
  });

  it('archives a credential: the value is gone for good, the record stays, and its name is free again', async () => {
    const { vault, vaults, secrets } = await oneVault();
    const { id } = await vaults.addCredential(vault.id, variable('T'), { secret_value: VALUE });
    const archived = await vaults.archiveCredential(id);
    expect(archived.archived_at).not.toBeNull();
    expect(secrets.kept.size).toBe(0);
    expect(vaults.credentials(vault.id)).toEqual([archived]);
    expect(vaults.living([vault.id])).toEqual([]);
    await expect(vaults.value(id)).rejects.toThrow(VaultError);
    await expect(vaults.rotate(id, { secret_value: VALUE })).rejects.toThrow(/archived/);
    await vaults.addCredential(vault.id, variable('T'), { secret_value: VALUE });
  });

  it('deletes and archives as a whole, every value first', async () => {
    const { vault, vaults, secrets, records } = await oneVault();
    const other = await vaults.createVault({ display_name: 'Home' });
    for (const id of [vault.id, other.id]) {
      await vaults.addCredential(id, variable('A'), { secret_value: VALUE });
      await vaults.addCredential(id, variable('B'), { secret_value: VALUE });
    }
    await vaults.archiveVault(vault.id);
    expect(secrets.kept.size).toBe(2);
    expect(vaults.vaults().map(({ id }) => id)).toEqual([other.id]);
    await vaults.deleteVault(other.id);
    expect(secrets.kept.size).toBe(0);
    expect(records.vaults().map(({ id }) => id)).toEqual([vault.id]);
    expect(records.credentials().every(({ vault_id }) => vault_id === vault.id)).toBe(true);
    await expect(vaults.addCredential(vault.id, variable('C'), { secret_value: VALUE })).rejects.toThrow(/archived/);
  });

  it('takes a value from one of the editor’s sign-ins when it is used, and stores it nowhere', async () => {
    const folder = await temporaryFolder();
    const tokens: Record<string, string> = { github: 'gho_first-token' };
    const { vaults, secrets, redactor } = await openWindow(folder, undefined, tokens);
    const vault = await vaults.createVault({ display_name: 'Work' });
    const made = await vaults.addCredential(
      vault.id,
      {
        auth: { type: 'git_https', host: 'github.com', user: 'x-access-token' },
        source: { type: 'authentication_provider', provider_id: 'github', scopes: ['repo'] },
      },
      {},
    );
    expect(await vaults.value(made.id)).toBe('gho_first-token');
    tokens.github = 'gho_second-token';
    expect(await vaults.value(made.id)).toBe('gho_second-token');
    expect(redactor.text('gho_second-token', () => undefined)).toBe('[redacted: x-access-token at github.com]');
    expect(secrets.kept.size).toBe(0);
    expect(written(folder)).not.toMatch(/gho_/);
    delete tokens.github;
    await expect(vaults.value(made.id)).rejects.toThrow(/sign in again/);
    await expect(vaults.rotate(made.id, { token: 'something-else' })).rejects.toThrow(/sign-in/);
  });

  it('knows all values of the folder once it is ready, also those of former windows', async () => {
    const { folder, vault, vaults, secrets } = await oneVault();
    await vaults.addCredential(vault.id, variable('T'), { secret_value: VALUE });
    const later = await openWindow(folder, secrets);
    expect(later.redactor.active).toBe(false);
    await later.vaults.ready();
    expect(later.redactor.text(VALUE, () => undefined)).toBe('[redacted: T]');
  });
});

describe('two windows', () => {
  it('that change a vault at once lose nothing', async () => {
    const { folder, vault, vaults, secrets } = await oneVault();
    const other = await openWindow(folder, secrets);
    const add = (window: typeof other.vaults, name: string) =>
      window.addCredential(vault.id, variable(name), { secret_value: `${VALUE}-${name}` });
    const made = await Promise.all(
      Array.from({ length: 10 }, (_, index) => [add(vaults, `A${index}`), add(other.vaults, `B${index}`)]).flat(),
    );
    expect(made).toHaveLength(20);
    expect(vaults.living([vault.id])).toHaveLength(20);
    for (const one of made) {
      const name = one.auth.type === 'environment_variable' ? one.auth.secret_name : '';
      expect(await other.vaults.value(one.id)).toBe(`${VALUE}-${name}`);
    }
  });

  it('learn each other’s values: what one adds, the other’s door knows', async () => {
    const { folder, vault, vaults, secrets } = await oneVault();
    const other = await openWindow(folder, secrets);
    await other.vaults.ready();
    const { id } = await vaults.addCredential(vault.id, variable('T'), { secret_value: VALUE });
    await new Promise((resolve) => setImmediate(resolve));
    expect(other.redactor.text(VALUE, () => undefined)).toBe('[redacted: T]');
    await vaults.rotate(id, { secret_value: 'rotated-value' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(other.redactor.text('rotated-value', () => undefined)).toBe('[redacted: T]');
  });

  it('leave no value behind when one archives what the other rotates', async () => {
    const { folder, vault, vaults, secrets } = await oneVault();
    const other = await openWindow(folder, secrets);
    const { id } = await vaults.addCredential(vault.id, variable('T'), { secret_value: VALUE });
    secrets.between = async () => void (await other.vaults.archiveCredential(id));
    await expect(vaults.rotate(id, { secret_value: 'too-late-value' })).rejects.toThrow(/another window/);
    expect(secrets.kept.size).toBe(0);
  });
});

describe('what is refused', () => {
  const stored = { secret_value: VALUE };
  const wrong: [string, CredentialDefinition, Record<string, string>, RegExp][] = [
    ['a name that is no variable', variable('MY-TOKEN'), stored, /auth\.secret_name/],
    ['a name that steers programs', variable('LD_PRELOAD'), stored, /auth\.secret_name.*steers/],
    ['the proxy’s own variables', variable('https_proxy'), stored, /auth\.secret_name/],
    ['a URL as a host', variable('T', ['https://example.com']), stored, /auth\.networking\.allowed_hosts\.0/],
    ['a whole top-level domain', variable('T', ['*.com']), stored, /auth\.networking\.allowed_hosts\.0/],
    ['a star in the middle', variable('T', ['api.*.com']), stored, /auth\.networking\.allowed_hosts\.0/],
    ['no host at all', variable('T', []), stored, /auth\.networking\.allowed_hosts/],
    ['more than 16 hosts', variable('T', Array(17).fill('example.com')), stored, /auth\.networking\.allowed_hosts/],
    ['a value too short to be told from text', variable('T'), { secret_value: 'short' }, /secret_value.*8 characters/],
    ['no value', variable('T'), {}, /secret_value.*missing/],
    ['a value of another kind', variable('T'), { ...stored, token: VALUE }, /no token/],
    ['a header value of two lines', variable('T'), { secret_value: 'first-line\nX-Other: 1' }, /one line/],
    ['a placeholder as a value', variable('T'), { secret_value: `drover_ph_${'a'.repeat(32)}` }, /placeholder/],
    [
      'a server address that is none',
      { auth: { type: 'static_bearer', mcp_server_url: 'mcp.example' } },
      { token: VALUE },
      /mcp_server_url/,
    ],
    [
      'a user with a colon',
      { auth: { type: 'git_https', host: 'h.example', user: 'a:b' } },
      { token: VALUE },
      /auth\.user/,
    ],
    [
      'a token with a space',
      { auth: { type: 'git_https', host: 'h.example', user: 'a' } },
      { token: 'two words' },
      /spaces/,
    ],
  ];
  for (const [what, definition, values, says] of wrong) {
    it(`is ${what}, and the field is named`, async () => {
      const { vault, vaults, secrets } = await oneVault();
      await expect(vaults.addCredential(vault.id, definition, values)).rejects.toThrow(says);
      expect(vaults.credentials(vault.id)).toEqual([]);
      expect(secrets.kept.size).toBe(0);
    });
  }

  it('is a 21st credential, and a second one for the same thing', async () => {
    const { vault, vaults } = await oneVault();
    for (let index = 0; index < 20; index += 1) await vaults.addCredential(vault.id, variable(`T${index}`), stored);
    await expect(vaults.addCredential(vault.id, variable('T20'), stored)).rejects.toThrow(/20 already/);
    const other = await vaults.createVault({ display_name: 'Home' });
    const git = (host: string): CredentialDefinition => ({ auth: { type: 'git_https', host, user: 'me' } });
    await vaults.addCredential(other.id, git('git.example'), { token: VALUE });
    await expect(vaults.addCredential(other.id, git('GIT.example'), { token: VALUE })).rejects.toThrow(CatalogError);
    const mcp = (mcp_server_url: string): CredentialDefinition => ({ auth: { type: 'static_bearer', mcp_server_url } });
    await vaults.addCredential(other.id, mcp('https://mcp.example/sse/'), { token: VALUE });
    await expect(vaults.addCredential(other.id, mcp('https://MCP.example:443/sse'), { token: VALUE })).rejects.toThrow(
      /same thing/,
    );
    await vaults.addCredential(other.id, mcp('https://mcp.example/other'), { token: VALUE });
  });

  it('is an empty or too long name of a vault', async () => {
    const { vaults } = await oneVault();
    await expect(vaults.createVault({ display_name: ' ' })).rejects.toThrow(/display_name/);
    await expect(vaults.createVault({ display_name: 'x'.repeat(256) })).rejects.toThrow(/display_name/);
  });

  it('by the secret storage leaves no record that looks as if there were a value', async () => {
    const { vault, vaults, secrets } = await oneVault();
    secrets.locked = true;
    await expect(vaults.addCredential(vault.id, variable('T'), stored)).rejects.toThrow(/keyring/);
    expect(vaults.credentials(vault.id)).toEqual([]);
  });
});
