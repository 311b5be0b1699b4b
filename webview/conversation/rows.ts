import type { ContentBlock } from '../../src/protocol/content.ts';
import type { EventId, ThreadId } from '../../src/protocol/ids.ts';
import { callPhase } from '../../src/session/fold.ts';
import type {
  ModelRequest,
  Notice,
  SessionState,
  ThreadInput,
  ThreadState,
  ToolCall,
} from '../../src/session/state.ts';
import type { LiveBlock, Previews } from '../previews.ts';

/** One line of the conversation's list. `key` is the id of the event whose story it shows. */
export type Row =
  | { kind: 'start'; key: string }
  | { kind: 'input'; key: EventId; input: ThreadInput; queued: boolean }
  | { kind: 'message'; key: EventId; content: ContentBlock[]; counted: boolean }
  | { kind: 'thinking'; key: EventId; text: string }
  | { kind: 'call'; key: EventId; call: ToolCall /** a child's, shown to its parent */; foreign: boolean }
  | { kind: 'notice'; key: EventId; notice: Notice }
  | { kind: 'live'; key: EventId; block: LiveBlock }
  | { kind: 'waiting'; key: string; request: ModelRequest };

function thinkingText(raw: unknown): string {
  if (typeof raw !== 'object' || raw === null) return '';
  return 'thinking' in raw && typeof raw.thinking === 'string' ? raw.thinking : '';
}

/** Calls of other threads that a person was asked about: the primary's conversation shows them too. */
function foreignAsks(session: SessionState, primary: ThreadId): ToolCall[] {
  const asks: ToolCall[] = [];
  for (const call of session.calls.values()) {
    if (call.thread !== primary && call.permission === 'ask' && callPhase(session, call) !== 'void') asks.push(call);
  }
  return asks;
}

function requestRows(session: SessionState, request: ModelRequest, live: readonly LiveBlock[], rows: Row[]): void {
  const counted = request.state !== 'failed';
  if (request.state === 'open') {
    for (const block of live) if (block.request === request.id) rows.push({ kind: 'live', key: block.id, block });
    if (live.length === 0) rows.push({ kind: 'waiting', key: `waiting ${request.id}`, request });
    return;
  }
  for (const block of request.blocks) {
    if (block.type === 'message') rows.push({ kind: 'message', key: block.id, content: block.content, counted });
    else if (block.type === 'thinking') rows.push({ kind: 'thinking', key: block.id, text: thinkingText(block.raw) });
    else {
      const call = session.calls.get(block.id);
      if (call) rows.push({ kind: 'call', key: call.id, call, foreign: false });
    }
  }
}

/**
 * A sandbox that was removed because all is over is not worth a line; one that is missing in the middle is. Where each
 * call has its own, their coming and going is no news either.
 */
function worthALine({ notice }: Notice, session: SessionState): boolean {
  if (notice.kind !== 'sandbox') return true;
  if (session.environment.lifetime === 'call') return notice.state === 'failed' || notice.state === 'lost';
  return notice.state !== 'removed';
}

/**
 * The rows of a thread's conversation, oldest first; what still waits in the queue comes last.
 * Cheap enough to be made anew for each frame: a few small objects per event.
 */
export function conversationRows(session: SessionState, thread: ThreadState, previews: Previews): Row[] {
  const rows: Row[] = [{ kind: 'start', key: `start ${thread.id}` }];
  const queued: Row[] = [];
  const live = previews.blocks(thread.id);
  const asks = thread.id === session.primary ? foreignAsks(session, thread.id) : [];
  let nextAsk = 0;
  for (const entry of thread.entries) {
    // An input keeps the seq it was typed at when it takes its place, so it says nothing about where others belong.
    while (entry.type !== 'input' && (asks[nextAsk]?.seq ?? Number.POSITIVE_INFINITY) < entry.seq) {
      pushAsk(asks[nextAsk++], rows);
    }
    if (entry.type === 'request') requestRows(session, entry, live, rows);
    else if (entry.type === 'notice') {
      if (worthALine(entry, session)) rows.push({ kind: 'notice', key: entry.id, notice: entry });
    } else (entry.processedAt === null ? queued : rows).push(inputRow(entry));
  }
  while (nextAsk < asks.length) pushAsk(asks[nextAsk++], rows);
  return [...rows, ...queued];
}

const inputRow = (input: ThreadInput): Row => ({
  kind: 'input',
  key: input.id,
  input,
  queued: input.processedAt === null,
});

function pushAsk(call: ToolCall | undefined, rows: Row[]): void {
  if (call) rows.push({ kind: 'call', key: call.id, call, foreign: true });
}

/** A first guess of a row's height in CSS px; the real one is measured when the row is drawn. */
export function estimateHeight(row: Row, session: SessionState): number {
  const textHeight = (length: number) => 30 + Math.ceil(length / 90) * 20;
  switch (row.kind) {
    case 'start':
      return 56;
    case 'input':
      return textHeight(lengthOf(row.input.content)) + 22;
    case 'message':
      return textHeight(lengthOf(row.content));
    case 'live':
      return textHeight(row.block.text.length);
    case 'call':
      return callPhase(session, row.call) === 'asking' ? 220 : 34;
    case 'thinking':
    case 'notice':
    case 'waiting':
      return 30;
  }
}

const lengthOf = (content: readonly ContentBlock[]): number =>
  content.reduce((sum, block) => sum + (block.type === 'text' ? block.text.length : 40), 0);
