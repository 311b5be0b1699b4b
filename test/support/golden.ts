import type { LogRecord } from '../../src/protocol/record.ts';

/** Figures that differ from run to run. */
const UNSTABLE = new Set(['duration_ms', 'ttft_ms', 'request_id', 'active_seconds', 'pid', 'host', 'retry_in_ms']);
/** Figures that follow from how long the system prompt and the tools' descriptions are. */
const OF_PROMPT = new Set([
  'estimated_tokens',
  'cache_creation_input_tokens',
  'ephemeral_5m_input_tokens',
  'cost_usd',
  'amount_usd',
]);
const ID = /\b(sesn|sevt|sthr|env|exec|sbx|agent|toolu|file)_[0-9A-Za-z]{16,}/g;

/**
 * A log as text that is the same on every run: ids are numbered in the order they appear, times and paths are left out.
 * One record a line, so that a review reads like the session went.
 */
export function goldenText(records: readonly LogRecord[], replace: Record<string, string> = {}): string {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  const stable = (text: string): string =>
    text.replace(ID, (id, kind: string) => {
      const known = names.get(id);
      if (known) return known;
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      names.set(id, `${kind}_${count}`);
      return `${kind}_${count}`;
    });
  const lines = records.map((record) => {
    const { id, type, processed_at, ...fields } = record.event as Record<string, unknown>;
    const queued = processed_at === null ? ' queued' : '';
    const parts = [`${record.seq}`.padStart(3), record.thread ?? 'session', String(type) + queued, String(id)];
    const rest = [show(fields), record.local ? `· ${show(record.local)}` : ''];
    return [...parts, ...rest].filter((part) => part !== '' && part !== '{}').join(' ');
  });
  let text = stable(lines.join('\n'));
  for (const [from, to] of Object.entries(replace)) text = text.replaceAll(from, to);
  return `${text}\n`;
}

const show = (value: unknown): string =>
  JSON.stringify(value, (key, part: unknown) => {
    if (UNSTABLE.has(key)) return undefined;
    if (OF_PROMPT.has(key) && part !== 0) return 'some';
    if (/(^|_)at$/.test(key) && typeof part === 'string') return undefined;
    return part;
  });
