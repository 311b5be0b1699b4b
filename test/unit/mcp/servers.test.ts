import { describe, expect, it } from 'vitest';
import { draft } from '../../../src/protocol/record.ts';
import { pendingApprovals } from '../../../src/session/fold.ts';
import { eventsOf } from '../../support/events.ts';
import { eventually } from '../../support/eventually.ts';
import { said } from '../../support/mcp-server.ts';
import { lastMessage } from '../harness/rig.ts';
import { ALLOW, callTask, onlyCall, open, serve, shownTo, type Toolset, toolsOf, words } from './kit.ts';

describe('an MCP server', () => {
  it('is listed into the log before the model is asked, asks by default, and answers through the whole way', async () => {
    const wiki = await serve({ echo: { act: ({ text }) => said(`you said ${text}`) } });
    const rig = await open({ wiki });
    const asking = await rig.run(callTask('mcp__wiki__echo', { text: 'hello' }));
    const [waiting] = pendingApprovals(asking);
    expect(waiting).toMatchObject({ name: 'mcp__wiki__echo', input: { text: 'hello' } });
    expect(waiting?.why).toBe('agent "Tester" always asks before mcp__wiki__echo (the default for MCP tools)');
    expect(wiki.calls).toEqual([]);

    const done = await rig.answer(onlyCall(asking).id, 'allow');
    const call = onlyCall(done);
    expect(call.result).toMatchObject({ outcome: 'ok', isError: false });
    expect(words(call)).toBe('you said hello');
    expect(lastMessage(done)).toContain('you said hello');

    const records = await rig.records();
    const types = records.map(({ event }) => event.type);
    expect(types.indexOf('drover.mcp_tools_listed')).toBeLessThan(types.indexOf('span.model_request_start'));
    expect(types.indexOf('drover.tool_started')).toBeLessThan(types.indexOf('agent.mcp_tool_result'));
    expect(types).not.toContain('drover.sandbox_provisioning');
    expect(eventsOf(records, 'agent.mcp_tool_use')).toMatchObject([
      { mcp_server_name: 'wiki', name: 'echo', evaluated_permission: 'ask', evaluation: { type: 'always_ask' } },
    ]);
    expect(eventsOf(records, 'agent.mcp_tool_result')).toMatchObject([{ mcp_tool_use_id: call.id, is_error: false }]);
    const [listed] = eventsOf(records, 'drover.mcp_tools_listed');
    expect(listed).toMatchObject({ mcp_server_name: 'wiki', server: { name: 'test', version: '1.2.3' }, left_out: [] });
    const started = eventsOf(records, 'drover.tool_started')[0];
    const ledger = eventsOf(records, 'drover.egress');
    expect(ledger.every((one) => one.mcp_server_name === 'wiki' && one.verdict === 'allowed')).toBe(true);
    expect(ledger.filter((one) => one.execution_id === started?.execution_id).map((one) => one.method)).toEqual([
      'POST',
    ]);
  });

  it('stays connected and its list the same from turn to turn; what it says has changed is listed anew', async () => {
    const wiki = await serve({ first: {} });
    const rig = await open({ wiki }, { default_config: ALLOW });
    await rig.run('[rehearsal:say] one');
    await rig.say('[rehearsal:say] two');
    expect([wiki.asked('initialize'), wiki.asked('tools/list')]).toEqual([1, 1]);
    expect(JSON.stringify(toolsOf(rig, -1))).toBe(JSON.stringify(toolsOf(rig, -2)));
    expect(shownTo(rig)).toEqual(['mcp__wiki__first']);

    wiki.tools = { second: {} };
    await wiki.changed();
    await eventually('the news', 10_000, async () => {
      const state = await rig.say('[rehearsal:say] three');
      return state.threads.get(rig.primary)?.mcp[0]?.tools[0]?.name === 'second' || undefined;
    });
    expect(shownTo(rig)).toEqual(['mcp__wiki__second']);
    expect((await rig.types()).filter((type) => type === 'drover.mcp_tools_listed')).toHaveLength(2);
  });

  it('that is gone when a session wakes again costs its tools and a sentence; the turn after finds it again', async () => {
    const wiki = await serve({ echo: {} });
    const rig = await open({ wiki });
    await rig.run('[rehearsal:say] one');
    await wiki.down();
    await rig.restart();
    const without = await rig.say('[rehearsal:say] two');
    expect(without.stopReason).toEqual({ type: 'end_turn' });
    expect(shownTo(rig)).toEqual([]);
    const [error] = eventsOf(await rig.records(), 'session.error');
    expect(error?.error).toMatchObject({ type: 'mcp_connection_failed_error', mcp_server_name: 'wiki' });
    expect(error?.error.message).toMatch(
      /^MCP server "wiki" could not be reached at 127\.0\.0\.1:\d+: connect ECONNREFUSED .*; the session goes on without its tools\.$/,
    );
    await wiki.up();
    await rig.say('[rehearsal:say] three');
    expect(shownTo(rig)).toEqual(['mcp__wiki__echo']);
  });

  it('that can’t be reached is tried once in a turn, however often the session wakes in it', async () => {
    const wiki = await serve({ echo: {} });
    const gone = await serve({});
    await gone.down();
    const rig = await open({ wiki, gone });
    const asking = await rig.run(callTask('mcp__wiki__echo'));
    await rig.restart();
    await rig.answer(onlyCall(asking).id, 'allow');
    expect(eventsOf(await rig.records(), 'session.error')).toHaveLength(1);
    await rig.say('[rehearsal:say] next turn');
    expect(eventsOf(await rig.records(), 'session.error')).toHaveLength(2);
  });

  it('shows what is enabled, with the policy of each tool, under names that can’t be mistaken', async () => {
    const one = await serve({ 'read.page': {}, read_page: {}, hidden: {}, free: {} });
    const other = await serve({ page: {} });
    const toolset: Toolset = {
      configs: [
        { name: 'hidden', enabled: false },
        { name: 'free', ...ALLOW },
      ],
    };
    const rig = await open({ 'my wiki': one, my_wiki: other }, toolset);
    await rig.run('[rehearsal:say] hello');
    const shown = shownTo(rig);
    expect(shown).toHaveLength(4);
    expect(shown).toContain('mcp__my_wiki__page');
    expect(shown.filter((name) => /^mcp__my_wiki__(read_page|free)__[0-9a-f]{8}$/.test(name))).toHaveLength(3);
    expect(new Set(shown).size).toBe(4);
    const free = shown.find((name) => name.includes('free')) ?? '';
    expect(onlyCall(await rig.say(callTask(free))).result?.outcome).toBe('ok');
    const hidden = await rig.say(callTask('mcp__my_wiki__hidden'));
    expect(onlyCall(hidden)).toMatchObject({ permission: 'deny', evaluation: null, result: { outcome: 'failed' } });
    expect(one.calls.map(({ tool }) => tool)).toEqual(['free']);
  });

  it('that never answers costs a turn no more than its time limit, and an interrupt does not wait for it', async () => {
    const wiki = await serve({});
    wiki.silent = true;
    const hasty = await open({ wiki }, {}, { limits: { answer: 300 } });
    expect((await hasty.run('[rehearsal:say] hello')).stopReason).toEqual({ type: 'end_turn' });
    expect(eventsOf(await hasty.records(), 'session.error')[0]?.error.message).toMatch(
      /could not be reached.*timed out/i,
    );

    const patient = await open({ wiki }, {}, { limits: { answer: 600_000 } });
    const seen = wiki.seen.length;
    await patient.create('[rehearsal:say] hello');
    const done = patient.harness.wake(patient.session, 'a test');
    await eventually('its request', 20_000, async () => wiki.seen.length > seen || undefined);
    await patient.append(draft('user.interrupt', {}, { queued: true }));
    await done;
    expect((await patient.state()).threads.get(patient.primary)?.interrupted).toBe(true);
    expect(patient.rehearsal.requests.filter(({ path }) => path === '/v1/messages')).toEqual([]);
  });

  it('that only knows the older transport is spoken to all the same', async () => {
    const wiki = await serve({ echo: { act: ({ text }) => said(String(text)) } }, { older: true });
    const rig = await open({ wiki }, { default_config: ALLOW });
    expect(words(onlyCall(await rig.run(callTask('mcp__wiki__echo', { text: 'as ever' }))))).toBe('as ever');
  });

  it('is each thread’s own: a child is told what there is, and calls it over its own connection', async () => {
    const wiki = await serve({ echo: {} });
    const rig = await open({ wiki });
    const state = await rig.run('[rehearsal:agents n=1]');
    const listed = (await rig.records()).filter(({ event }) => event.type === 'drover.mcp_tools_listed');
    expect(listed.map(({ thread }) => thread)).toEqual([...state.threads.keys()]);
    expect(wiki.asked('initialize')).toBe(2);
  });

  it('has at most so many tools that an agent has 256, and what is left out is named', async () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`tool_${n}`, {}]));
    const rig = await open({ a: await serve(many), b: await serve(many) });
    await rig.run('[rehearsal:say] hello');
    const tools = toolsOf(rig);
    expect(tools).toHaveLength(256);
    const [, b] = eventsOf(await rig.records(), 'drover.mcp_tools_listed');
    expect(b?.left_out.length).toBe(200 - (256 - 200 - (tools.length - shownTo(rig).length)));
    expect(b?.left_out[0]?.why).toBe('an agent has at most 256 tools');
  });
});
