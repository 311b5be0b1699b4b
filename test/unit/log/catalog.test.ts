import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type AgentChange,
  CatalogError,
  type CatalogOptions,
  DEFAULT_MODEL,
  openCatalog,
} from '../../../src/log/catalog.ts';
import { LeaseFile } from '../../../src/log/lease.ts';
import { Agent, type AgentDefinition, AgentToolset } from '../../../src/protocol/agent.ts';
import { Environment } from '../../../src/protocol/environment.ts';
import { Child } from './child.ts';
import { temporary } from './kit.ts';

async function newCatalog(options: CatalogOptions = {}) {
  const root = join(await temporary(), '.drover');
  const problems: string[] = [];
  const catalog = await openCatalog(root, { onProblem: (problem) => void problems.push(problem), ...options });
  return { root, file: join(root, 'catalog.json'), catalog, problems };
}

/** The policy an agent has for a tool. */
const policy = (agent: Agent | undefined, tool: string) =>
  AgentToolset.parse(agent?.tools?.[0]).configs?.find(({ name }) => name === tool)?.permission_policy?.type;

describe('a new catalog', () => {
  it('has the built-in agents and environments, each of them valid, and writes nothing until it is changed', async () => {
    const { catalog, root } = await newCatalog({ model: 'claude-opus-5-5' });
    const agents = catalog.agents();
    expect(agents.map(({ name, model, version }) => [name, model, version])).toEqual([
      ['Developer', 'claude-opus-5-5', 1],
      ['Developer, trusts the sandbox', 'claude-opus-5-5', 1],
      ['Rehearsal', 'drover-rehearsal', 1],
    ]);
    for (const agent of agents) {
      expect(Agent.parse(agent)).toEqual(agent);
      expect(['read', 'glob', 'grep', 'edit', 'write'].map((tool) => policy(agent, tool))).toEqual([
        'always_allow',
        'always_allow',
        'always_allow',
        'always_ask',
        'always_ask',
      ]);
      expect(agent.multiagent).toEqual({ type: 'coordinator', agents: [{ type: 'self' }] });
    }
    expect(agents.map((agent) => policy(agent, 'bash'))).toEqual(['always_ask', 'always_allow', 'always_allow']);
    expect(catalog.environments().map(({ name, config }) => [name, config])).toEqual([
      ['Dev container', { type: 'devcontainer' }],
      ['OS sandbox', { type: 'os' }],
    ]);
    for (const one of catalog.environments()) expect(Environment.parse(one)).toEqual(one);
    expect(existsSync(root)).toBe(false);
  });

  it('has the same ids in every window, and the default model where none is asked for', async () => {
    const { root, catalog } = await newCatalog();
    const other = await openCatalog(root);
    expect(other.agents().map(({ id }) => id)).toEqual(catalog.agents().map(({ id }) => id));
    expect(catalog.agents()[0]?.model).toBe(DEFAULT_MODEL);
  });

  it('keeps the built-in ones when another is made, and itself out of version control', async () => {
    const { root, catalog, file } = await newCatalog();
    const agent = await catalog.createAgent({ name: 'Reviewer', model: 'm' });
    expect(
      catalog
        .agents()
        .map(({ name }) => name)
        .at(-1),
    ).toBe('Reviewer');
    expect(catalog.agents()).toHaveLength(4);
    expect(JSON.parse(readFileSync(file, 'utf8')).agents).toHaveLength(4);
    expect(readFileSync(join(root, '.gitignore'), 'utf8')).toBe('*\n');
    expect((await openCatalog(root)).agent(agent.id)).toEqual(agent);
  });
});

