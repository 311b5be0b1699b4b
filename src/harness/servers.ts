import { isDeepStrictEqual } from 'node:util';
import { MAX_TOOLS, mcpToolConfig } from '../protocol/agent.ts';
import { text } from '../protocol/content.ts';
import type { ThreadId } from '../protocol/ids.ts';
import type { McpServer } from '../protocol/mcp.ts';
import { type Draft, draft } from '../protocol/record.ts';
import type { ThreadState } from '../session/state.ts';
import { McpFailed, type McpOffer, type McpUse, type ThreadTools } from '../tools/mcp.ts';
import type { Outcome, ToolContext } from '../tools/tools.ts';
import { acquire } from './acquire.ts';
import type { Awake } from './awake.ts';

/**
 * The MCP servers of one session while it is awake. What the model is shown of them is in the log, and which failed; here
 * is only which were found to be as the log has them in this turn. Who wakes later asks them once more.
 */
export class Servers {
  readonly #awake: Awake;
  readonly #asked = new Map<ThreadId, Set<string>>();

  constructor(awake: Awake) {
    this.#awake = awake;
  }

  /**
   * Before the model is asked: each server is asked what it offers, once in a turn and when it says that it has changed.
   * What is new goes into the log. The list stays as it is while a turn goes on otherwise, so that the request's beginning
   * stays the same and its cache holds; a server that failed is tried again with the next turn, since waiting for it
   * again and again would make each request slow.
   * @param newTurn somebody has said something
   */
  async ready(id: ThreadId, newTurn: boolean, signal: AbortSignal): Promise<void> {
    const { mcp } = this.#awake.deps;
    const servers = named(this.#awake.thread(id));
    if (!mcp || servers.length === 0) return;
    const asked = (!newTurn && this.#asked.get(id)) || new Set<string>();
    this.#asked.set(id, asked);
    const use = this.#use(id);
    const failed = new Set(this.#awake.thread(id).mcp.flatMap((one) => (one.failed ? [one.server] : [])));
    const due = servers.filter(
      (server) => !failed.has(server.name) && (!asked.has(server.name) || mcp.hasNews(use, server)),
    );
    const answers = await Promise.all(due.map((server) => this.#answer(use, server, signal)));
    if (signal.aborted) return;
    for (const [index, server] of due.entries()) {
      asked.add(server.name);
      const answer = answers[index];
      if (answer) await this.#tell(id, server, answer);
    }
  }

  async #answer(use: McpUse, server: McpServer, signal: AbortSignal): Promise<McpOffer | McpFailed | undefined> {
    const never = this.#neverStarted(server);
    if (never) return never;
    try {
      return await this.#awake.deps.mcp?.offer(use, server, signal);
    } catch (error) {
      if (signal.aborted || error instanceof McpFailed) return error instanceof McpFailed ? error : undefined;
      throw error;
    }
  }

  /** Whatever asks before it acts on this machine itself: a program that runs from the first message on can't. */
  #neverStarted(server: McpServer): McpFailed | undefined {
    const { config, lifetime } = this.#awake.state.environment;
    if (server.type === 'url' || (config.type !== 'host' && lifetime !== 'call')) return undefined;
    const why =
      config.type === 'host'
        ? 'its environment has no sandbox, and Drover starts no server’s program on this machine itself'
        : 'a sandbox of its environment lives for one call, and a server’s program has to stay';
    return new McpFailed('connection', `MCP server "${server.name}" is not started, because ${why}`);
  }

  async #tell(id: ThreadId, server: McpServer, answer: McpOffer | McpFailed): Promise<void> {
    if (answer instanceof McpFailed) return void (await this.#append([failure(id, server, answer)]));
    const thread = this.#awake.thread(id);
    const { tools, leftOut } = this.#fitting(thread, server, answer);
    const known = thread.mcp.find((one) => one.server === server.name);
    if (known && !known.failed && isDeepStrictEqual(known.tools, tools)) return;
    await this.#append([
      draft(
        'drover.mcp_tools_listed',
        {
          mcp_server_name: server.name,
          server: answer.server,
          tools,
          left_out: leftOut,
          ...(answer.executionId ? { execution_id: answer.executionId } : {}),
        },
        { thread: id },
      ),
    ]);
  }

  /** As many as an agent may have over all; names that another server's tools have already are not given twice. */
  #fitting(thread: ThreadState, server: McpServer, { tools, leftOut }: McpOffer): Pick<McpOffer, 'tools' | 'leftOut'> {
    const others = this.#awake
      .toolbox(thread)
      .specs()
      .filter((spec) => spec.mcp?.server.name !== server.name);
    const names = new Set(others.map((spec) => spec.name));
    let room = MAX_TOOLS - others.length;
    const left = [...leftOut];
    const fitting = tools.filter((tool) => {
      if (!mcpToolConfig(thread.agent, server.name, tool.name).enabled) return true;
      const why = names.has(tool.shown_as)
        ? 'another tool has its name'
        : room <= 0
          ? `an agent has at most ${MAX_TOOLS} tools`
          : undefined;
      if (why !== undefined) left.push({ name: tool.name, why });
      else room -= 1;
      return why === undefined;
    });
    return { tools: fitting, leftOut: left };
  }

