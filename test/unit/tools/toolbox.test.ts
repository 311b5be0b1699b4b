import { describe, expect, it } from 'vitest';
import { plainText } from '../../../src/protocol/content.ts';
import type { AgentSnapshot } from '../../../src/protocol/drover-event.ts';
import { EventId, mint } from '../../../src/protocol/ids.ts';
import type { LogRecord } from '../../../src/protocol/record.ts';
import { createToolbox } from '../../../src/tools/toolbox.ts';
import type { ToolContext } from '../../../src/tools/tools.ts';

const agent = (more: Partial<AgentSnapshot> = {}): AgentSnapshot => ({ name: 'main', model: 'm', ...more });
const names = (more: Partial<AgentSnapshot>, depth = 0, roster: AgentSnapshot[] = []) =>
  createToolbox({ agent: agent(more), roster, depth })
    .specs()
    .map((spec) => spec.name);

const record = (seq: number, text: string): LogRecord => ({
  v: 1,
  seq,
  at: '2026-01-01T00:00:00.000Z',
  fence: 1,
  prev: '',
  hash: '',
  event: {
    id: EventId.parse(`sevt_${seq}`),
    type: 'user.message',
    processed_at: null,
    content: [{ type: 'text', text }],
  },
});

function contextWith(records: LogRecord[], asked: unknown[] = []): ToolContext {
  return {
    executionId: mint.execution(),
    thread: mint.thread(),
    signal: new AbortController().signal,
    sandbox: () => Promise.reject(new Error('no sandbox is needed here')),
    onOutput: () => {},
    seen: () => undefined,
    readLog: async (range) => {
      asked.push(range);
      return records;
    },
  };
}

const ALL = ['bash', 'read', 'write', 'edit', 'glob', 'grep', 'get_events'];

describe('a toolbox for sandboxes that live for one call', () => {
  it('promises the model no shell that remembers, and has the same tools', () => {
    const about = (lifetime: 'session' | 'call') =>
      createToolbox({ agent: agent(), roster: [], depth: 0, lifetime }).find('bash')?.description;
    expect(about('session')).toContain('stays for the next call');
    expect(about('call')).toContain('a fresh sandbox that ends with the call');
    expect(about('call')).not.toContain('stays for the next call');
    expect(
      createToolbox({ agent: agent(), roster: [], depth: 0, lifetime: 'call' })
        .specs()
        .map(({ name }) => name),
    ).toEqual(ALL);
  });
});

describe('which tools an agent has', () => {
  it('has all of the toolset if it names none', () => {
    expect(names({})).toEqual(ALL);
  });

  it('has what its toolset enables, in the same order', () => {
    const type = 'agent_toolset_20260401';
    expect(names({ tools: [{ type, configs: [{ name: 'bash', enabled: false }] }] })).toEqual(ALL.slice(1));
    const few = {
      type,
      default_config: { enabled: false },
      configs: [
        { name: 'grep', enabled: true },
        { name: 'read', enabled: true },
      ],
    } as const;
    expect(names({ tools: [{ ...few, configs: [...few.configs] }] })).toEqual(['read', 'grep', 'get_events']);
    expect(names({ tools: [] })).toEqual(['get_events']);
  });

  it('may start agents only as a coordinator, and only at depth 0', () => {
    const multiagent = { type: 'coordinator' as const, agents: [{ type: 'self' as const }] };
    expect(names({ multiagent })).toContain('create_agent');
    expect(names({ multiagent }, 1)).not.toContain('create_agent');
    expect(names({})).not.toContain('create_agent');
  });

  it('lists the roster to the model and accepts no other name', () => {
    const roster = [agent({ name: 'tester', description: 'Runs the tests' })];
    const toolbox = createToolbox({
      agent: agent({ multiagent: { type: 'coordinator', agents: [] } }),
      roster,
      depth: 0,
    });
    expect(toolbox.find('create_agent')?.description).toContain('- tester: Runs the tests');
    expect(toolbox.inputProblem('create_agent', { title: 't', task: 'x', agent: 'tester' })).toBeUndefined();
    expect(toolbox.inputProblem('create_agent', { title: 't', task: 'x' })).toBeUndefined();
    expect(toolbox.inputProblem('create_agent', { title: 't', task: 'x', agent: 'nobody' })).toMatch(
      /must be one of tester/,
    );
  });
});

