import type { AgentToolset } from '../protocol/agent.ts';
import type { AgentSnapshot } from '../protocol/drover-event.ts';
import type { SandboxLifetime, WorkspaceMode } from '../protocol/environment.ts';
import { bash } from './bash.ts';
import { createAgentTool } from './delegation.ts';
import { type Desk, noDesk } from './desk.ts';
import { edit } from './edit.ts';
import { Refused } from './files.ts';
import { glob } from './glob.ts';
import { grep } from './grep.ts';
import { mcpTools } from './mcp/toolset.ts';
import type { ThreadTools } from './mcp.ts';
import { failed, outcomeOfError } from './outcomes.ts';
import { describedFor } from './per-call.ts';
import { read } from './read.ts';
import { getEvents } from './recall.ts';
import { problemOf } from './schemas.ts';
import { type AnyTool, erased } from './tool.ts';
import type { Outcome, Recovery, Toolbox, ToolContext, ToolSpec } from './tools.ts';
import { write } from './write.ts';

/** The toolset `agent_toolset_20260401` as far as it runs in a sandbox, in the order the model is shown it. */
const TOOLSET: readonly AnyTool[] = [
  erased(bash),
  erased(read),
  erased(write),
  erased(edit),
  erased(glob),
  erased(grep),
];

export interface ToolboxOptions {
  agent: AgentSnapshot;
  /** The other agents it may start by name. */
  roster: readonly AgentSnapshot[];
  /** 0 for the primary thread; a child starts no children. */
  depth: number;
  /** How long the sandbox of its calls lives. Default: as long as the session. */
  lifetime?: SandboxLifetime;
  /** Whose files they work on. Default: the person's own. */
  workspace?: WorkspaceMode;
  /** The tools of the agent's MCP servers, as far as they are known. */
  mcp?: ThreadTools | undefined;
  /** Default: nobody has an editor open. */
  desk?: Desk;
}

/**
 * The tools of one agent: what its toolset enables, recall, at depth 0, if it is a coordinator, delegation, and last
 * those of its MCP servers: their lists may change, and what stands before a change stays in the model's cache.
 */
export function createToolbox(options: ToolboxOptions): Toolbox {
  const { agent, roster, depth, lifetime = 'session', workspace = 'bind', desk = noDesk } = options;
  const enabledTools = TOOLSET.filter((tool) => enabled(agent, tool.spec.name));
  const tools = enabledTools.map((tool) => describedFor(tool, lifetime));
  tools.push(erased(getEvents));
  if (depth === 0 && agent.multiagent) tools.push(erased(createAgentTool(roster)));
  if (options.mcp) tools.push(...mcpTools(agent, options.mcp));
  return new AgentToolbox(tools, workspace === 'bind' ? desk : { ...desk, unsaved: noDesk.unsaved });
}

/** An agent without `tools` has all of the toolset; one with `tools` has it only if they name it. */
function enabled(agent: AgentSnapshot, name: string): boolean {
  if (agent.tools === undefined) return true;
  return agent.tools
    .filter((tool): tool is AgentToolset => tool.type === 'agent_toolset_20260401')
    .some((toolset) => {
      const own = toolset.configs?.find((config) => config.name === name)?.enabled;
      return own ?? toolset.default_config?.enabled ?? true;
    });
}

class AgentToolbox implements Toolbox {
  readonly #tools: ReadonlyMap<string, AnyTool>;
  readonly #desk: Desk;

  constructor(tools: readonly AnyTool[], desk: Desk) {
    this.#desk = desk;
    this.#tools = new Map(tools.map((tool) => [tool.spec.name, tool]));
  }

  specs(): readonly ToolSpec[] {
    return [...this.#tools.values()].map((tool) => tool.spec);
  }

  find(name: string): ToolSpec | undefined {
    return this.#tools.get(name)?.spec;
  }

  inputProblem(name: string, input: unknown): string | undefined {
    const tool = this.#tools.get(name);
    return tool ? problemOf(tool.schema, name, input) : this.#unknown(name);
  }

  async execute(name: string, input: Readonly<Record<string, unknown>>, context: ToolContext): Promise<Outcome> {
    const tool = this.#tools.get(name);
    if (!tool) return failed(this.#unknown(name));
    const problem = problemOf(tool.schema, name, input);
    if (problem) return failed(problem);
    const from = performance.now();
    const outcome = await this.#settled(tool, context, () => tool.execute(input, { ...context, desk: this.#desk }));
    return { durationMs: Math.round(performance.now() - from), ...outcome };
  }

  async recover(name: string, input: Readonly<Record<string, unknown>>, context: ToolContext): Promise<Recovery> {
    const tool = this.#tools.get(name);
    // A tool without a way to look back is either harmless to repeat or leaves nothing to find.
    if (!tool?.recover || problemOf(tool.schema, name, input)) return { found: 'absent' };
    try {
      const recovery = await tool.recover(input, { ...context, desk: this.#desk });
      if (recovery.found === 'absent') return recovery;
      const { outcome } = recovery;
      return { found: recovery.found, outcome: this.#settled(tool, context, () => outcome) };
    } catch {
      // The sandbox that would know is gone or can't be asked.
      return { found: 'absent' };
    }
  }

  /** Whatever a tool throws is an outcome too. */
  async #settled(tool: AnyTool, context: ToolContext, act: () => Promise<Outcome>): Promise<Outcome> {
    try {
      return await act();
    } catch (error) {
      if (error instanceof Refused) return error.outcome;
      return outcomeOfError(error, context.signal, tool.changes);
    }
  }

  #unknown(name: string): string {
    return `There is no tool "${name}". Use one of: ${[...this.#tools.keys()].join(', ')}.`;
  }
}
