import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { LogRecord } from '../../../src/protocol/record.ts';
import { fold } from '../../../src/session/fold.ts';
import { page } from '../../../src/session/page/page.ts';
import { STYLE } from '../../../src/session/page/style.ts';
import { twoThreads, unsafeMessage } from '../../fixtures/panel/sessions.ts';

const styleSha256 = createHash('sha256').update(STYLE).digest('base64');
const facts = { exportedAt: '2026-11-30T12:00:00.000Z', notes: [], styleSha256 };
const pageOf = (records: readonly LogRecord[], notes: string[] = []) => page(fold(records), { ...facts, notes });

/** Every tag of a page, as a browser would take them. */
const tags = (html: string): Set<string> =>
  new Set([...html.matchAll(/<\/?([a-zA-Z!][^\s>/]*)/g)].map(([, name]) => (name ?? '').toLowerCase()));

/** A string that would be something else than text almost anywhere. */
const HOSTILE = `"'><script>alert(1)</script><img src=x onerror=alert(1)></pre></style></title>&lt;b>\u0000\u001b]0;x\u0007\u202e<!--`;

/** Puts a hostile text in place of every text in the records, whatever it is: names, inputs, outputs, ids. */
function poisoned(records: readonly LogRecord[]): LogRecord[] {
  const keep = new Set(['type', 'id', 'seq', 'at', 'hash', 'prev', 'thread', 'processed_at', 'span', 'state', 'kind']);
  const poison = (value: unknown, key: string): unknown => {
    if (typeof value === 'string') return keep.has(key) || key.endsWith('_id') ? value : `${value}${HOSTILE}`;
    if (Array.isArray(value)) return value.map((one) => poison(one, key));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, poison(one, name)]));
  };
  return records.map((record) => poison(record, '') as LogRecord);
}

describe('The page of a session', () => {
  it('shows every thread, what was said, what tools did, who allowed it and what it cost', () => {
    const { records } = twoThreads();
    const state = fold(records);
    const html = pageOf(records, ['Something was left out.']);
    for (const thread of state.threads.values()) expect(html).toContain(`<section id="${thread.id}">`);
    for (const call of state.calls.values()) expect(html).toContain(`<article id="${call.id}">`);
    expect(html).toContain('Something was left out.');
    expect(html).toContain(`record ${state.head.seq}, ${state.head.hash}`);
    expect(html).toMatch(/Asked: [^.]+\. Allowed by a person, in the \w+, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/);
    expect(html).toMatch(/Allowed by the rules: [^.]+\.</);
    expect(html).toMatch(/\$\d+\.\d\d/);
  });

  it('needs nothing else: no script, no address, and a policy that would let none in', () => {
    const html = pageOf(twoThreads().records);
    expect(html).toContain(`default-src &#39;none&#39;; style-src &#39;sha256-${styleSha256}&#39;`);
    expect(html).not.toMatch(/<(script|link|img|iframe|object|embed|form)\b/i);
    expect(html).not.toMatch(/\s(src|srcset|action|style|on\w+)=/i);
    for (const [, address] of html.matchAll(/href="([^"]*)"/g)) expect(address).toMatch(/^#/);
    expect(html).toContain('prefers-color-scheme: dark');
    expect(
      createHash('sha256')
        .update(/<style>([\s\S]*?)<\/style>/.exec(html)?.[1] ?? '')
        .digest('base64'),
    ).toBe(styleSha256);
  });

  it('leaves hostile text what it is: text, wherever it stands in the log', () => {
    for (const { records } of [twoThreads(), unsafeMessage()]) {
      const clean = pageOf(records, ['a note']);
      const html = pageOf(poisoned(records), [HOSTILE]);
      expect(tags(html)).toEqual(tags(clean));
      expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
      expect(html).not.toContain('\u202e');
      expect(html).not.toContain('\u0000');
      expect(html).not.toContain('\u001b');
    }
  });
});
