import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../../scripts/machine.mjs';
import type { SessionStore } from '../../src/log/log.ts';
import { text } from '../../src/protocol/content.ts';
import { EnvironmentId, mint } from '../../src/protocol/ids.ts';
import { type Draft, draft } from '../../src/protocol/record.ts';
import { noUsage } from '../../src/protocol/usage.ts';

/** Real text, of people and of programs, to fill logs with: the same in every checkout of the same lock file. */
const SOURCES = [
  'node_modules/@types/vscode/index.d.ts',
  'node_modules/@types/node/fs.d.ts',
  'node_modules/zod/v4/core/schemas.js',
  'node_modules/playwright-core/types/types.d.ts',
];

/** Writes sessions as agents make them: `turns` of one request, one call and its result, 10 records each. */
export async function writeLogs(store: SessionStore, sessions: number, turns: number): Promise<void> {
  const lines = (await Promise.all(SOURCES.map((file) => readFile(join(root, file), 'utf8')))).join('\n').split('\n');
  const pick = random(42);
  const some = (count: number) => {
    const start = pick(lines.length - count);
    return lines.slice(start, start + count).join('\n');
  };
  for (let n = 0; n < sessions; n++) {
    const id = mint.session();
    const primary = mint.thread();
    const created = draft('drover.session_created', {
      session_id: id,
      primary_thread_id: primary,
      title: `Session ${n}`,
      agent: { name: 'Bench', model: 'claude-sonnet-5-5' },
      environment: environment(),
      vault_ids: [],
      strategy: 'elide',
    });
    const writer = await store.create(id, [created]);
    for (let t = 0; t < turns; t++) await writer.append(turn(primary, some, pick), { sync: false });
    await writer.release();
  }
}

type Some = (lines: number) => string;

function turn(thread: ReturnType<typeof mint.thread>, some: Some, pick: (below: number) => number): Draft[] {
  const span = mint.event();
  const call = mint.event();
  const sandbox_id = mint.sandbox();
  const execution_id = mint.execution();
  const of = (index: number) => ({ thread, local: { reply: { span, index } } });
  return [
    draft('user.message', { content: [text(some(2))] }, { thread }),
    draft(
      'drover.context_assembled',
      { strategy: 'elide', messages: 9, estimated_tokens: 9000, left_out: [] },
      { thread },
    ),
    draft('drover.budget_reserved', { amount_usd: 0.1, limit_usd: null, thread_ids: [thread] }, { thread }),
    draft('span.model_request_start', {}, { thread, id: span }),
    draft('agent.message', { content: [text(some(8))] }, of(0)),
    draft(
      'agent.tool_use',
      { name: 'edit', input: { file_path: `src/file-${pick(900)}.ts`, old_string: some(5), new_string: some(5) } },
      { ...of(1), id: call },
    ),
    draft(
      'span.model_request_end',
      { model_request_start_id: span, is_error: false, model_usage: noUsage() },
      { thread },
    ),
    draft(
      'drover.tool_started',
      { tool_use_id: call, execution_id, sandbox_id, input_sha256: 'x'.repeat(64) },
      { thread },
    ),
    draft(
      'agent.tool_result',
      { tool_use_id: call, content: [text(some(10 + pick(120)))] },
      { thread, local: { outcome: 'ok', exit_code: 0 } },
    ),
    draft('drover.budget_settled', { reservation_id: span, amount_usd: 0.02, estimated: false }, { thread }),
  ];
}

function environment() {
  const at = '2026-01-01T00:00:00.000Z';
  const id = EnvironmentId.parse('env_bench');
  const config = { type: 'os' as const };
  return { id, type: 'environment' as const, name: 'bench', config, created_at: at, updated_at: at, archived_at: null };
}

/** The same numbers in every run. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
