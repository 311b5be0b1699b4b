import * as vscode from 'vscode';
import { DEFAULT_MODEL } from '../log/catalog.ts';
import { type Agent, modelId } from '../protocol/agent.ts';
import { text } from '../protocol/content.ts';
import type { AgentSnapshot } from '../protocol/drover-event.ts';
import type { Environment } from '../protocol/environment.ts';
import { definitionOf, environmentProblems } from '../protocol/environment-rules.ts';
import { mint, type SessionId, type VaultId } from '../protocol/ids.ts';
import { draft } from '../protocol/record.ts';
import { person } from './actions.ts';
import { withDevcontainer } from './pick-devcontainer.ts';
import type { Project } from './project.ts';
import { Refusal } from './refusal.ts';
import { settings } from './settings.ts';

/** Title of a session until it gets a better one, in characters. */
const TITLE_MAX = 60;

/** What a new session is made of. */
export interface NewSession {
  agent: AgentSnapshot;
  roster: AgentSnapshot[];
  environment: Environment;
  /** The first that has what is wanted counts. Absent = none. */
  vaults?: VaultId[];
  task: string;
  title?: string;
}

/**
 * Asks for agent, environment, vaults and task. Undefined if the person changed their mind.
 * @param chooseVaults asks for vaults, where there are any
 */
export async function askForSession(
  project: Project,
  chooseVaults: () => Promise<VaultId[] | undefined>,
): Promise<NewSession | undefined> {
  const catalog = await project.catalog();
  const agent = await chooseAgent(catalog.agents(), project);
  if (!agent) return undefined;
  const chosen = await chooseEnvironment(catalog.environments(), project);
  const environment = chosen && (await withDevcontainer(project, chosen));
  if (!environment) return undefined;
  needUsable(environment);
  const vaults = await chooseVaults();
  if (!vaults) return undefined;
  const task = await vscode.window.showInputBox({
    title: `Drover: what should ${agent.name} do?`,
    prompt: `It works in ${project.name}, ${where(environment)}.`,
    placeHolder: 'Fix the failing test and explain what was wrong',
    ignoreFocusOut: true,
    validateInput: (value) => (value.trim() ? undefined : 'Say in a sentence what you want done.'),
  });
  if (!task?.trim()) return undefined;
  return {
    agent: agentSnapshot(agent, project),
    roster: roster(agent, catalog.agents(), project),
    environment,
    vaults,
    task,
  };
}

/**
 * Makes the session with its first message waiting in the queue, durable when this resolves. Throws `Refusal` if the
 * folder can't be written to.
 */
export async function createSession(project: Project, wanted: NewSession): Promise<SessionId> {
  const id = mint.session();
  const primary = mint.thread();
  const task = wanted.task.trim();
  const drafts = [
    draft('drover.session_created', {
      session_id: id,
      primary_thread_id: primary,
      title: wanted.title ?? titleOf(task),
      agent: wanted.agent,
      roster: wanted.roster,
      environment: wanted.environment,
      vault_ids: wanted.vaults ?? [],
      rules: (await project.catalog()).rules(),
      strategy: settings(project.uri).contextStrategy,
    }),
    draft(
      'user.message',
      { content: [text(task)] },
      { thread: primary, queued: true, local: { actor: person('command') } },
    ),
  ];
  try {
    await project.store.create(id, drafts);
  } catch (error) {
    if (!isReadOnly(error)) throw error;
    throw new Refusal(
      `Drover can't write to ${project.path}, so it can't keep a session there and did not start one; make the folder writable, or open another.`,
    );
  }
  return id;
}

/** An agent as the session keeps it; one that leaves the model to the settings gets the one that is set now. */
export function agentSnapshot(agent: Agent, project: Project): AgentSnapshot {
  const { name, description, system, tools, mcp_servers, multiagent, metadata, id, version } = agent;
  const model = modelId(agent) === DEFAULT_MODEL ? settings(project.uri).model || DEFAULT_MODEL : agent.model;
  return {
    name,
    model,
    id,
    version,
    ...(description ? { description } : {}),
    ...(system ? { system } : {}),
    ...(tools ? { tools } : {}),
    ...(mcp_servers ? { mcp_servers } : {}),
    ...(multiagent ? { multiagent } : {}),
    ...(metadata ? { metadata } : {}),
  };
}

