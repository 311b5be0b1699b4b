import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentSnapshot } from '../protocol/drover-event.ts';
import type { CredentialId, ExecutionId } from '../protocol/ids.ts';
import { draft } from '../protocol/record.ts';
import type { Question, SessionState, ToolCall } from '../session/state.ts';
import type { EgressOwner, HostWanted, Tripped } from '../vault/egress.ts';
import type { Awake } from './awake.ts';

/** How long a connection waits for a person, in ms. Most programs give up earlier; then the answer is for the next try. */
const PATIENCE_MS = 10 * 60_000;
const LOOK_EVERY_MS = 100;

/** What a session says to its sandbox's way out, and what it is told by it. */
export function egressOwner(awake: Awake): EgressOwner {
  return {
    vaultIds: awake.state.vaultIds,
    get mcpHosts() {
      return mcpHosts([awake.state.agent, ...awake.state.roster]);
    },
    onTripped: (what) => void tellTripped(awake, what).catch(() => undefined),
    ask: (wanted) => ask(awake, wanted).catch(() => false),
  };
}

/** Where agents' servers are that are spoken to over HTTP, as network settings name hosts: with a port that is not the usual one. */
export function mcpHosts(agents: readonly Pick<AgentSnapshot, 'mcp_servers'>[]): string[] {
  const servers = agents.flatMap((agent) => agent.mcp_servers ?? []);
  const hosts = servers.flatMap((server) => (server.type === 'url' ? [new URL(server.url).host] : []));
  return [...new Set(hosts)];
}

/** The session pauses until a person has looked at it. One open question per credential and host is enough. */
async function tellTripped(awake: Awake, what: Tripped): Promise<void> {
  const call = callOf(awake.state, what.execution);
  const same = awake.state.questions.some(
    (one) => one.kind === 'canary' && !one.answer && one.credential === what.credentialId && isFor(one, what),
  );
  if (same) return;
  const place = what.where === 'body' ? 'the body of a request' : `the ${what.where} of a request`;
  const whose = what.credentialId ? "a credential's placeholder" : 'a placeholder of another session';
  await awake.append([
    draft(
      'drover.question',
      {
        kind: 'canary',
        text: `${doer(call)} tried to send ${whose} to ${what.host}:${what.port}, where it does not belong (in ${place}). The request was refused, and no secret left. Allow lets the session go on; Deny stops it.`,
        call: call?.id ?? null,
        credential_id: what.credentialId as CredentialId | null,
        host: what.host,
        port: what.port,
      },
      call ? { thread: call.thread } : {},
    ),
  ]);
}

/** An answer that was given for the session, or a no to the same call, is not asked for again. */
async function ask(awake: Awake, wanted: HostWanted): Promise<boolean> {
  const call = callOf(awake.state, wanted.execution);
  const known = standingAnswer(awake.state, wanted, call);
  if (known !== undefined) return known;
  const open = awake.state.questions.find((one) => one.kind === 'host' && !one.answer && isFor(one, wanted));
  if (open) return await answered(awake, open.id);
  const [record] = await awake.append([
    draft(
      'drover.question',
      {
        kind: 'host',
        text: `${doer(call)} wants to reach ${wanted.host}:${wanted.port}, which this environment's network settings do not name.`,
        call: call?.id ?? null,
        host: wanted.host,
        port: wanted.port,
      },
      call ? { thread: call.thread } : {},
    ),
  ]);
  return record ? await answered(awake, record.event.id) : false;
}

function standingAnswer(state: SessionState, wanted: HostWanted, call: ToolCall | undefined): boolean | undefined {
  const before = state.questions.filter((one) => one.kind === 'host' && isFor(one, wanted));
  for (const { answer, call: asked } of before.reverse()) {
    if (answer && (answer.scope !== 'once' || (answer.result === 'deny' && asked === (call?.id ?? null))))
      return answer.result === 'allow';
  }
  return undefined;
}

async function answered(awake: Awake, id: Question['id']): Promise<boolean> {
  for (const until = Date.now() + PATIENCE_MS; Date.now() < until && !awake.stopped; ) {
    const question = awake.state.questions.find((one) => one.id === id);
    if (question?.answer) return question.answer.result === 'allow';
    if (question?.call && awake.state.calls.get(question.call)?.result) return false;
    await sleep(LOOK_EVERY_MS, undefined, { ref: false });
  }
  return false;
}

const isFor = (question: Question, { host, port }: { host: string; port: number }): boolean =>
  question.host?.name === host && question.host.port === port;

function callOf(state: SessionState, execution: ExecutionId | undefined): ToolCall | undefined {
  if (!execution) return undefined;
  return [...state.calls.values()].findLast((call) => call.execution?.id === execution);
}

function doer(call: ToolCall | undefined): string {
  if (!call) return 'Something in the sandbox';
  const command =
    typeof call.input.command === 'string' ? call.input.command.trim().replaceAll(/\s+/g, ' ') : call.name;
  return `“${command.length > 60 ? `${command.slice(0, 59)}…` : command}”`;
}
