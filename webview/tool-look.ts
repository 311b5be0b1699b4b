import type { EventId } from '../src/protocol/ids.ts';
import type { OutcomeKind } from '../src/protocol/record.ts';
import type { CallPhase } from '../src/session/fold.ts';
import type { CallResult, SessionState, ToolCall } from '../src/session/state.ts';
import { count, duration, firstLine } from './format.ts';
import { visible } from './visible.ts';

/*
 * How a tool call looks in words. Tools are known by name only: one that is not known here is shown with its input.
 */

type Input = Readonly<Record<string, unknown>>;

const ICONS: Readonly<Record<string, string>> = {
  bash: 'terminal',
  read: 'eye',
  write: 'new-file',
  edit: 'edit',
  glob: 'files',
  grep: 'search',
  create_agent: 'agent',
  get_events: 'history',
};

const SANDBOXED = new Set(['bash', 'read', 'write', 'edit', 'glob', 'grep']);

export const toolIcon = (name: string): string => ICONS[name] ?? (name.startsWith('mcp__') ? 'plug' : 'tools');

/** What people call a call's tool: a server's by the server and its own name. */
export const toolName = (call: Pick<ToolCall, 'name' | 'mcp'>): string =>
  call.mcp ? visible(`${call.mcp.server}: ${call.mcp.tool}`) : call.name;

/** Where a call of a server's tool runs; null if that is in the sandbox, or it is of no server. */
export function serverPlace(session: SessionState, call: Pick<ToolCall, 'thread' | 'mcp'>): string | null {
  const servers = session.threads.get(call.thread)?.agent.mcp_servers;
  const server = servers?.find((one) => one.name === call.mcp?.server);
  return server?.type === 'url' ? `at the MCP server ${server.name} (${new URL(server.url).host})` : null;
}

/** True if the tool acts inside the sandbox, as a server's program does; false for those the harness answers by itself. */
export const inSandbox = (name: string): boolean => SANDBOXED.has(name) || name.startsWith('mcp__');

/** A field as text, or '' if it is absent or no string. */
export const field = (input: Input, name: string): string => {
  const value = input[name];
  return typeof value === 'string' ? value : '';
};

function range(input: Input): string {
  const lines = input.view_range;
  if (!Array.isArray(lines) || typeof lines[0] !== 'number') return '';
  const last = typeof lines[1] === 'number' && lines[1] > 0 ? String(lines[1]) : '';
  return `:${lines[0]}–${last}`;
}

function search(input: Input): string {
  const path = field(input, 'path');
  return field(input, 'pattern') + (path ? `  in ${path}` : '');
}

/** What a `create_agent` call is called, and which agent it starts if that is not another of the asking one. */
function childName(input: Input): string {
  const agent = field(input, 'agent');
  return `${field(input, 'title') || 'a subagent'}${agent ? ` (${agent})` : ''}`;
}

/** What a call would do, one line. */
export const summary = (name: string, input: Input): string => visible(rawSummary(name, input));

function rawSummary(name: string, input: Input): string {
  switch (name) {
    case 'bash':
      return input.restart === true ? 'restart the shell' : firstLine(field(input, 'command'));
    case 'read':
      return field(input, 'file_path') + range(input);
    case 'write':
      return `${field(input, 'file_path')}  ${count(field(input, 'content').split('\n').length, 'line')}`;
    case 'edit':
      return field(input, 'file_path');
    case 'glob':
    case 'grep':
      return search(input);
    case 'create_agent':
      return `${childName(input)}: ${firstLine(field(input, 'task'))}`;
    default:
      return Object.keys(input).length === 0 ? '' : firstLine(JSON.stringify(input));
  }
}

/** What a call asks to do, as a clause after the asking agent's name. Read aloud and shown on the approval card. */
export function asks(call: Pick<ToolCall, 'name' | 'input'> & { mcp?: ToolCall['mcp'] }): string {
  if (call.mcp) return `wants to use ${visible(call.mcp.tool)} of the MCP server ${visible(call.mcp.server)}`;
  const path = visible(field(call.input, 'file_path'));
  switch (call.name) {
    case 'bash':
      return call.input.restart === true ? 'wants to restart its shell' : 'wants to run a command';
    case 'write':
      return `wants to write ${path}`;
    case 'edit':
      return `wants to edit ${path}`;
    case 'read':
      return `wants to read ${path}`;
    case 'create_agent':
      return `wants to start a subagent: ${visible(childName(call.input))}`;
    case 'tripwire':
      return 'touched a tripwire';
    case 'network':
      return 'wants to reach a host';
    default:
      return `wants to use ${call.name}`;
  }
}

/** What "from now on" covers, in full. A shell command is only ever allowed as it stands. */
export const standingScope = (name: string): string =>
  name === 'bash'
    ? 'Runs this very command without asking again, in this session. Any other command still asks.'
    : `Runs every ${name} call without asking again, in this session, whatever its input.`;

export type Tone = 'ok' | 'bad' | 'warn' | 'busy' | 'quiet';

/** Where a call stands, for the right end of its row. */
export interface Standing {
  words: string;
  icon: string;
  tone: Tone;
}

const OUTCOMES: Readonly<Record<Exclude<OutcomeKind, 'failed'>, Standing>> = {
  ok: { words: 'done', icon: 'check', tone: 'ok' },
  timed_out: { words: 'timed out', icon: 'watch', tone: 'bad' },
  cancelled: { words: 'cancelled', icon: 'circle-slash', tone: 'quiet' },
  denied: { words: 'denied', icon: 'circle-slash', tone: 'warn' },
  lost: { words: 'lost: the sandbox died under it', icon: 'debug-disconnect', tone: 'bad' },
  unknown: { words: 'unknown: it may or may not have happened', icon: 'question', tone: 'warn' },
};

/** What became of a call, in words. */
export function outcomeStanding(result: CallResult): Standing {
  if (result.outcome !== 'failed') return OUTCOMES[result.outcome];
  const words = result.exitCode !== null && result.exitCode !== 0 ? `exit ${result.exitCode}` : 'failed';
  return { words, icon: 'error', tone: 'bad' };
}

/**
 * @param ranMs how long it has been running.
 * @param left nobody works on the session any more.
 */
export function standing(phase: CallPhase, call: ToolCall, ranMs: number, left: boolean): Standing {
  if (call.result) return outcomeStanding(call.result);
  switch (phase) {
    case 'asking':
      return { words: 'waits for you', icon: 'bell-dot', tone: 'warn' };
    case 'approved':
      return { words: 'allowed, about to start', icon: 'clock', tone: 'quiet' };
    case 'denied':
      return { words: 'denied', icon: 'circle-slash', tone: 'warn' };
    case 'refused':
      return { words: 'refused', icon: 'error', tone: 'bad' };
    case 'running':
      if (left) return { words: 'was running at the last event', icon: 'debug-disconnect', tone: 'warn' };
      return { words: ranMs < 1000 ? 'running' : `running, ${duration(ranMs)}`, icon: 'loading', tone: 'busy' };
    case 'void':
      return { words: 'never started: its reply was cut off', icon: 'circle-slash', tone: 'quiet' };
    case 'done':
      return { words: 'done', icon: 'check', tone: 'ok' };
  }
}

/** A key for what the person opened: the same call can be opened in two places. */
export const outputKey = (call: EventId): string => `output ${call}`;