/** The agents a coordinator may start by name, as they are now. */
export function roster(agent: Agent, all: readonly Agent[], project: Project): AgentSnapshot[] {
  const named = (agent.multiagent?.agents ?? []).map((entry) => {
    if (typeof entry === 'string') return entry;
    return entry.type === 'agent' ? entry.id : undefined;
  });
  return all
    .filter((one) => named.includes(one.id) || named.includes(one.name))
    .map((one) => agentSnapshot(one, project));
}

async function chooseAgent(all: readonly Agent[], project: Project): Promise<Agent | undefined> {
  const there = all.filter((agent) => agent.archived_at === null);
  const wanted = settings(project.uri).defaultAgent;
  const preset = wanted ? there.find((agent) => agent.name === wanted || agent.id === wanted) : undefined;
  if (preset || there.length === 1) return preset ?? there[0];
  const missing = wanted ? ` (there is no “${wanted}” any more)` : '';
  const picked = await vscode.window.showQuickPick(
    there.map((agent) => ({
      label: agent.name,
      // Details are cut where they are long; this is seen whole.
      description: [modelId(agentSnapshot(agent, project)), servers(agent)].filter(Boolean).join(' · '),
      detail: agent.description ?? '',
      agent,
    })),
    { title: `Drover: which agent?${missing}`, ignoreFocusOut: true },
  );
  return picked?.agent;
}

const servers = ({ mcp_servers: all = [] }: Agent): string =>
  all.length > 0 ? `$(plug) ${all.map(({ name }) => name).join(', ')}` : '';

async function chooseEnvironment(all: readonly Environment[], project: Project): Promise<Environment | undefined> {
  const there = all.filter((environment) => environment.archived_at === null);
  const wanted = settings(project.uri).defaultEnvironment;
  const preset = wanted ? there.find((one) => one.name === wanted || one.id === wanted) : undefined;
  if (preset || there.length === 1) return preset ?? there[0];
  const picked = await vscode.window.showQuickPick(
    there.map((environment) => ({
      label: environment.name,
      description: recipe(environment),
      detail: environment.description ?? '',
      environment,
    })),
    { title: 'Drover: where should it work?', ignoreFocusOut: true },
  );
  return picked?.environment;
}

/** The catalog is a file that anyone may edit: what can't be kept must not be promised. */
function needUsable(environment: Environment): void {
  const problems = environmentProblems(definitionOf(environment), []);
  if (problems.length === 0) return;
  const words = problems.map(({ field, message }) => `${field}: ${message}`);
  throw new Refusal(`The environment “${environment.name}” can't be used as it is. ${words.join(' ')}`, [
    { title: 'Manage Environments', command: 'drover.manageEnvironments' },
  ]);
}

function where({ config, name, workspace }: Environment): string {
  if (config.type === 'host') return 'on this machine itself without a sandbox, and asks before each call';
  const on = workspace === 'isolated' ? 'on a copy of its own, ' : '';
  return `${on}in a sandbox of “${name}”, and asks before it changes anything`;
}

function recipe({ config }: Environment): string {
  if (config.type === 'image') return config.image;
  if (config.type === 'devcontainer') return config.path ?? 'devcontainer.json';
  return config.type === 'os' ? 'no container' : '$(warning) no sandbox: every call asks';
}

function titleOf(task: string): string {
  const line = task.split('\n', 1)[0] ?? task;
  return line.length > TITLE_MAX ? `${line.slice(0, TITLE_MAX - 1).trimEnd()}…` : line;
}

const READ_ONLY = new Set(['EACCES', 'EPERM', 'EROFS']);

/** True if the disk refused, whichever error wraps it. */
function isReadOnly(error: unknown): boolean {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    if ('code' in at && typeof at.code === 'string' && READ_ONLY.has(at.code)) return true;
  }
  return false;
}
