import { describe, expect, it } from 'vitest';
import { elide } from '../../../src/harness/strategies/elide.ts';
import { everything } from '../../../src/harness/strategies/everything.ts';
import { strategyNamed } from '../../../src/harness/strategies/strategies.ts';
import type { ThreadView } from '../../../src/harness/strategies/strategy.ts';
import { mint } from '../../../src/protocol/ids.ts';
import { validateMessages } from '../../../src/rehearsal/validate.ts';
import type { TranscriptMessage } from '../../../src/session/transcript.ts';

/** A conversation with `calls` tool calls, each with a result of `bytes` bytes. */
function view(calls: number, bytes: number, context = 200_000): ThreadView {
  const messages: TranscriptMessage[] = [
    { role: 'user', blocks: [{ event: mint.event(), kind: 'input', block: { type: 'text', text: 'go' } }] },
  ];
  for (let n = 0; n < calls; n += 1) {
    const id = `toolu_${n}`;
    const use = { type: 'tool_use', id, name: 'bash', input: { command: `cat ${n}` } };
    const result = { type: 'tool_result', tool_use_id: id, content: [{ type: 'text', text: 'x'.repeat(bytes) }] };
    messages.push({ role: 'assistant', blocks: [{ event: mint.event(), kind: 'reply', block: use }] });
    messages.push({ role: 'user', blocks: [{ event: mint.event(), kind: 'result', block: result }] });
  }
  return { messages, fixedTokens: 1000, limits: { context, output: 32_000 } };
}

describe('strategies', () => {
  it('"everything" sends the whole thread and leaves nothing out', () => {
    const { messages, leftOut } = everything.assemble(view(50, 20_000));
    expect(JSON.stringify(messages).length).toBeGreaterThan(50 * 20_000);
    expect(leftOut).toEqual([]);
  });

  it('"elide" is "everything" while there is room', () => {
    const small = view(5, 2_000);
    expect(elide.assemble(small)).toEqual(everything.assemble(small));
  });

  it('"elide" turns the oldest large results into stubs that name their events, and keeps the newest', () => {
    const large = view(60, 20_000);
    const { messages, leftOut, estimatedTokens } = elide.assemble(large);
    expect(leftOut.length).toBeGreaterThan(0);
    expect(estimatedTokens).toBeLessThanOrEqual(0.6 * 200_000);
    const results = large.messages.flatMap((message) => message.blocks).filter((one) => one.kind === 'result');
    expect(leftOut.map((one) => one.event_id)).toEqual(results.slice(0, leftOut.length).map((one) => one.event));
    const sent = JSON.stringify(messages);
    for (const { event_id } of leftOut) expect(sent).toContain(event_id);
    expect(messages.at(-1)).toEqual({ role: 'user', content: large.messages.at(-1)?.blocks.map((one) => one.block) });
  });

  it('"elide" keeps every call answered, as the API demands', () => {
    expect(validateMessages(elide.assemble(view(60, 20_000)).messages)).toBeUndefined();
  });

  it('"elide" changes the beginning of the request only once in several calls, so that its cache holds', () => {
    const beginnings = new Set<string>();
    for (let calls = 40; calls < 56; calls += 1) {
      const { messages } = elide.assemble(view(calls, 12_000, 100_000));
      beginnings.add(String(messages.filter((one) => JSON.stringify(one).includes('left out of this view')).length));
    }
    expect(beginnings.size).toBeLessThanOrEqual(3);
  });

  it('a session of a strategy this version does not know gets the default one', () => {
    expect(strategyNamed('from the future').name).toBe('elide');
  });
});
