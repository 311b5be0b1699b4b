import { describe, expect, it } from 'vitest';
import type { EventId } from '../../../src/protocol/ids.ts';
import type { LogRecord } from '../../../src/protocol/record.ts';
import { fold } from '../../../src/session/fold.ts';
import { joinLines, parseAnsi, stripAnsi, styleClasses } from '../../../webview/ansi.ts';
import { partialInput } from '../../../webview/conversation/partial-input.ts';
import { conversationRows } from '../../../webview/conversation/rows.ts';
import { diffCounts, diffLines } from '../../../webview/edit-diff.ts';
import { bytes, duration, tokens, usd } from '../../../webview/format.ts';
import { Previews } from '../../../webview/previews.ts';
import { RecordIndex } from '../../../webview/records.ts';
import { sandboxName, sandboxWords, sessionWords } from '../../../webview/status.ts';
import { shapes } from '../../../webview/timeline/drawing.ts';
import { lanes } from '../../../webview/timeline/model.ts';
import { moved, showing, zoomed } from '../../../webview/timeline/scale.ts';
import { summary } from '../../../webview/tool-look.ts';
import { branches } from '../../../webview/tree/model.ts';
import { visible } from '../../../webview/visible.ts';
import { editPending, long, noKey, twoThreads, untouched } from '../../fixtures/panel/sessions.ts';

const ESC = '\u001b';

describe('terminal output', () => {
  it('folds what a carriage return overwrites, as a terminal would show it', () => {
    expect(stripAnsi('10%\r55%\r100% done\r\nnext')).toBe('100% done\nnext');
    expect(stripAnsi('a long line\rshort')).toBe('shortg line');
    expect(stripAnsi(`a long line\r${ESC}[Kshort`)).toBe('short');
    expect(stripAnsi('abc\b\bX')).toBe('aXc');
  });

  it('names the theme colour of each run, and the nearest one for a fixed colour', () => {
    const [line] = parseAnsi(`${ESC}[1;31mred${ESC}[0m plain ${ESC}[38;5;196mcube${ESC}[39m ${ESC}[48;2;0;0;250mtrue`);
    expect(line?.map((run) => [run.text, styleClasses(run.style)])).toEqual([
      ['red', 'fg-red bold'],
      [' plain ', ''],
      ['cube', 'fg-red'],
      [' ', ''],
      ['true', 'bg-blue'],
    ]);
  });

  it('leaves out titles, links, other sequences and characters without a picture', () => {
    expect(
      stripAnsi(`${ESC}]0;title\u0007a${ESC}]8;;https://example.com${ESC}\\b${ESC}[2J${ESC}(Bc\u0000\u0007d\te`),
    ).toBe('abcd\te');
  });

  it('cannot be made to fill the memory by a cursor far to the right', () => {
    expect(stripAnsi(`${ESC}[999999999Gx`).length).toBeLessThan(1100);
  });

  it('keeps long plain output as one piece', () => {
    expect(joinLines(parseAnsi('line\n'.repeat(50_000)))).toHaveLength(1);
  });
});

describe('figures', () => {
  it('are written with their unit, and what costs something never looks free', () => {
    expect([0, 850, 1_240, 59_600, 3_599_600, 7_380_000].map(duration)).toEqual([
      '0 ms',
      '850 ms',
      '1.2 s',
      '1 m 00 s',
      '1 h 00 m',
      '2 h 03 m',
    ]);
    expect([0, 999, 12_449, 99_960, 1_250_000].map(tokens)).toEqual(['0', '999', '12.4k', '100k', '1.25M']);
    expect([0, 0.0004, 0.01, 12.345].map(usd)).toEqual(['$0.00', '<$0.01', '$0.01', '$12.35']);
    expect([12, 2_048, 10_485_760].map(bytes)).toEqual(['12 bytes', '2.0 KiB', '10.0 MiB']);
  });
});

