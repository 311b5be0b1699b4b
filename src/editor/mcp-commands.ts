import * as vscode from 'vscode';
import type { Catalog } from '../log/catalog.ts';
import { type Agent, agentProblem } from '../protocol/agent.ts';
import { DroverError } from '../protocol/errors.ts';
import { McpServer, McpStdioServer, McpUrlServer } from '../protocol/mcp.ts';
import type { App } from './app.ts';
import { ask, problemOf } from './boxes.ts';
import { askForMcpLogin } from './mcp-credential.ts';
import type { Project } from './project.ts';
import { Refusal } from './refusal.ts';
import { vaultForNew } from './vault-commands.ts';
import { splitWords } from './words.ts';

/* Which MCP servers an agent of the folder has. A change makes a new version of the agent; sessions keep the one they began with. */

type Handler = (app: App, args: readonly unknown[]) => Promise<void>;

const TITLE = 'Drover: add an MCP server';

export const mcpHandlers = {
  async addMcpServer(app) {
    const project = await app.projects.choose();
    if (!project) return;
    const catalog = await project.catalog();
    const agent = await chooseAgent(catalog, TITLE, 'Which agent gets it?');
    const server = agent && (await askForServer(agent));
    if (!agent || !server) return;
    await withServer(catalog, agent, server);
    const vault = server.type === 'url' ? await loginFor(app, project, agent, server) : undefined;
    const choose = vault ? `; choose the vault “${vault}” when you start one` : '';
    void vscode.window.showInformationMessage(
      `“${agent.name}” has the MCP server “${server.name}” in sessions that start from now on${choose}. Each of its tools asks before it is used.`,
    );
  },

  async removeMcpServer(app) {
    const project = await app.projects.choose();
    if (!project) return;
    const catalog = await project.catalog();
    const title = 'Drover: remove an MCP server';
    const agent = await chooseAgent(catalog, title, 'From which agent?', ({ mcp_servers: all = [] }) => all.length > 0);
    if (!agent) return;
    const picked = await vscode.window.showQuickPick(
      (agent.mcp_servers ?? []).map((server) => ({ label: server.name, description: placeOf(server), server })),
      { title, placeHolder: `Which server of “${agent.name}”?`, ignoreFocusOut: true },
    );
    if (!picked) return;
    const { name } = picked.server;
    await withoutServer(catalog, agent, name);
    void vscode.window.showInformationMessage(
      `“${agent.name}” has the MCP server “${name}” no more. Sessions that have started keep it; a login for it stays in its vault.`,
    );
  },
} satisfies Record<string, Handler>;

/** Throws `CatalogError`, also if the agent has been changed since. */
export const withServer = (catalog: Catalog, agent: Agent, server: McpServer): Promise<Agent> =>
  catalog.updateAgent(agent.id, {
    version: agent.version,
    mcp_servers: [...(agent.mcp_servers ?? []), server],
    tools: [...(agent.tools ?? []), { type: 'mcp_toolset', mcp_server_name: server.name }],
  });

export const withoutServer = (catalog: Catalog, agent: Agent, name: string): Promise<Agent> =>
  catalog.updateAgent(agent.id, {
    version: agent.version,
    mcp_servers: (agent.mcp_servers ?? []).filter((one) => one.name !== name),
    tools: (agent.tools ?? []).filter((tool) => tool.type !== 'mcp_toolset' || tool.mcp_server_name !== name),
  });

async function chooseAgent(
  catalog: Catalog,
  title: string,
  placeHolder: string,
  wanted: (agent: Agent) => boolean = () => true,
): Promise<Agent | undefined> {
  const there = catalog.agents().filter((agent) => agent.archived_at === null && wanted(agent));
  if (there.length === 0) {
    throw new Refusal('No agent of this folder has an MCP server.', [
      { title: 'Add MCP Server', command: 'drover.addMcpServer' },
    ]);
  }
  const picked = await vscode.window.showQuickPick(
    there.map((agent) => ({
      label: agent.name,
      description: (agent.mcp_servers ?? []).map(({ name }) => name).join(', '),
      detail: agent.description ?? '',
      agent,
    })),
    { title, placeHolder, ignoreFocusOut: true },
  );
  return picked?.agent;
}

