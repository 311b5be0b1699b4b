import { describe, expect, it, onTestFinished } from 'vitest';
import type { AgentDefinition } from '../../../src/protocol/agent.ts';
import { mint } from '../../../src/protocol/ids.ts';
import { draft } from '../../../src/protocol/record.ts';
import { pendingApprovals } from '../../../src/session/fold.ts';
import { openQuestions } from '../../../src/session/fold-question.ts';
import type { SessionState, ToolCall } from '../../../src/session/state.ts';
import type { HubOptions } from '../../../src/tools/mcp/hub.ts';
import { stdioConnector } from '../../../src/tools/mcp/stdio.ts';
import { createGuard } from '../../../src/vault/outgoing.ts';
import { placeholderFor } from '../../../src/vault/placeholder.ts';
import { Redactor } from '../../../src/vault/redactor.ts';
import { eventsOf } from '../../support/events.ts';
import { eventually } from '../../support/eventually.ts';
import { type ServedTool, said, TestMcpServer } from '../../support/mcp-server.ts';
import { MCP_STDIO_SERVER } from '../../support/mcp-stdio-server.ts';
import { lastMessage, Rig, type RigOptions } from '../harness/rig.ts';

type Toolset = Partial<Extract<NonNullable<AgentDefinition['tools']>[number], { type: 'mcp_toolset' }>>;

const ALLOW = { permission_policy: { type: 'always_allow' as const } };

async function serve(tools: Record<string, ServedTool>, options: { older?: boolean } = {}): Promise<TestMcpServer> {
  const server = await TestMcpServer.start(tools, options);
  onTestFinished(() => server.down());
  return server;
}

/** An agent with these servers, each under its name here. */
const open = (
  servers: Record<string, TestMcpServer | string>,
  toolset: Toolset = {},
  mcp: Omit<HubOptions, 'version'> = {},
  more: Partial<RigOptions> = {},
): Promise<Rig> =>
  Rig.open({
    mcp,
    agent: {
      tools: [
        { type: 'agent_toolset_20260401' },
        ...Object.keys(servers).map((name) => ({ type: 'mcp_toolset' as const, mcp_server_name: name, ...toolset })),
      ],
      mcp_servers: Object.entries(servers).map(([name, one]) => ({
        type: 'url' as const,
        name,
        url: typeof one === 'string' ? one : one.url,
      })),
    },
    ...more,
  });

const callTask = (tool: string, input: object = {}): string => `[rehearsal:call tool=${tool}] ${JSON.stringify(input)}`;

const onlyCall = (state: SessionState): ToolCall => {
  const [call] = [...state.calls.values()].slice(-1);
  if (!call) throw new Error('There is no call.');
  return call;
};

/** Names of the tools that the model was shown in its last request, without our own. */
const shownTo = (rig: Rig): string[] =>
  toolsOf(rig)
    .map((tool) => tool.name)
    .filter((name) => name.startsWith('mcp__'));

/** All tools of the request at this place, counted from the last, -1. */
function toolsOf(rig: Rig, at = -1): { name: string }[] {
  const request = rig.rehearsal.requests.filter(({ path }) => path === '/v1/messages').at(at);
  return (request?.body as { tools: { name: string }[] } | undefined)?.tools ?? [];
}

const words = (call: ToolCall): string =>
  (call.result?.content ?? []).map((block) => (block.type === 'text' ? block.text : `(${block.type})`)).join('\n');

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

