import type { EventOf } from '../../src/protocol/event.ts';
import { isKnown } from '../../src/protocol/event.ts';
import type { EventId, ThreadId } from '../../src/protocol/ids.ts';
import type { Actor, Local, LogRecord } from '../../src/protocol/record.ts';
import { totalTokens } from '../../src/protocol/usage.ts';
import { callPhase } from '../../src/session/fold.ts';
import type { ModelRequest, Notice, SessionState, ThreadInput, ToolCall } from '../../src/session/state.ts';
import { ranMs } from '../conversation/call-card.ts';
import { bytes, clock, count, duration, moment, ms, usdExact } from '../format.ts';
import type { Store } from '../store.ts';
import { inSandbox, serverPlace, standing, summary, type Tone, toolIcon, toolName } from '../tool-look.ts';

/** Files of a checkpoint that its story names; the log names more of them. */
const FILES_TOLD = 20;

/** One line of an event's story. `thread` and `event` make it a way to another place. */
export interface Fact {
  label: string;
  value: string;
  tone?: Tone;
  thread?: ThreadId;
  event?: EventId;
}

export interface LeftOut {
  id: EventId;
  text: string;
}

/** The story of one event: what it was, who asked, who allowed it, where it ran, how it ended. */
export interface Story {
  icon: string;
  title: string;
  subtitle: string;
  facts: Fact[];
  /** What the context of a request left out. */
  leftOut: LeftOut[];
}

const VIA: Readonly<Record<Extract<Actor, { type: 'person' }>['via'], string>> = {
  panel: 'in this panel',
  sidebar: 'in the sidebar',
  notification: 'in a notification',
  command: 'by a command',
};

function actorWords(session: SessionState, actor: Actor | null): string {
  if (!actor) return 'a person';
  if (actor.type === 'person') return `you, ${VIA[actor.via]}`;
  if (actor.type === 'agent') return session.threads.get(actor.thread)?.agentName ?? 'an agent';
  return 'Drover';
}

const fact = (label: string, value: string | null | undefined, more: Partial<Fact> = {}): Fact[] =>
  value ? [{ label, value, ...more }] : [];

const threadName = (session: SessionState, id: ThreadId): string => session.threads.get(id)?.agentName ?? id;

/** Who or what decided that a call may run. */
function permissionFacts(session: SessionState, call: ToolCall, local: Local): Fact[] {
  const why = fact('Why', call.why);
  if (call.refused !== null) return [...fact('Refused', call.refused, { tone: 'bad' }), ...why];
  if (call.permission === 'allow') {
    const by = local.rule ? `a standing rule for ${local.rule.tool}` : 'the agent’s policy';
    return [...fact('Allowed by', by), ...why];
  }
  if (call.permission === 'deny') return [...fact('Denied by', 'the agent’s policy', { tone: 'warn' }), ...why];
  const given = call.confirmation;
  if (!given) return [...fact('Allowed by', 'nobody yet', { tone: 'warn' }), ...why];
  const who = `${actorWords(session, given.actor)}, at ${clock(given.at)}`;
  const rule = given.standing
    ? given.standing.input_sha256
      ? 'this very call'
      : `every ${given.standing.tool} call`
    : null;
  return [
    ...fact(given.result === 'allow' ? 'Allowed by' : 'Denied by', who),
    ...fact('Reason', given.denyMessage),
    ...fact('From now on', rule),
    ...why,
    ...fact('Waited', duration(ms(given.at) - ms(call.at))),
  ];
}

function placeWords(store: Store, session: SessionState, call: ToolCall): string | null {
  if (!call.execution) return null;
  const id = call.execution.sandbox;
  const sandbox = id ? session.sandboxes.get(id) : undefined;
  if (sandbox) {
    const gone = sandbox.state === 'ready' ? '' : `, ${sandbox.state} since`;
    return store.index.nameOf(sandbox) + gone;
  }
  const server = serverPlace(session, call);
  if (server) return server;
  return inSandbox(call.name) ? (id ?? 'a sandbox that is not known') : 'outside the sandbox, by Drover itself';
}

/** Where a thread acts in a sandbox that was made for another, both names stand. */
function ownerFacts(session: SessionState, call: ToolCall): Fact[] {
  const owner = call.execution?.owner;
  if (!call.execution?.sandbox || !owner) return [];
  const own = owner === call.thread ? ', its own' : '';
  return fact('Sandbox of', threadName(session, owner) + own, { thread: owner });
}