describe('a command to be decided on', () => {
  it('shows what would turn or hide a part of it', () => {
    expect(summary('bash', { command: 'echo safe\u202e; rm -rf ~\u200b' })).toBe(
      'echo safe\\u{202e}; rm -rf ~\\u{200b}',
    );
    expect(visible('a\tb\nc\u001b[2K')).toBe('a\tb\nc\\u{1b}[2K');
    expect(visible('Grüße, 世界 👍')).toBe('Grüße, 世界 👍');
  });
});

describe('an edit', () => {
  it('is a unified diff with three lines around a change', () => {
    const before = Array.from({ length: 30 }, (_, i) => `line ${i}`).join('\n');
    const lines = diffLines(before, before.replace('line 3\n', 'line three\n').replace('line 25', 'line 25!'));
    expect(diffCounts(lines)).toEqual({ added: 2, removed: 2 });
    expect(lines.filter((line) => line.kind === 'gap')).toHaveLength(1);
    expect(lines).toHaveLength(17);
  });
});

describe('tool input that is still being written', () => {
  it('is told as far as it has come', () => {
    expect(partialInput('{"command":"npm test \\u00')).toEqual({ summary: 'npm test ', whole: '' });
    expect(partialInput('{"file_path":"a.ts","content":"one\\ntw')).toEqual({ summary: 'a.ts', whole: 'one\ntw' });
    expect(partialInput('{"fi')).toEqual({ summary: '', whole: '' });
  });
});

describe('rows of a conversation', () => {
  const { records, primary, child, calls } = twoThreads();
  const session = fold(records);
  const rowsOf = (id: typeof primary) => {
    const thread = session.threads.get(id);
    return thread ? conversationRows(session, thread, new Previews()) : [];
  };

  it("have a child's ask in its place, and the queue at the end", () => {
    const rows = rowsOf(primary);
    expect(rows.filter((row) => row.kind === 'call' && row.foreign).map((row) => row.key)).toEqual([calls.ask]);
    expect(rows.at(-1)).toMatchObject({ kind: 'input', queued: true });
    expect(new Set(rows.map((row) => row.key)).size).toBe(rows.length);
  });

  it("show the child's own thread without its parent's calls", () => {
    expect(rowsOf(child).map((row) => row.kind)).toEqual(['start', 'input', 'message', 'call']);
  });

  it('have previews instead of waiting while a reply streams', () => {
    const { records: all, primary: id } = editPending();
    const cut = all.findLastIndex((record) => record.event.type === 'span.model_request_start') + 1;
    const open = fold(all.slice(0, cut));
    const thread = open.threads.get(id);
    const request = all[cut - 1]?.event.id;
    if (!thread || !request) throw new Error('The fixture has no open request.');
    const previews = new Previews();
    expect(conversationRows(open, thread, previews).at(-1)?.kind).toBe('waiting');
    previews.add({ type: 'start', thread: id, request, id: 'sevt_a' as EventId, block: 'thinking' });
    expect(conversationRows(open, thread, previews).at(-1)?.kind).toBe('live');
  });
});

describe('the story of an event', () => {
  it('has the call, its answer, its start and its result, and a request its context and its end', () => {
    const { records, calls } = twoThreads();
    const index = new RecordIndex();
    for (const record of records) index.add(record);
    const types = (id: EventId) => index.story(index.subject(id)).map((record) => record.event.type);
    expect(types(calls.test as EventId)).toEqual([
      'agent.tool_use',
      'user.tool_confirmation',
      'drover.tool_started',
      'agent.tool_result',
    ]);
    const context = records.find((record) => record.event.type === 'drover.context_assembled');
    expect(types(context?.event.id as EventId)).toEqual([
      'drover.context_assembled',
      'drover.budget_reserved',
      'span.model_request_start',
      'span.model_request_end',
    ]);
    expect(index.sandboxes.map((span) => span.text)).toEqual(['3f2a9c41d7e0', '3f2a9c41d7e0']);
  });
});

