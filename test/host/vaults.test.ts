import assert from 'node:assert/strict';
import { chooseVaults } from '../../src/editor/vault-commands.ts';
import { VaultTree } from '../../src/editor/vault-tree.ts';
import { secretsOf } from './secrets-of.ts';
import { Stage } from './stage.ts';

describe('The Vaults tree', () => {
  it('shows vaults, what their credentials are bound to, and what has no value, and no value anywhere', async () => {
    await using stage = await Stage.open();
    const secrets = secretsOf();
    const vaults = await secrets.vaults(stage.project.store.root);
    assert.deepEqual(await chooseVaults(vaults), [], 'nobody is asked where there is no vault');
    const vault = await vaults.createVault({ display_name: 'Work' });
    await vaults.addCredential(
      vault.id,
      {
        auth: {
          type: 'environment_variable',
          secret_name: 'NPM_TOKEN',
          networking: { type: 'limited', allowed_hosts: ['registry.example', '*.example.org'] },
        },
      },
      { secret_value: 'the-value-of-this-test' },
    );
    const old = await vaults.addCredential(
      vault.id,
      { auth: { type: 'git_https', host: 'git.example', user: 'me' } },
      { token: 'the-token-of-this-test' },
    );
    await vaults.archiveCredential(old.id);
    // VS Code is asked, nobody is signed in, and nobody is asked to.
    await vaults.addCredential(
      vault.id,
      {
        auth: { type: 'git_https', host: 'github.com', user: 'x-access-token' },
        source: { type: 'authentication_provider', provider_id: 'github', scopes: ['repo'] },
      },
      {},
    );
    const tree = new VaultTree(secrets, stage.projects);
    const [node] = await tree.children();
    assert.ok(node);
    assert.equal(tree.item(node).label, 'Work');
    assert.equal(tree.item(node).contextValue, 'vault');
    const items = (await tree.children(node)).map((child) => tree.item(child));
    assert.deepEqual(
      items.map(({ label, description, contextValue }) => [label, description, contextValue]),
      [
        ['NPM_TOKEN', 'registry.example, *.example.org', 'credential:stored'],
        ['x-access-token at github.com', 'has no value', 'credential:authentication_provider'],
        ['me at git.example', 'archived', 'credential:archived'],
      ],
    );
    assert.doesNotMatch(JSON.stringify(items), /of-this-test/);
    secrets.dispose();
  });

  it('is drawn anew only where something looks different', async () => {
    await using stage = await Stage.open();
    const secrets = secretsOf();
    const vaults = await secrets.vaults(stage.project.store.root);
    const tree = new VaultTree(secrets, stage.projects);
    assert.equal(await tree.changed(), false, 'what nobody has looked at is not drawn anew');
    const draw = async () => {
      const rows = await tree.children();
      for (const row of rows) await tree.children(row);
      return rows;
    };
    assert.deepEqual(await draw(), []);
    const vault = await vaults.createVault({ display_name: 'Work' });
    assert.equal(await tree.changed(), true);
    assert.equal(await tree.changed(), false, 'it is said once');
    assert.equal((await draw()).length, 1);
    assert.equal(await tree.changed(), false);
    const added = await vaults.addCredential(
      vault.id,
      { auth: { type: 'git_https', host: 'git.example', user: 'me' } },
      { token: 'the-token-of-this-test' },
    );
    assert.equal(await tree.changed(), true);
    await draw();
    assert.equal(await tree.changed(), false);
    await vaults.archiveCredential(added.id);
    assert.equal(await tree.changed(), true);
    secrets.dispose();
  });
});