describe('a result', () => {
  it('keeps text, images and structure, is capped like any output, and says itself that it is an error', async () => {
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const wiki = await serve({
      mixed: {
        act: () => ({
          content: [
            { type: 'text', text: 'look:' },
            { type: 'image', data: png, mimeType: 'image/png' },
            { type: 'resource', resource: { uri: 'file:///a.txt', text: 'inside' } },
            { type: 'resource_link', uri: 'https://wiki.test/b', name: 'b' },
            { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
          ],
          structuredContent: { answer: 42 },
        }),
      },
      big: { act: () => said(`${'a line of the page\n'.repeat(20_000)}the end`) },
      wrong: { act: () => ({ ...said('no such page'), isError: true }) },
    });
    const rig = await open({ wiki }, { default_config: ALLOW });
    const mixed = onlyCall(await rig.run(callTask('mcp__wiki__mixed')));
    expect(words(mixed)).toBe(
      'look:\n(image)\n[file:///a.txt]\ninside\n[b: https://wiki.test/b]\n[Audio, audio/wav, 3 bytes: it can\'t be shown.]\n{\n  "answer": 42\n}',
    );
    const big = onlyCall(await rig.say(callTask('mcp__wiki__big')));
    expect(big.result?.outcome).toBe('ok');
    expect(words(big).length).toBeLessThan(40_000);
    expect(big.result?.blobs[0]?.bytes).toBe(20_000 * 19 + 7);
    const wrong = onlyCall(await rig.say(callTask('mcp__wiki__wrong')));
    expect(wrong.result).toMatchObject({ outcome: 'failed', isError: true });
    expect(words(wrong)).toBe('no such page');
  });

  it('of a server that dies in the middle of a call is unknown, and the session goes on', async () => {
    const wiki = await serve({ slow: { act: () => wiki.down().then(() => said('never heard')) } });
    const rig = await open({ wiki }, { default_config: ALLOW });
    const state = await rig.run(callTask('mcp__wiki__slow'));
    expect(onlyCall(state).result).toMatchObject({ outcome: 'unknown', isError: true });
    expect(words(onlyCall(state))).toMatch(/may have happened/);
    expect(state.stopReason).toEqual({ type: 'end_turn' });
  });

  it('of a server that forgot us comes all the same: the call had not run, so it is made again', async () => {
    const wiki = await serve({ echo: { act: ({ text }) => said(String(text)) } });
    const rig = await open({ wiki });
    const asking = await rig.run(callTask('mcp__wiki__echo', { text: 'still here' }));
    wiki.forget();
    expect(words(onlyCall(await rig.answer(onlyCall(asking).id, 'allow')))).toBe('still here');
    expect(wiki.calls).toHaveLength(1);
  });

  it('that does not come in time is given up, but not while the server tells how far it is', async () => {
    const wiki = await serve({
      silent: {
        act: (_, { signal }) =>
          new Promise((resolve) => signal.addEventListener('abort', () => resolve(said('stopped')))),
      },
      telling: {
        async act(_, { progress }) {
          for (let n = 1; n <= 6; n += 1) {
            await progress(n, 6, 'reading');
            await new Promise((resolve) => setTimeout(resolve, 500));
          }
          return said('read');
        },
      },
    });
    const rig = await open({ wiki }, { default_config: ALLOW }, { limits: { silence: 2_000 } });
    const output: string[] = [];
    rig.harness.onPreview((_, preview) => void (preview.type === 'output' && output.push(preview.text)));
    expect(onlyCall(await rig.run(callTask('mcp__wiki__silent'))).result?.outcome).toBe('timed_out');
    expect(onlyCall(await rig.say(callTask('mcp__wiki__telling'))).result?.outcome).toBe('ok');
    expect(output[0]).toBe('reading (1 of 6)\n');
  });
});

describe('a login', () => {
  const vault = (tokens: { now: string; next?: string }) => ({
    tokens: () => ({
      tokenFor: async (url: string) =>
        url.endsWith('/mcp')
          ? { credentialId: 'vcrd_1', token: tokens.now, refreshed: async () => tokens.next }
          : undefined,
    }),
  });

  it('is put in by the host on each request, renewed once when it is refused, and is nowhere else', async () => {
    const wiki = await serve({ echo: { act: ({ text }) => said(String(text)) } });
    wiki.letsIn = new Set(['fresh-token']);
    const rig = await open({ wiki }, { default_config: ALLOW }, vault({ now: 'stale-token', next: 'fresh-token' }));
    const state = await rig.run(callTask('mcp__wiki__echo', { text: 'in' }));
    expect(words(onlyCall(state))).toBe('in');
    expect(wiki.seen.every(({ authorization }) => /^Bearer (stale|fresh)-token$/.test(authorization ?? ''))).toBe(true);
    const everything = JSON.stringify([await rig.records(), rig.rehearsal.requests]);
    expect(everything).not.toMatch(/(stale|fresh)-token/);
    expect(eventsOf(await rig.records(), 'drover.egress').at(-1)?.credential_ids).toEqual(['vcrd_1']);
  });

  it('that is refused is an authentication error in one sentence, and the session goes on', async () => {
    const wiki = await serve({ echo: {} });
    wiki.letsIn = new Set(['another']);
    const rig = await open({ wiki }, {}, vault({ now: 'stale-token', next: 'wrong-token' }));
    expect((await rig.run('[rehearsal:say] hello')).stopReason).toEqual({ type: 'end_turn' });
    const [refused] = eventsOf(await rig.records(), 'session.error');
    expect(refused?.error).toMatchObject({ type: 'mcp_authentication_failed_error', mcp_server_name: 'wiki' });
    expect(refused?.error.message).toMatch(/refused the token that the session’s vaults have for it \(status 401\)/);
    const bare = await open({ wiki });
    await bare.run('[rehearsal:say] hello');
    const [missing] = eventsOf(await bare.records(), 'session.error');
    expect(missing?.error.message).toMatch(
      /wants a login \(status 401\), and the session’s vaults have no credential for http/,
    );
  });

  it('that ends during a turn costs the server’s tools, and the call says that it did not run', async () => {
    const wiki = await serve({ echo: {} });
    const tokens = { now: 'good' };
    wiki.letsIn = new Set(['good']);
    const rig = await open({ wiki }, {}, vault(tokens));
    const asking = await rig.run(callTask('mcp__wiki__echo'));
    wiki.letsIn = new Set();
    const state = await rig.answer(onlyCall(asking).id, 'allow');
    expect(onlyCall(state).result?.outcome).toBe('failed');
    expect(words(onlyCall(state))).toMatch(/The call did not run\.$/);
    expect(shownTo(rig)).toEqual([]);
  });

  it('never follows a redirect to another host', async () => {
    const thief = await serve({});
    const wiki = await serve({});
    wiki.redirect = { status: 307, location: thief.url };
    const rig = await open({ wiki }, {}, vault({ now: 'secret-token' }));
    await rig.run('[rehearsal:say] hello');
    expect(thief.seen).toEqual([]);
    const [error] = eventsOf(await rig.records(), 'session.error');
    expect(error?.error.type).toBe('mcp_connection_failed_error');
    expect(error?.error.message).toMatch(/Redirect to .* not followed/);
  });
});

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

describe('a server that runs in the sandbox', () => {
  const agent = {
    tools: [{ type: 'mcp_toolset' as const, mcp_server_name: 'local', default_config: ALLOW }],
    mcp_servers: [{ type: 'stdio' as const, name: 'local', command: 'node', args: ['-e', MCP_STDIO_SERVER] }],
  };
  const mcp = { stdio: stdioConnector() };

  it('makes one when its agent is asked, and its calls are put down to it; what it dies of is told', async () => {
    const rig = await Rig.open({ mcp, agent });
    const state = await rig.run(callTask('mcp__local__environment'));
    expect(onlyCall(state)).toMatchObject({ result: { outcome: 'ok' }, execution: { sandbox: state.sandbox } });
    const types = await rig.types();
    expect(types.indexOf('drover.sandbox_ready')).toBeLessThan(types.indexOf('drover.mcp_tools_listed'));

    const died = onlyCall(await rig.say(callTask('mcp__local__exit', { code: 3 })));
    expect(died.result?.outcome).toBe('unknown');
    expect(words(died)).toMatch(/^The MCP server “local” ended with exit code 3\. Its last words:\n.*exiting as told/s);
    rig.sandboxes.kill();
    const again = onlyCall(await rig.say(callTask('mcp__local__environment')));
    expect(again.result?.outcome).toBe('ok');
  });

  it('that can’t be started is quoted in the error, and one is never started without a sandbox', async () => {
    const broken = {
      ...agent,
      mcp_servers: [{ ...agent.mcp_servers[0], args: ['-e', 'console.error("no config"); process.exit(2)'] }],
    };
    const rig = await Rig.open({ mcp, agent: broken as typeof agent });
    expect((await rig.run('[rehearsal:say] hello')).stopReason).toEqual({ type: 'end_turn' });
    const [failed] = eventsOf(await rig.records(), 'session.error');
    expect(failed?.error.message).toMatch(
      /^The MCP server “local” ended .*no config\nThe session goes on without its tools\.$/s,
    );

    const bare = await Rig.open({ mcp, agent, config: { type: 'host' } });
    await bare.run('[rehearsal:say] hello');
    const [never] = eventsOf(await bare.records(), 'session.error');
    expect(never?.error.message).toMatch(/is not started, because its environment has no sandbox/);
    expect(bare.sandboxes.alive.size).toBe(0);
  });
});