/** What a call did to the files, as far as checkpoints tell. */
function filesFacts(call: ToolCall): Fact[] {
  const files = call.checkpoints.reduce((sum, one) => sum + one.files, 0);
  const last = call.checkpoints.at(-1);
  if (!last) return [];
  return fact('Files', `${count(files, 'change')}, kept as ${last.commit.slice(0, 8)}`, { event: last.id });
}

function callStory(store: Store, session: SessionState, call: ToolCall, records: readonly LogRecord[]): Story {
  const phase = callPhase(session, call);
  const took = ranMs(call, store.now());
  const stand = standing(phase, call, took ?? 0, store.interrupted);
  const local = records[0]?.local ?? {};
  const exit = call.result?.exitCode;
  return {
    icon: toolIcon(call.name),
    title: toolName(call),
    subtitle: summary(call.name, call.input),
    leftOut: [],
    facts: [
      ...fact('Asked by', threadName(session, call.thread), { thread: call.thread }),
      ...fact('Asked at', moment(call.at)),
      ...fact('In the reply to', 'this model request', { event: call.request }),
      ...permissionFacts(session, call, local),
      ...fact('Ran in', placeWords(store, session, call)),
      ...ownerFacts(session, call),
      ...fact('Started', call.execution ? clock(call.execution.at) : null),
      ...fact('Took', took === null ? null : duration(took)),
      ...fact('Outcome', stand.words, { tone: stand.tone }),
      ...fact('Exit code', exit === null || exit === undefined ? null : String(exit)),
      ...fact('Real path', call.result?.realPath),
      ...filesFacts(call),
      ...fact('After a crash', call.recovered && `found ${call.recovered} in the sandbox`),
      ...fact('Subagent', call.child && threadName(session, call.child), call.child ? { thread: call.child } : {}),
    ],
  };
}

function find<T extends 'span.model_request_end' | 'drover.context_assembled'>(
  records: readonly LogRecord[],
  type: T,
): { event: EventOf<T>; local: Local } | null {
  for (const { event, local } of records) {
    if (isKnown(event) && event.type === type) return { event: event as EventOf<T>, local: local ?? {} };
  }
  return null;
}

function tokenFacts(request: ModelRequest): Fact[] {
  const usage = request.usage;
  if (!usage) return [];
  const n = (value: number) => value.toLocaleString();
  return [
    ...fact('Tokens', n(totalTokens(usage))),
    ...fact('new input', n(usage.input_tokens)),
    ...fact('from cache', n(usage.cache_read_input_tokens)),
    ...fact('into cache', n(usage.cache_creation_input_tokens)),
    ...fact('output', n(usage.output_tokens)),
  ];
}

function requestStory(
  store: Store,
  session: SessionState,
  request: ModelRequest,
  thread: ThreadId,
  records: readonly LogRecord[],
): Story {
  const end = find(records, 'span.model_request_end');
  const context = find(records, 'drover.context_assembled')?.event;
  const took = (request.endedAt === null ? store.now() : ms(request.endedAt)) - ms(request.at);
  const outcome = { open: 'still open', done: 'a reply', failed: 'failed: its reply does not count' }[request.state];
  const price = end?.local.price_table ? ` (prices of ${end.local.price_table})` : '';
  return {
    icon: 'sparkle',
    title: 'Model request',
    subtitle: request.model ?? '',
    facts: [
      ...fact('Asked by', threadName(session, thread), { thread }),
      ...fact('Sent at', moment(request.at)),
      ...fact('Took', duration(took)),
      ...fact('First text after', request.ttftMs === null ? null : duration(request.ttftMs)),
      ...fact('Outcome', outcome, request.state === 'failed' ? { tone: 'bad' } : {}),
      ...fact('Cause', request.cause),
      ...fact('Stop reason', request.stopReason),
      ...tokenFacts(request),
      ...fact('List cost', request.usage ? usdExact(request.costUsd) + price : null),
      ...fact('Request id', end?.local.request_id),
      ...fact(
        'Context',
        context &&
          `${context.messages} messages, about ${context.estimated_tokens.toLocaleString()} tokens, by “${context.strategy}”`,
      ),
      ...fact(
        'Left out',
        context && (context.left_out.length === 0 ? 'nothing' : `${count(context.left_out.length, 'result')}, below`),
      ),
    ],
    leftOut: (context?.left_out ?? []).map((one) => ({
      id: one.event_id,
      text: `${bytes(one.bytes)}, ${one.why}`,
    })),
  };
}

function inputStory(session: SessionState, input: ThreadInput): Story {
  const waited = input.processedAt === null ? null : ms(input.processedAt) - ms(input.at);
  return {
    icon: 'comment',
    title: 'Message',
    subtitle:
      input.from === 'person'
        ? 'from you'
        : `from ${input.fromThread ? threadName(session, input.fromThread) : 'a thread'}`,
    leftOut: [],
    facts: [
      ...fact('Sent at', moment(input.at)),
      ...fact('Read by the agent', input.processedAt === null ? 'not yet: it is queued' : moment(input.processedAt)),
      ...fact('Waited', waited === null || waited < 1 ? null : duration(waited)),
    ],
  };
}

