import { mcpToolConfig, type PermissionPolicy } from '../protocol/agent.ts';
import type { AgentSnapshot } from '../protocol/drover-event.ts';
import type { Evaluation, Permission } from '../protocol/event.ts';
import { type McpServer, mcpRuleTool } from '../protocol/mcp.ts';
import type { StandingRule } from '../protocol/record.ts';

/** The interface of `policy/`: may this call run, and why. */
export interface Policy {
  evaluate(question: Question): Verdict;
}

export interface Question {
  agent: AgentSnapshot;
  tool: string;
  /** Of a tool of an MCP server: whose, and its own name. */
  mcp?: { server: McpServer; tool: string } | undefined;
  input: Readonly<Record<string, unknown>>;
  /** SHA-256, hex, of the input as canonical JSON. */
  inputSha256: string;
  /** What a person has allowed from now on in this session. */
  standing: readonly StandingRule[];
  /** Threads of the session that have not ended, the asking one included. */
  livingThreads: number;
  /** The call would run on the machine itself, in no sandbox. */
  onHost?: boolean;
}

export interface Verdict {
  permission: Permission;
  evaluation: Evaluation;
  /** One sentence for people. */
  why: string;
  rule?: StandingRule;
}

/** Children that may be alive before a person is asked for each further one. */
export const FREE_CHILDREN = 3;
/** Children that may be alive at all; the limit of the hosted service. */
export const MAX_CHILDREN = 25;

/** Tools that only read the session's own log, or only speak to the harness. */
const HARMLESS = new Set(['get_events']);

/** The agent's own permission policies, what a person has allowed from now on, and the limits on delegation. */
export function createPolicy(): Policy {
  return { evaluate };
}

function evaluate(question: Question): Verdict {
  if (HARMLESS.has(question.tool)) return allow(`${question.tool} only reads this session's own log`);
  if (question.tool === 'create_agent') return delegation(question);
  // Whatever an agent or a rule allows was allowed for a sandbox.
  if (question.onHost && question.mcp?.server.type !== 'url')
    return ask(
      `its environment has no sandbox: ${question.tool} would act on this machine itself, with all that you may do on it`,
    );
  const rule = standingRule(question);
  if (rule) {
    const what = rule.input_sha256 ? 'exactly this call' : `every ${rule.tool} call`;
    return { ...allow(`a person allowed ${what} from now on in this session`), rule };
  }
  const [type, origin] = configured(question);
  if (type === 'always_allow')
    return allow(`agent "${question.agent.name}" always allows ${question.tool} (${origin})`);
  if (type === 'always_ask')
    return ask(`agent "${question.agent.name}" always asks before ${question.tool} (${origin})`);
  return {
    permission: 'ask',
    evaluation: { type: 'auto', evaluated_permission: { type: 'ask', reason_code: 'indeterminate' } },
    why: `agent "${question.agent.name}" leaves ${question.tool} to be judged, and no judge but you is set up`,
  };
}

const allow = (why: string): Verdict => ({ permission: 'allow', evaluation: { type: 'always_allow' }, why });
const ask = (why: string): Verdict => ({ permission: 'ask', evaluation: { type: 'always_ask' }, why });

/** Rules for one exact input must match it; a whole-tool rule never covers a shell, where any command is any act. */
function standingRule(question: Question): StandingRule | undefined {
  const tool = question.mcp ? mcpRuleTool(question.tool, question.mcp.server) : question.tool;
  return question.standing.find(
    (rule) =>
      rule.tool === tool &&
      (rule.input_sha256 === undefined ? tool !== 'bash' : rule.input_sha256 === question.inputSha256),
  );
}

function configured({ agent, tool, mcp }: Question): [PermissionPolicy['type'], string] {
  if (mcp) {
    const { policy, origin } = mcpToolConfig(agent, mcp.server.name, mcp.tool);
    return [policy, origin];
  }
  for (const set of agent.tools ?? []) {
    if (set.type !== 'agent_toolset_20260401') continue;
    const own = set.configs?.find((config) => config.name === tool)?.permission_policy;
    if (own) return [own.type, 'set for this tool'];
    const shared = set.default_config?.permission_policy;
    if (shared) return [shared.type, 'its default for all tools'];
  }
  // The public default of the built-in toolset.
  return ['always_allow', 'the default of the built-in tools'];
}

/** A few children are the model's own business; many are money, so a person decides; beyond the limit nobody can. */
function delegation(question: Question): Verdict {
  const children = question.livingThreads - 1;
  if (children >= MAX_CHILDREN) {
    const why = `this session already has ${children} subagents at work, and the limit is ${MAX_CHILDREN}`;
    return { permission: 'deny', evaluation: { type: 'always_ask' }, why };
  }
  if (children < FREE_CHILDREN) return allow(`up to ${FREE_CHILDREN} subagents at a time need no approval`);
  if (standingRule(question)) return allow('a person allowed further subagents from now on in this session');
  return ask(`this would be subagent ${children + 1} at work at the same time`);
}