describe('words for a state', () => {
  it('say what needs the person first, and why nothing goes on', () => {
    const write = { mode: 'write' } as const;
    expect(sessionWords(fold(twoThreads().records), write, false).text).toBe('Waiting for you: 2 approvals');
    expect(sessionWords(fold(noKey().records), write, false).text).toBe('Stopped: the model could not be asked');
    const running = fold(twoThreads().records.slice(0, 12));
    expect(sessionWords(running, write, false).text).toBe('Running');
    expect(sessionWords(running, write, true).text).toBe('Interrupted: its window is gone');
    expect(sessionWords(running, { mode: 'follow', holder: 'process 1' }, false).text).toBe(
      'Follows another window: running',
    );
  });

  it('say where commands run', () => {
    const wordsOf = ({ records }: { records: LogRecord[] }) => {
      const index = new RecordIndex();
      for (const record of records) index.add(record);
      return sandboxWords(fold(records), (sandbox) => index.nameOf(sandbox)).text;
    };
    expect(wordsOf(untouched())).toBe('devcontainer: no sandbox needed yet');
    expect(wordsOf(editPending())).toBe('devcontainer: sandbox lost');
    expect(wordsOf(twoThreads())).toBe('devcontainer: container 3f2a9c41d7e0');
    expect(sandboxName({ kind: 'container', detail: 'container 12 of debian' })).toBe('container 12 of debian');
    expect(sandboxName({ kind: 'os', detail: 'bubblewrap' })).toBe('OS sandbox bubblewrap');
  });
});

describe('the tree', () => {
  it('rolls the figures of children up to their parent', () => {
    const { records, now } = twoThreads();
    const [coder, verifier] = branches(fold(records), now);
    expect(verifier?.depth).toBe(1);
    expect(verifier?.total).toBeNull();
    expect(coder?.total?.tokens).toBe((coder?.own.tokens ?? 0) + (verifier?.own.tokens ?? 0));
    expect(coder?.total?.usd).toBeCloseTo((coder?.own.usd ?? 0) + (verifier?.own.usd ?? 0), 10);
  });
});

describe('the timeline', () => {
  it('draws few shapes for a long session, and loses no bar', () => {
    const { records, now } = long(6000);
    const [lane] = lanes(fold(records), []);
    const bars = lane?.bars ?? [];
    const span = { from: (bars[0]?.from ?? 0) - 1, to: now + 1 };
    if (!lane) throw new Error('There is no lane.');
    const drawn = shapes(lane, span, 800, now);
    expect(drawn.length).toBeLessThan(bars.length / 4);
    expect(drawn.flatMap((shape) => shape.bars)).toHaveLength(bars.length);
    expect(Math.max(...drawn.filter((shape) => shape.bars.length > 1).map((shape) => shape.width))).toBeLessThanOrEqual(
      60,
    );
  });

  it('puts requests above, and what runs at the same time below each other', () => {
    const [coder] = lanes(fold(twoThreads().records), []);
    const rows = (kind: string) => new Set(coder?.bars.filter((bar) => bar.kind === kind).map((bar) => bar.row));
    expect(rows('model')).toEqual(new Set([0]));
    expect(rows('tool')).toEqual(new Set([1, 2, 3]));
  });

  it('never looks beyond the session, and keeps the time under the pointer', () => {
    const whole = { from: 0, to: 10_000 };
    expect(zoomed(whole, 0.5, 2_000, whole)).toEqual({ from: 1_000, to: 6_000 });
    expect(zoomed({ from: 0, to: 100 }, 100, 50, whole)).toEqual(whole);
    expect(moved({ from: 9_000, to: 10_000 }, 5_000, whole)).toEqual({ from: 9_000, to: 10_000 });
    expect(showing({ from: 0, to: 1_000 }, { from: 5_000, to: 5_100 }, whole)).toEqual({ from: 4_200, to: 5_200 });
  });
});
