import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { answer } from '../../src/editor/approvals.ts';
import { SessionTree } from '../../src/editor/tree.ts';
import { mint } from '../../src/protocol/ids.ts';
import { draft } from '../../src/protocol/record.ts';
import { eventually } from '../support/eventually.ts';
import { Stage } from './stage.ts';

/** A session in which something was asked that is no call; nobody holds it. */
async function asked(stage: Stage, kind: 'canary' | 'host') {
  const { session } = await stage.asking({ name: 'bash', input: { command: 'true' } });
  const id = mint.event();
  const environment = await (await stage.project.catalog()).createEnvironment({
    name: 'Nowhere',
    config: { type: 'os', networking: { type: 'limited', allowed_hosts: ['one.example'] } },
  });
  const writer = await stage.project.store.acquire(session.id, 'a test');
  const text = 'npm wants to reach two.example:443';
  await writer.append([draft('drover.question', { kind, text, call: null, host: 'two.example', port: 443 }, { id })]);
  await writer.release();
  await eventually('the question', 5000, () => session.pending.some((one) => one.id === id));
  await stage.sessions.refreshHolder(session);
  return { session, id, environment };
}

describe('A question that is no call', () => {
  it('stands in the Sessions tree below its session, in its own words', async () => {
    await using stage = await Stage.open();
    const { session } = await asked(stage, 'canary');
    const tree = new SessionTree(stage.sessions, stage.projects);
    const rows = (await tree.children({ kind: 'session', session })).map((node) => tree.item(node));
    const row = rows.find((item) => item.label === 'tripwire: npm wants to reach two.example:443');
    assert.ok(row, JSON.stringify(rows.map((item) => item.label)));
    assert.equal(row.contextValue, 'approval');
    assert.ok(row.tooltip instanceof vscode.MarkdownString);
  });

  it('is answered once; the second answer is refused and changes nothing', async () => {
    await using stage = await Stage.open();
    const { session, id } = await asked(stage, 'canary');
    const given = { call: id, result: 'deny' as const, via: 'sidebar' as const, seen: session.state?.head.seq ?? -1 };
    await answer(stage.actions, session, given);
    await eventually('the answer', 5000, () => session.state?.questions[0]?.answer?.result === 'deny');
    await assert.rejects(answer(stage.actions, session, given), /no longer waits/);
  });

  it('that is answered with “always” names the host in the environment, for sessions to come', async () => {
    await using stage = await Stage.open();
    const { session, id, environment } = await asked(stage, 'host');
    const { state } = session;
    assert.ok(state);
    state.environment.id = environment.id;
    await answer(stage.actions, session, {
      call: id,
      result: 'allow',
      scope: 'always',
      via: 'panel',
      seen: state.head.seq,
    });
    const now = (await stage.project.catalog()).environment(environment.id);
    assert.deepEqual(now?.config, {
      type: 'os',
      networking: { type: 'limited', allowed_hosts: ['one.example', 'two.example'] },
    });
    await eventually('the answer', 5000, () => state.questions[0]?.answer?.scope === 'always');
  });
});