async function askForServer(agent: Agent): Promise<McpServer | undefined> {
  const kinds = [
    {
      label: '$(globe) An address',
      detail: 'A server over HTTP. Drover speaks to it from outside the sandbox, with the login from your vaults.',
      type: 'url' as const,
    },
    {
      label: '$(terminal) A command',
      detail: 'A program that Drover starts inside the session’s sandbox, with placeholders for secrets.',
      type: 'stdio' as const,
    },
  ];
  const kind = await vscode.window.showQuickPick(kinds, {
    title: TITLE,
    placeHolder: 'What is it?',
    ignoreFocusOut: true,
  });
  if (!kind) return undefined;
  return kind.type === 'url' ? askForAddress(agent) : askForCommand(agent);
}

async function askForAddress(agent: Agent): Promise<McpServer | undefined> {
  const url = await ask({
    title: TITLE,
    prompt: 'Its address',
    placeHolder: 'https://mcp.example.com/mcp',
    problem: (typed) => problemOf(McpUrlServer, { type: 'url', name: 'x', url: typed }, ['url']),
  });
  const name = url && (await askForName(agent, (name) => ({ type: 'url', name, url }), nameOfHost(url)));
  return name ? { type: 'url', name, url } : undefined;
}

async function askForCommand(agent: Agent): Promise<McpServer | undefined> {
  const line = await ask({
    title: TITLE,
    prompt: `The command inside the sandbox. No shell reads it; \${NAME} is the placeholder of a credential of that name.`,
    placeHolder: 'npx -y @example/mcp-server --read-only',
    problem: (typed) => (splitWords(typed) ? undefined : 'A quote is not closed.'),
  });
  const [command, ...args] = (line && splitWords(line)) || [];
  if (!command) return undefined;
  const server = (name: string): McpServer => McpStdioServer.parse({ type: 'stdio', name, command, args });
  const suggested = command.split(/[\\/]/).at(-1) ?? '';
  const name = await askForName(agent, server, /^(npx|node|uvx|python3?)$/.test(suggested) ? '' : suggested);
  return name ? server(name) : undefined;
}

const askForName = (agent: Agent, server: (name: string) => McpServer, value: string): Promise<string | undefined> =>
  ask({
    title: TITLE,
    prompt: 'What it is called. The model and the approvals name its tools by it.',
    value,
    problem: (name) => {
      const entry = { type: 'mcp_toolset' as const, mcp_server_name: name };
      const made = McpServer.safeParse({ type: 'url', url: 'https://x.example', name });
      if (!made.success) return made.error.issues[0]?.message;
      const mcp_servers = [...(agent.mcp_servers ?? []), server(name)];
      if (mcp_servers.length > 20) return 'An agent has at most 20 MCP servers.';
      return agentProblem({ ...agent, mcp_servers, tools: [...(agent.tools ?? []), entry] });
    },
  });

/** `mcp.example.com` is called example. */
function nameOfHost(url: string): string {
  const { hostname } = new URL(url);
  if (/^[\d.]+$|^\[/.test(hostname)) return '';
  return hostname.split('.').filter((part) => !/^(mcp|api|www)$/.test(part))[0] ?? '';
}

const placeOf = (server: McpServer): string =>
  server.type === 'url' ? server.url : [server.command, ...(server.args ?? [])].join(' ');

/** As `offerLogin`; where that fails, the person is told that the server is there all the same. */
async function loginFor(app: App, project: Project, agent: Agent, server: McpUrlServer): Promise<string | undefined> {
  try {
    return await offerLogin(app, project, server);
  } catch (error) {
    if (!(error instanceof DroverError)) throw error;
    throw new Refusal(
      `“${agent.name}” has the MCP server “${server.name}” from now on, but there is no login for it yet. ${error.message}`,
      [{ title: 'Add Credential', command: 'drover.addCredential' }],
    );
  }
}

/** A login for a server that no vault of the folder has one for. Returns the name of the vault it is in. */
async function offerLogin(app: App, project: Project, { url }: McpUrlServer): Promise<string | undefined> {
  const { root } = project.store;
  const [vaults, logins] = await Promise.all([app.secrets.vaults(root), app.secrets.mcpLogins(root)]);
  const nameOf = (id: string) => vaults.vaults().find((vault) => vault.id === id)?.display_name;
  const known = logins.find(
    vaults.vaults().map(({ id }) => id),
    url,
  );
  if (known) return nameOf(known.vault_id);
  const login = await askForMcpLogin(url, 'It needs no login');
  if (!login || login === 'none') return undefined;
  const vault = await vaultForNew(vaults);
  if (!vault) return undefined;
  await vaults.addCredential(vault.id, login.definition, login.values);
  app.secrets.changed();
  return vault.display_name;
}