describe('inputs', () => {
  const toolbox = createToolbox({ agent: agent(), roster: [], depth: 0 });

  it('are described to the model with the public names', () => {
    const parameters = Object.fromEntries(
      toolbox.specs().map((spec) => [spec.name, Object.keys(Object(spec.input_schema.properties))]),
    );
    expect(parameters).toEqual({
      bash: ['command', 'restart', 'timeout_ms'],
      read: ['file_path', 'view_range'],
      write: ['file_path', 'content'],
      edit: ['file_path', 'old_string', 'new_string', 'replace_all'],
      glob: ['pattern', 'path'],
      grep: ['pattern', 'path'],
      get_events: ['event_ids', 'from_seq', 'to_seq'],
    });
    expect(toolbox.find('edit')?.input_schema.required).toEqual(['file_path', 'old_string', 'new_string']);
    expect(toolbox.find('bash')?.input_schema.required ?? []).toEqual([]);
    for (const spec of toolbox.specs()) expect(spec.input_schema).not.toHaveProperty('$schema');
  });

  it.each([
    ['bash', {}, /command: is missing; it may be left out only with restart/],
    ['bash', { command: 7 }, /command: .*string/],
    ['read', {}, /file_path/],
    ['read', { file_path: 'a', view_range: [1] }, /view_range/],
    ['edit', { file_path: 'a', old_string: '', new_string: 'b' }, /old_string/],
    ['write', 'text', /object/],
    ['nothing', {}, /There is no tool "nothing"\. Use one of: bash, read/],
  ])('of %s %j are answered in words', (name, input, words) => {
    expect(toolbox.inputProblem(name, input)).toMatch(words);
  });

  it('that fit are no problem', () => {
    expect(toolbox.inputProblem('bash', { command: 'ls' })).toBeUndefined();
    expect(toolbox.inputProblem('bash', { restart: true })).toBeUndefined();
    expect(toolbox.inputProblem('read', { file_path: 'a', view_range: [1, -1] })).toBeUndefined();
  });

  it('are summed up in one line for people', () => {
    const summary = (name: string, input: Record<string, unknown>) => toolbox.find(name)?.summary(input);
    expect(summary('bash', { command: 'cd a\n  ls' })).toBe('cd a ls');
    expect(summary('bash', { restart: true })).toBe('Restart the shell');
    expect(summary('read', { file_path: 'a.ts', view_range: [3, 9] })).toBe('a.ts, lines 3–9');
    expect(summary('grep', { pattern: 'x', path: 'src' })).toBe('x in src');
    // A summary is asked for also while the input is still half-streamed.
    for (const spec of toolbox.specs()) expect(spec.summary({})).not.toContain('undefined');
  });

  it('that do not fit run nothing', async () => {
    const outcome = await toolbox.execute('bash', { command: 7 }, contextWith([]));
    expect(outcome.kind).toBe('failed');
    expect(plainText(outcome.content)).toContain('Nothing was done');
    expect((await toolbox.execute('nothing', {}, contextWith([]))).kind).toBe('failed');
  });
});

describe('get_events', () => {
  const toolbox = createToolbox({ agent: agent(), roster: [], depth: 0 });

  it('gives whole events back and names those that are not there', async () => {
    const asked: unknown[] = [];
    const input = { event_ids: ['sevt_3', 'sevt_none'] };
    const outcome = await toolbox.execute('get_events', input, contextWith([record(3, 'long ago')], asked));
    expect(asked).toEqual([{ ids: ['sevt_3', 'sevt_none'], full: true }]);
    const [line, note] = plainText(outcome.content).split('\n');
    expect(JSON.parse(line ?? '')).toMatchObject({
      seq: 3,
      id: 'sevt_3',
      content: [{ type: 'text', text: 'long ago' }],
    });
    expect(note).toBe('[Not in this session: sevt_none]');
  });

  it('says what to ask again for where it is too much at once', async () => {
    const records = [record(1, 'a'.repeat(150_000)), record(2, 'b'.repeat(150_000)), record(3, 'c')];
    const outcome = await toolbox.execute('get_events', { from_seq: 1, to_seq: 3 }, contextWith(records));
    const text = plainText(outcome.content);
    expect(text.length).toBeLessThan(210_000);
    expect(text).toMatch(/Ask again for: sevt_2, sevt_3\]$/);
  });

  it('gives the beginning of one event that is too large by itself', async () => {
    const outcome = await toolbox.execute('get_events', { from_seq: 1 }, contextWith([record(1, 'a'.repeat(500_000))]));
    expect(plainText(outcome.content)).toMatch(/more characters of this event\]$/);
  });

  it('asks for at most 200 positions, and wants to know which', async () => {
    const asked: unknown[] = [];
    const outcome = await toolbox.execute('get_events', { from_seq: 10, to_seq: 9999 }, contextWith([], asked));
    expect(asked).toEqual([{ from: 10, to: 209, full: true }]);
    expect(plainText(outcome.content)).toBe('There is no such event in this session.');
    expect((await toolbox.execute('get_events', {}, contextWith([]))).kind).toBe('failed');
  });
});
