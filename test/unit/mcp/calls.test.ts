import { describe, expect, it } from 'vitest';
import { mint } from '../../../src/protocol/ids.ts';
import { draft } from '../../../src/protocol/record.ts';
import { pendingApprovals } from '../../../src/session/fold.ts';
import { openQuestions } from '../../../src/session/fold-question.ts';
import { createGuard } from '../../../src/vault/outgoing.ts';
import { placeholderFor } from '../../../src/vault/placeholder.ts';
import { Redactor } from '../../../src/vault/redactor.ts';
import { eventually } from '../../support/eventually.ts';
import { type ServedTool, said, type TestMcpServer } from '../../support/mcp-server.ts';
import { ALLOW, callTask, onlyCall, open, serve, words } from './kit.ts';

describe('a call of a server’s tool', () => {
  const hanging = (more: ServedTool = {}): Promise<TestMcpServer> =>
    serve({
      slow: {
        act: (_, { signal }) =>
          new Promise((resolve) => signal.addEventListener('abort', () => resolve(said('stopped')))),
        ...more,
      },
    });

  const called = (server: TestMcpServer, times: number) =>
    eventually('the call', 20_000, async () => server.calls.length >= times || undefined);

  it('that a crash left open is unknown, and is not made again: the server’s word that it only reads is not enough', async () => {
    const wiki = await hanging({ annotations: { readOnlyHint: true } });
    const rig = await open({ wiki });
    const { id } = onlyCall(await rig.run(callTask('mcp__wiki__slow')));
    await rig.append(draft('user.tool_confirmation', { tool_use_id: id, result: 'allow' }, { thread: rig.primary }));
    const dead = rig.harness.wake(rig.session, 'a test').catch(() => undefined);
    await called(wiki, 1);
    await rig.restart();
    await dead;
    await rig.harness.wake(rig.session, 'after a crash');
    const state = await rig.state();
    expect(onlyCall(state)).toMatchObject({ recovered: 'absent', result: { outcome: 'unknown' } });
    expect(wiki.calls).toHaveLength(1);
    expect(state.stopReason).toEqual({ type: 'end_turn' });
  });

  it('that a crash left open is made again where a person lets it run unasked and its server says it only reads', async () => {
    const wiki = await serve({
      look: {
        annotations: { readOnlyHint: true },
        act: () => (wiki.calls.length === 1 ? new Promise(() => undefined) : said('seen')),
      },
    });
    const rig = await open({ wiki }, { default_config: ALLOW });
    await rig.create(callTask('mcp__wiki__look'));
    const dead = rig.harness.wake(rig.session, 'a test').catch(() => undefined);
    await called(wiki, 1);
    await rig.restart();
    await dead;
    await rig.harness.wake(rig.session, 'after a crash');
    expect(words(onlyCall(await rig.state()))).toBe('seen');
    expect(wiki.calls).toHaveLength(2);
  });

  it('is made at most once, wherever a crash comes between, and the session goes on to its end', async () => {
    const outcomes: unknown[] = [];
    for (let n = 1, cut = true; cut; n += 1) {
      for (const when of ['before', 'after'] as const) {
        const wiki = await serve({ act: {} });
        const rig = await open({ wiki }, { default_config: ALLOW });
        await rig.create(callTask('mcp__wiki__act'));
        cut = await rig.cutOff({ n, when });
        await rig.harness.wake(rig.session, 'after a crash');
        const state = await rig.state();
        const outcome = onlyCall(state).result?.outcome;
        outcomes.push(outcome);
        const calls = outcome === 'ok' ? 1 : Math.min(wiki.calls.length, 1);
        expect([state.stopReason, wiki.calls.length], `cut off ${when} append ${n}`).toEqual([
          { type: 'end_turn' },
          calls,
        ]);
      }
    }
    expect(outcomes.length).toBeGreaterThan(20);
    expect(new Set(outcomes)).toEqual(new Set(['ok', 'unknown']));
  }, 120_000);

  it('is told to stop by an interrupt, and may have happened', async () => {
    let stopped = false;
    const wiki = await serve({
      slow: {
        act: (_, { signal }) =>
          new Promise((resolve) =>
            signal.addEventListener('abort', () => {
              stopped = true;
              resolve(said('stopped'));
            }),
          ),
      },
    });
    const rig = await open({ wiki }, { default_config: ALLOW });
    await rig.create(callTask('mcp__wiki__slow'));
    const done = rig.harness.wake(rig.session, 'a test');
    await called(wiki, 1);
    await rig.append(draft('user.interrupt', {}, { queued: true }));
    await done;
    const state = await rig.state();
    expect(onlyCall(state).result?.outcome).toBe('unknown');
    expect(state.threads.get(rig.primary)?.interrupted).toBe(true);
    await eventually('the server’s stop', 10_000, async () => stopped || undefined);
  });

  it('that would carry a placeholder out of the sandbox’s reach stops the session before it is sent', async () => {
    const wiki = await serve({ echo: {} });
    const guard = createGuard({
      redactor: new Redactor(),
      maskKey: Buffer.from('key'),
      workFolder: ({ workspaceFolder }) => workspaceFolder,
    });
    const rig = await open({ wiki }, { default_config: ALLOW }, {}, { deps: { guard } });
    const placeholder = placeholderFor(mint.session(), mint.credential());
    const state = await rig.run(callTask('mcp__wiki__echo', { text: `token ${placeholder}` }));
    expect(openQuestions(state)[0]?.why).toMatch(
      /would send a credential’s placeholder to the MCP server wiki \(127\./,
    );
    expect(wiki.calls).toEqual([]);
  });

  it('is allowed from now on at that address, and not at another of the same name', async () => {
    const wiki = await serve({ echo: { act: () => said('ok') } });
    const other = await serve({ echo: { act: () => said('ok') } });
    const rule = (server: TestMcpServer) => ({
      id: 'rule_1',
      type: 'rule' as const,
      tool: `mcp__wiki__echo (${server.url})`,
      name: 'every mcp__wiki__echo call',
      created_at: '2026-01-01T00:00:00.000Z',
      archived_at: null,
    });
    const allowed = await open({ wiki }, {}, {}, { rules: [rule(wiki)] });
    const state = await allowed.run(callTask('mcp__wiki__echo'));
    expect(onlyCall(state)).toMatchObject({
      permission: 'allow',
      mcp: { rule: rule(wiki).tool },
      result: { outcome: 'ok' },
    });
    const asks = await open({ wiki: other }, {}, {}, { rules: [rule(wiki)] });
    expect(pendingApprovals(await asks.run(callTask('mcp__wiki__echo')))).toHaveLength(1);
  });
});