describe('an agent', () => {
  const definition: AgentDefinition = {
    name: 'Reviewer',
    model: 'm',
    system: 'Be strict.',
    metadata: { team: 'a', tier: '1' },
  };

  it('starts at version 1 and gets a new one with each change that changes something', async () => {
    const { catalog } = await newCatalog();
    const { id } = await catalog.createAgent(definition);
    expect((await catalog.updateAgent(id, { system: 'Be strict.' })).version).toBe(1);
    expect((await catalog.updateAgent(id, { model: 'n' })).version).toBe(2);
    expect((await catalog.updateAgent(id, { model: 'n', metadata: { team: 'a' } })).version).toBe(2);
    expect((await catalog.updateAgent(id, { metadata: { tier: null, zone: 'b' } })).metadata).toEqual({
      team: 'a',
      zone: 'b',
    });
    expect(catalog.agentVersions(id).map(({ version, model }) => [version, model])).toEqual([
      [1, 'm'],
      [2, 'n'],
      [3, 'n'],
    ]);
    expect(catalog.agent(id)?.version).toBe(3);
    expect(catalog.agent(id, 1)?.metadata).toEqual(definition.metadata);
    expect(catalog.agent(id, 9)).toBeUndefined();
    expect(catalog.agents().filter((agent) => agent.id === id)).toHaveLength(1);
  });

  it('keeps what a change leaves out, and loses what it sets to null', async () => {
    const { catalog } = await newCatalog();
    const { id } = await catalog.createAgent(definition);
    const after = await catalog.updateAgent(id, { description: 'd', system: null });
    expect(after).toMatchObject({
      name: 'Reviewer',
      model: 'm',
      description: 'd',
      system: null,
      metadata: definition.metadata,
    });
  });

  it('is not changed from an old version of it', async () => {
    const { catalog } = await newCatalog();
    const { id } = await catalog.createAgent(definition);
    await catalog.updateAgent(id, { model: 'n', version: 1 });
    await expect(catalog.updateAgent(id, { model: 'o', version: 1 })).rejects.toThrow(/at version 2 by now, not 1/);
    expect(catalog.agent(id)?.model).toBe('n');
  });

  it('is archived for good', async () => {
    const { catalog } = await newCatalog();
    const { id } = await catalog.createAgent(definition);
    const archived = await catalog.archiveAgent(id);
    expect(archived.archived_at).not.toBeNull();
    expect(await catalog.archiveAgent(id)).toEqual(archived);
    await expect(catalog.updateAgent(id, { model: 'n' })).rejects.toThrow(/archived/);
    expect(catalog.agents().map((agent) => agent.id)).toContain(id);
  });

  it('that is not valid is refused with the field it is about, and changes nothing', async () => {
    const { catalog, file } = await newCatalog();
    const { id } = await catalog.createAgent(definition);
    const before = readFileSync(file);
    const tools = [
      { type: 'custom', name: 'has spaces', description: '', input_schema: { type: 'object' } },
    ] as AgentDefinition['tools'] & {};
    for (const [change, field] of [
      [{ name: '' }, /name/],
      [{ model: { id: '' } }, /model/],
      [{ tools }, /tools\.0\.name/],
    ] as const) {
      await expect(catalog.createAgent({ ...definition, ...change })).rejects.toThrow(field);
      await expect(catalog.updateAgent(id, change)).rejects.toThrow(field);
      await expect(catalog.updateAgent(id, change)).rejects.toThrow(CatalogError);
    }
    await expect(catalog.updateAgent('agent_none', { model: 'n' })).rejects.toThrow(/no agent_none/);
    expect(readFileSync(file)).toEqual(before);
  });

  it('names each MCP server once and has a toolset for each, or is refused in one sentence', async () => {
    const { catalog } = await newCatalog();
    const wiki = { type: 'url' as const, name: 'wiki', url: 'https://wiki.test/mcp' };
    const files = { type: 'stdio' as const, name: 'files', command: 'files-mcp', args: ['--ro'] };
    const toolset = (mcp_server_name: string) => ({ type: 'mcp_toolset' as const, mcp_server_name });
    const both = { mcp_servers: [wiki, files], tools: [toolset('wiki'), toolset('files')] };
    const { id } = await catalog.createAgent({ ...definition, ...both });
    for (const [change, problem] of [
      [{ mcp_servers: [wiki, { ...files, name: 'wiki' }] }, /Two MCP servers are named "wiki"/],
      [{ mcp_servers: [wiki] }, /names the MCP server "files", which is not among mcp_servers/],
      [{ tools: [toolset('wiki')] }, /No toolset names the MCP server "files"/],
      [{ tools: [toolset('wiki'), toolset('files'), toolset('wiki')] }, /Two toolsets name the MCP server "wiki"/],
      [{ mcp_servers: [{ ...wiki, url: 'https://me:secret@wiki.test/mcp' }, files] }, /must hold no login/],
      [{ mcp_servers: [{ ...wiki, url: 'file:///etc' }, files] }, /must be an http or https address/],
      [{ mcp_servers: Array.from({ length: 21 }, (_, n) => ({ ...wiki, name: `w${n}` })) }, /mcp_servers/],
    ] as const) {
      await expect(catalog.updateAgent(id, change as AgentChange)).rejects.toThrow(problem);
    }
    expect(catalog.agent(id)).toMatchObject({ ...both, version: 1 });
  });
});

