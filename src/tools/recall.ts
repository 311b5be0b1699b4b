import type { LogRecord } from '../protocol/record.ts';
import { failed, ok } from './outcomes.ts';
import { GetEventsInput, inputSchema } from './schemas.ts';
import { terminalText } from './terminal-text.ts';
import type { Tool } from './tool.ts';

/** Characters: about a quarter of what a model may take in at once. */
const SHOWN = 200 * 1024;
const MAX_RANGE = 200;

export const getEvents: Tool<typeof GetEventsInput> = {
  spec: {
    name: 'get_events',
    description: `Gives back events of this session's log, whole: what was left out of the conversation or shortened to a line that names an event id. Give event_ids, or a range of positions (from_seq to to_seq, at most ${MAX_RANGE}).`,
    input_schema: inputSchema(GetEventsInput),
    idempotent: true,
    sandboxed: false,
    summary: (input) =>
      Array.isArray(input.event_ids)
        ? `Recall ${input.event_ids.length} event${input.event_ids.length === 1 ? '' : 's'}`
        : `Recall events ${Number(input.from_seq ?? 0)}–${input.to_seq === undefined ? '…' : Number(input.to_seq)}`,
  },
  schema: GetEventsInput,
  changes: false,

  async execute(input, context) {
    const { event_ids: ids, from_seq: from, to_seq: to } = input;
    if (ids === undefined && from === undefined && to === undefined)
      return failed('Say which events: event_ids, or from_seq and to_seq.');
    const first = from ?? 0;
    if (ids === undefined && to !== undefined && to < first) return failed('to_seq is before from_seq.');
    const range = { from: first, to: Math.min(to ?? first + MAX_RANGE - 1, first + MAX_RANGE - 1) };
    const records = await context.readLog(ids === undefined ? { ...range, full: true } : { ids, full: true });
    if (records.length === 0) return ok('There is no such event in this session.');
    return ok([render(records), missing(records, ids)].filter(Boolean).join('\n'));
  },
};

/** One JSON object a line, in the order of the log; what passes the cap is named, not dropped in silence. */
function render(records: readonly LogRecord[]): string {
  const lines: string[] = [];
  let size = 0;
  for (const [i, record] of records.entries()) {
    const line = JSON.stringify({ seq: record.seq, at: record.at, thread: record.thread, ...uncoloured(record.event) });
    if (size + line.length > SHOWN) {
      const room = SHOWN - size;
      if (i === 0) lines.push(`${line.slice(0, room)} [… ${line.length - room} more characters of this event]`);
      const left = records.slice(i === 0 ? 1 : i).map((one) => one.event.id);
      if (left.length > 0) lines.push(`[Too much to give at once. Ask again for: ${left.slice(0, 50).join(', ')}]`);
      break;
    }
    lines.push(line);
    size += line.length + 1;
  }
  return lines.join('\n');
}

/** Output is kept as a terminal gets it; a model reads what a terminal shows. */
function uncoloured(event: LogRecord['event']): object {
  if (!/^agent\.(mcp_)?tool_result$/.test(event.type) || !('content' in event) || !Array.isArray(event.content))
    return event;
  const plain = event.content.map((block) =>
    block.type === 'text' ? { ...block, text: terminalText(block.text) } : block,
  );
  return { ...event, content: plain };
}

function missing(records: readonly LogRecord[], ids: readonly string[] | undefined): string {
  const there = new Set<string>(records.map((record) => record.event.id));
  const absent = (ids ?? []).filter((id) => !there.has(id));
  return absent.length > 0 ? `[Not in this session: ${absent.join(', ')}]` : '';
}