function noticeStory(notice: Notice): Story {
  const what = notice.notice;
  const at = fact('At', moment(notice.at));
  if (what.kind === 'error') {
    return {
      icon: 'error',
      title: 'Error',
      subtitle: what.error.message,
      leftOut: [],
      facts: [
        ...at,
        ...fact('Type', what.error.type),
        ...fact('Cause', what.cause),
        ...fact('Then', what.error.retry_status.type),
        ...fact('Next attempt after', what.retryInMs === null ? null : duration(what.retryInMs)),
      ],
    };
  }
  const titles = {
    damaged: 'Damaged log',
    interrupted: 'Interrupt',
    sandbox: 'Sandbox',
    question: 'Question',
    secret: 'Secret taken out',
    mcp: 'MCP server',
    restored: 'Files put back',
    no_checkpoint: 'No checkpoint',
    forked: 'Fork',
  } as const;
  const text =
    'text' in what ? what.text : what.kind === 'damaged' ? what.reason : what.kind === 'mcp' ? what.server : '';
  return {
    icon: what.kind === 'sandbox' ? 'vm' : 'info',
    title: titles[what.kind],
    subtitle: text,
    facts: what.kind === 'mcp' ? [...at, ...mcpFacts(what)] : at,
    leftOut: [],
  };
}

const mcpFacts = (what: Extract<Notice['notice'], { kind: 'mcp' }>): Fact[] => [
  ...fact('Offers', count(what.tools, 'tool')),
  ...what.leftOut.flatMap((one) => fact('Not shown to the model', one)),
];

const WHY: Readonly<Record<EventOf<'drover.checkpoint'>['why'], string>> = {
  start: 'before any call',
  calls: 'after calls that changed files',
  person: 'changed by you, or another program',
  restore: 'after files were put back',
};

function checkpointStory(session: SessionState, of: EventOf<'drover.checkpoint'>, at: string): Story {
  const calls = of.tool_use_ids.flatMap((id) => session.calls.get(id) ?? []);
  const skipped = of.skipped.map((one) => `${one.path} (${bytes(one.bytes)}, ${one.why})`).join(', ');
  return {
    icon: 'save-all',
    title: 'Checkpoint',
    subtitle: WHY[of.why],
    leftOut: [],
    facts: [
      ...fact('At', moment(at)),
      ...calls.flatMap((call) => fact('After', `${call.name} ${summary(call.name, call.input)}`, { event: call.id })),
      ...fact('Files', of.parent === null ? null : count(of.files_changed, 'change')),
      ...of.files.slice(0, FILES_TOLD).flatMap((file) => fact(file.change, file.path)),
      ...fact('Left out', skipped && `${skipped}${of.skipped_count > of.skipped.length ? ', …' : ''}`),
      ...fact('Kept as', of.commit),
    ],
  };
}

/** Anything else: a message or thought of the agent, or an event this version has no words for. */
function plainStory(session: SessionState, record: LogRecord): Story {
  const reply = record.local?.reply;
  return {
    icon: 'symbol-event',
    title: record.event.type,
    subtitle: '',
    leftOut: [],
    facts: [
      ...fact(
        'In',
        record.thread ? threadName(session, record.thread) : 'the session itself',
        record.thread ? { thread: record.thread } : {},
      ),
      ...fact('At', moment(record.at)),
      ...fact('In the reply to', reply && 'this model request', reply ? { event: reply.span } : {}),
      ...fact('Block', reply && String(reply.index + 1)),
    ],
  };
}

/** The story of the event with this id, or null if there is no such event. */
export function storyOf(store: Store, session: SessionState, id: EventId): Story | null {
  const records = store.index.story(id);
  const call = session.calls.get(id);
  if (call) return callStory(store, session, call, records);
  const record = store.index.get(id);
  if (!record) return null;
  const thread = session.threads.get(record.thread ?? session.primary);
  const entry = thread?.entries.find((one) => one.id === id);
  if (thread && entry?.type === 'request') return requestStory(store, session, entry, thread.id, records);
  if (entry?.type === 'input') return inputStory(session, entry);
  if (entry?.type === 'notice') return noticeStory(entry);
  if (isKnown(record.event) && record.event.type === 'drover.checkpoint')
    return checkpointStory(session, record.event, record.at);
  return plainStory(session, record);
}