  /** The tools of a thread's servers, as the log has them. */
  tools(thread: ThreadState): ThreadTools {
    return {
      listings: thread.mcp,
      call: (server, tool, input, context) => this.#call(thread, server, tool, input, context),
    };
  }

  /** A server that fails now is a matter of the log too: its tools are gone until it is asked again. */
  async #call(thread: ThreadState, name: string, tool: string, input: object, context: ToolContext): Promise<Outcome> {
    const { mcp } = this.#awake.deps;
    const server = named(thread).find((one) => one.name === name);
    if (!mcp || !server) return { kind: 'failed', content: [text(`There is no MCP server "${name}".`)] };
    try {
      return await mcp.call(this.#use(thread.id), server, tool, input, context);
    } catch (error) {
      if (!(error instanceof McpFailed)) throw error;
      await this.#append([failure(thread.id, server, error)]);
      return { kind: 'failed', content: [text(`${error.message.replace(/\.$/, '')}. The call did not run.`)] };
    }
  }

  #use(thread: ThreadId): McpUse {
    const awake = this.#awake;
    return {
      session: awake.id,
      thread,
      vaultIds: awake.state.vaultIds,
      // Not the call's own: that may be the one the server was lost with.
      sandbox: (signal) => acquire(awake, thread, signal),
      release: (sandbox) => awake.deps.sandboxes.release(awake.owner, sandbox.id),
      record: (drafts) => this.#append(drafts.map((one) => ({ ...one, thread }))),
    };
  }

  /** Made durable by what follows: a request, or a call's result. */
  async #append(drafts: Draft[]): Promise<void> {
    await this.#awake.append(drafts, { sync: false });
  }
}

/** The servers that the agent's toolsets name, in the order of the toolsets. */
function named({ agent }: ThreadState): McpServer[] {
  const toolsets = agent.tools?.filter((tool) => tool.type === 'mcp_toolset') ?? [];
  return toolsets.flatMap(({ mcp_server_name: name }) => agent.mcp_servers?.find((one) => one.name === name) ?? []);
}

const failure = (thread: ThreadId, server: McpServer, { reason, message }: McpFailed): Draft =>
  draft(
    'session.error',
    {
      error: {
        type: reason === 'authentication' ? 'mcp_authentication_failed_error' : 'mcp_connection_failed_error',
        message: `${message.replace(/\.$/, '')}${message.includes('\n') ? '\nThe' : '; the'} session goes on without its tools.`,
        retry_status: { type: 'retrying' },
        mcp_server_name: server.name,
      },
    },
    { thread },
  );