describe('an environment', () => {
  it('is made, changed in place, and archived; its type stays', async () => {
    const { catalog } = await newCatalog();
    const { id } = await catalog.createEnvironment({ name: 'Node', config: { type: 'image', image: 'node:24' } });
    expect(
      await catalog.updateEnvironment(id, { config: { type: 'image', image: 'node:25' }, limits: { cpus: 1.5 } }),
    ).toMatchObject({
      name: 'Node',
      config: { image: 'node:25' },
      limits: { cpus: 1.5 },
    });
    await expect(catalog.updateEnvironment(id, { config: { type: 'os' } })).rejects.toThrow(/config\.type/);
    await expect(catalog.createEnvironment({ name: 'x', config: { type: 'image', image: '' } })).rejects.toThrow(
      /config\.image/,
    );
    await expect(catalog.updateEnvironment(id, { limits: { pids: -1 } })).rejects.toThrow(/limits\.pids/);
    const second = await catalog.createEnvironment({ name: 'Other', config: { type: 'os' } });
    await expect(catalog.updateEnvironment(second.id, { name: 'NODE' })).rejects.toMatchObject({
      problems: [{ field: 'name', message: 'Another environment of this folder has this name.' }],
    });
    await catalog.redefineEnvironment(id, { name: 'Node', config: { type: 'image', image: 'node:25' } });
    expect(catalog.environment(id)?.limits).toBeUndefined();
    await expect(catalog.redefineEnvironment(id, { name: 'Node', config: { type: 'host' } })).rejects.toThrow(
      /config\.type/,
    );
    expect((await catalog.archiveEnvironment(id)).archived_at).not.toBeNull();
    expect(catalog.environment(id)?.config).toEqual({ type: 'image', image: 'node:25' });
  });
});

describe('a rule', () => {
  it('is kept once, listed until it is taken back, and bound to what a person saw', async () => {
    const { catalog } = await newCatalog();
    const definition = { tool: 'bash', input_sha256: 'a'.repeat(64), name: 'npm test' };
    const rule = await catalog.createRule(definition);
    expect((await catalog.createRule(definition)).id).toBe(rule.id);
    await catalog.createRule({ tool: 'edit', name: 'every edit' });
    expect(catalog.rules().map(({ tool, name }) => [tool, name])).toEqual([
      ['bash', 'npm test'],
      ['edit', 'every edit'],
    ]);
    await catalog.archiveRule(rule.id);
    expect(catalog.rules().map(({ tool }) => tool)).toEqual(['edit']);
  });

  it('for every shell command is refused, and says why', async () => {
    const { catalog } = await newCatalog();
    await expect(catalog.createRule({ tool: 'bash', name: 'bash' })).rejects.toThrow(/would allow anything/);
    expect(catalog.rules()).toEqual([]);
  });

  it('is read as none from a catalog that was written before there were any', async () => {
    const { catalog, file } = await newCatalog();
    await catalog.createRule({ tool: 'edit', name: 'every edit' });
    const { rules: _rules, ...older } = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify(older));
    expect(catalog.rules()).toEqual([]);
    expect(catalog.agents().length).toBe(3);
  });
});

