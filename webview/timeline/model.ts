import type { EventId, ThreadId } from '../../src/protocol/ids.ts';
import type { ModelRequest, SessionState, ThreadState, ToolCall } from '../../src/session/state.ts';
import { count, ms } from '../format.ts';
import type { SandboxSpan } from '../records.ts';
import { summary, toolName } from '../tool-look.ts';

export type BarKind = 'model' | 'tool' | 'wait' | 'sandbox';

/** A stretch of time in which something happened. Times are ms since 1970 on the clock of the log. */
export interface Bar {
  key: string;
  /** The event whose story it is. */
  id: EventId;
  kind: BarKind;
  from: number;
  /** null while it goes on. */
  to: number | null;
  bad: boolean;
  /** In full, for the tooltip and for screen readers. */
  label: string;
  /** What is written on the bar: its colour says the rest. */
  short: string;
  /** Files were changed by it, and are kept as they were after it. */
  kept: boolean;
  /** Which row of its lane, from 0: what overlaps stands below each other. */
  row: number;
}

export interface Lane {
  key: string;
  name: string;
  thread: ThreadId | null;
  /** Ordered by their start. */
  bars: Bar[];
  rows: number;
}

/** Rows below each other in a lane for what runs at once; what would need more is drawn over the last one. */
const MAX_ROWS = 4;

const requestBar = (request: ModelRequest): Bar => ({
  key: `model ${request.id}`,
  id: request.id,
  kind: 'model',
  from: ms(request.at),
  to: request.endedAt === null ? null : ms(request.endedAt),
  bad: request.state === 'failed',
  label: `model request, ${request.model ?? 'model unknown'}`,
  short: (request.model ?? 'model').replace(/^claude-/, ''),
  kept: false,
  row: 0,
});

/** When the waiting for a person ended, however it ended; null while it goes on. */
function waitEnd(call: ToolCall): number | null {
  const at = call.confirmation?.at ?? call.execution?.at ?? call.result?.at;
  return at === undefined ? null : ms(at);
}

function callBars(call: ToolCall): Bar[] {
  const bars: Bar[] = [];
  const what = `${toolName(call)} ${summary(call.name, call.input)}`.trim();
  if (call.permission === 'ask') {
    const from = ms(call.at);
    const label = `waiting for a person, ${what}`;
    bars.push({
      key: `wait ${call.id}`,
      id: call.id,
      kind: 'wait',
      from,
      to: waitEnd(call),
      bad: false,
      label,
      short: what,
      kept: false,
      row: 0,
    });
  }
  if (call.execution) {
    const to = call.result ? ms(call.result.at) : null;
    const bad = call.result !== null && call.result.outcome !== 'ok';
    const from = ms(call.execution.at);
    const changes = call.checkpoints.reduce((sum, { files }) => sum + files, 0);
    const kept = call.checkpoints.length > 0;
    const label = kept ? `${what}, ${count(changes, 'change')} kept` : what;
    bars.push({ key: `tool ${call.id}`, id: call.id, kind: 'tool', from, to, bad, label, short: what, kept, row: 0 });
  }
  return bars;
}

/**
 * Gives each bar its row: requests the first, what the agent does and waits for the first free one below.
 * Returns how many rows that takes.
 */
function stack(bars: Bar[]): number {
  bars.sort((a, b) => a.from - b.from);
  const top = bars.some((bar) => bar.kind === 'model') ? 1 : 0;
  const ends: number[] = [];
  for (const bar of bars) {
    if (bar.kind === 'model') continue;
    let row = ends.findIndex((end) => end <= bar.from);
    if (row < 0) row = Math.min(ends.length, MAX_ROWS - 1);
    bar.row = top + row;
    ends[row] = Math.max(ends[row] ?? 0, bar.to ?? Number.POSITIVE_INFINITY);
  }
  return Math.max(1, top + ends.length);
}

function lane(key: string, name: string, thread: ThreadId | null, bars: Bar[]): Lane {
  return { key, name, thread, rows: stack(bars), bars };
}

function threadBars(session: SessionState, thread: ThreadState): Bar[] {
  const bars: Bar[] = [];
  for (const entry of thread.entries) {
    if (entry.type !== 'request') continue;
    bars.push(requestBar(entry));
    for (const block of entry.blocks) {
      const call = block.type === 'tool_use' ? session.calls.get(block.id) : undefined;
      if (call) bars.push(...callBars(call));
    }
  }
  return bars;
}

const sandboxBar = (span: SandboxSpan): Bar => ({
  key: `sandbox ${span.id}`,
  id: span.id,
  kind: 'sandbox',
  from: ms(span.from),
  to: span.to === null ? null : ms(span.to),
  bad: span.failed,
  label: `making a sandbox, ${span.text}`,
  short: span.text,
  kept: false,
  row: 0,
});

/** A lane per thread, in order of creation, and one for the sandbox if there was any. */
export function lanes(session: SessionState, sandboxes: readonly SandboxSpan[]): Lane[] {
  const result = [...session.threads.values()].map((thread) =>
    lane(thread.id, thread.agentName, thread.id, threadBars(session, thread)),
  );
  if (sandboxes.length > 0) result.push(lane('sandbox', 'sandbox', null, sandboxes.map(sandboxBar)));
  return result;
}
