import assert from 'node:assert/strict';
import { withoutServer, withServer } from '../../src/editor/mcp-commands.ts';
import { agentSnapshot } from '../../src/editor/start-session.ts';
import { VaultTree } from '../../src/editor/vault-tree.ts';
import { splitWords } from '../../src/editor/words.ts';
import { secretsOf } from './secrets-of.ts';
import { Stage } from './stage.ts';

describe('An agent’s MCP servers', () => {
  it('come and go with a toolset each, as new versions, and are what a new session gets', async () => {
    await using stage = await Stage.open();
    const catalog = await stage.project.catalog();
    const [first] = catalog.agents();
    assert.ok(first);
    const url = { type: 'url' as const, name: 'docs', url: 'https://mcp.example/mcp' };
    const program = { type: 'stdio' as const, name: 'files', command: 'npx', args: ['-y', 'a server'] };
    const one = await withServer(catalog, first, url);
    const two = await withServer(catalog, one, program);
    assert.equal(two.version, first.version + 2);
    assert.deepEqual(agentSnapshot(two, stage.project).mcp_servers, [url, program]);
    const toolsets = (two.tools ?? []).filter((tool) => tool.type === 'mcp_toolset');
    assert.deepEqual(
      toolsets.map(({ mcp_server_name }) => mcp_server_name),
      ['docs', 'files'],
    );
    await assert.rejects(withServer(catalog, two, { ...url, url: 'https://other.example' }), /named "docs"/);
    await assert.rejects(withServer(catalog, one, { ...url, name: 'more' }), /version/);
    const less = await withoutServer(catalog, two, 'docs');
    assert.deepEqual(agentSnapshot(less, stage.project).mcp_servers, [program]);
    const none = await withoutServer(catalog, less, 'files');
    assert.deepEqual(none.tools, first.tools);
  });

  it('by command are read as words: quotes keep them together, and nothing else is a sign', () => {
    assert.deepEqual(splitWords(` npx  -y '@a/b c' --x="d \\"e\\" $F"g\\ h *`), [
      'npx',
      '-y',
      '@a/b c',
      '--x=d "e" $Fg h',
      '*',
    ]);
    assert.deepEqual(splitWords(''), []);
    for (const open of [`npx 'a`, `a "b`, `a b"c d`, 'a\\']) assert.equal(splitWords(open), undefined);
  });
});

describe('A login at an MCP server', () => {
  it('says in the Vaults tree that it is over, and that it is well again after a new one', async () => {
    await using stage = await Stage.open();
    const secrets = secretsOf();
    const vaults = await secrets.vaults(stage.project.store.root);
    const vault = await vaults.createVault({ display_name: 'Work' });
    const made = await vaults.addCredential(
      vault.id,
      { auth: { type: 'mcp_oauth', mcp_server_url: 'https://mcp.example/mcp' } },
      { access_token: 'access-token-of-this-test' },
    );
    const tree = new VaultTree(secrets, stage.projects);
    const shown = async () => {
      const [node] = await tree.children();
      const [child] = await tree.children(node);
      assert.ok(child);
      const { description, contextValue } = tree.item(child);
      return [description, contextValue];
    };
    let changes = 0;
    secrets.onChange(() => void changes++);
    assert.deepEqual(await shown(), ['mcp.example', 'credential:stored:mcp']);
    await vaults.refreshFailed(made.id);
    assert.equal(changes, 1, 'the tree is told');
    assert.deepEqual(await shown(), ['log in again', 'credential:stored:mcp']);
    await vaults.rotate(made.id, { access_token: 'another-token-of-this-test' });
    assert.deepEqual(await shown(), ['mcp.example', 'credential:stored:mcp']);
    secrets.dispose();
  });
});
