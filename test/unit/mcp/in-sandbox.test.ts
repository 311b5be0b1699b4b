import { describe, expect, it } from 'vitest';
import { stdioConnector } from '../../../src/tools/mcp/stdio.ts';
import { eventsOf } from '../../support/events.ts';
import { MCP_STDIO_SERVER } from '../../support/mcp-stdio-server.ts';
import { Rig } from '../harness/rig.ts';
import { ALLOW, callTask, onlyCall, words } from './kit.ts';

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