describe('a catalog file', () => {
  it('that is broken is used around, and set aside byte for byte at the next change', async () => {
    for (const broken of [
      '{"version":1,"agents":[',
      '[]',
      '\0\0\0\0',
      '{"version":1,"agents":7,"environments":[]}',
      '\xff',
    ]) {
      const { root, catalog, file, problems } = await newCatalog();
      await catalog.createAgent({ name: 'Precious', model: 'm' });
      writeFileSync(file, broken, 'latin1');
      expect(catalog.agents()).toHaveLength(3);
      expect(problems).toEqual([expect.stringMatching(/is broken \(.+\).*set aside, not deleted/)]);
      expect(readFileSync(file, 'latin1')).toBe(broken);
      await catalog.createAgent({ name: 'Next', model: 'm' });
      const aside = readdirSync(root).filter((name) => name.startsWith('catalog.broken-'));
      expect(aside).toHaveLength(1);
      expect(readFileSync(join(root, aside[0] ?? ''), 'latin1')).toBe(broken);
      expect(problems.at(-1)).toContain(aside[0]);
      expect(catalog.agents().map(({ name }) => name)).toContain('Next');
    }
  });

  it('keeps an entry and keys it does not understand, and says which entry it leaves out', async () => {
    const { catalog, file, problems } = await newCatalog();
    await catalog.createAgent({ name: 'Good', model: 'm' });
    const data = JSON.parse(readFileSync(file, 'utf8'));
    const odd = { id: 'agent_odd', name: 'Odd', version: 'one' };
    writeFileSync(file, JSON.stringify({ ...data, agents: [odd, ...data.agents], vaults: [{ id: 'vlt_1' }] }));
    expect(catalog.agents().map(({ name }) => name)).not.toContain('Odd');
    expect(problems).toEqual([expect.stringMatching(/"Odd": /)]);
    await catalog.createAgent({ name: 'More', model: 'm' });
    const after = JSON.parse(readFileSync(file, 'utf8'));
    expect(after.agents[0]).toEqual(odd);
    expect(after.vaults).toEqual([{ id: 'vlt_1' }]);
  });

  it('of a newer version is read where it can be, and never written', async () => {
    for (const newer of [
      { version: 2, agents: [], environments: [] },
      { version: 2, what: 'ever' },
    ]) {
      const { catalog, file, root } = await newCatalog();
      await catalog.createAgent({ name: 'x', model: 'm' });
      writeFileSync(file, JSON.stringify(newer));
      await expect(catalog.createAgent({ name: 'y', model: 'm' })).rejects.toThrow(/newer Drover/);
      expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(newer);
      expect(readdirSync(root).filter((name) => name.startsWith('catalog.broken'))).toEqual([]);
    }
  });

  it('loses no change of two windows that change it at once', { timeout: 60_000 }, async () => {
    const { root, catalog } = await newCatalog();
    const children = [new Child('agents', root, 'none', 15), new Child('agents', root, 'none', 15)];
    await Promise.all(children.map((child) => child.says('ready')));
    for (const child of children) child.go();
    const mine = Array.from({ length: 15 }, (_, n) => catalog.createAgent({ name: `mine ${n}`, model: 'm' }));
    await Promise.all([...mine, ...children.map((child) => child.says('done'))]);
    const names = catalog
      .agents()
      .slice(3)
      .map(({ name }) => name);
    expect(names).toHaveLength(45);
    expect(new Set(names).size).toBe(45);
  });

  it('is not locked by a window that died while it changed it', async () => {
    const { root, catalog } = await newCatalog();
    await catalog.createAgent({ name: 'a', model: 'm' });
    await new LeaseFile(join(root, 'catalog.lock'), { holder: { pid: 2 ** 22 + 1, host: hostname() } }).take();
    await catalog.createAgent({ name: 'b', model: 'm' });
    expect(catalog.agents().at(-1)?.name).toBe('b');
  });
});
