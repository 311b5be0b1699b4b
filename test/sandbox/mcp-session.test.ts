import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureSampleImage } from '../../scripts/image.mjs';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import type { SandboxProvider } from '../../src/sandbox/sandbox.ts';
import type { SessionState } from '../../src/session/state.ts';
import { stdioConnector } from '../../src/tools/mcp/stdio.ts';
import { describeWith, docker, engineAvailable } from '../support/engine.ts';
import { eventsOf } from '../support/events.ts';
import { eventually } from '../support/eventually.ts';
import { Rig } from '../unit/harness/rig.ts';
import { testServer } from './mcp-client.ts';
import { type Rig as Machine, makeImages, makeRig, SAMPLE } from './rig.ts';

const engine = await engineAvailable();

describeWith(engine, 'a session with an MCP server in its container', () => {
  let machine: Machine;
  let sandboxes: SandboxProvider;
  let idleMinutes = 0;

  beforeAll(async () => {
    await makeImages(ensureSampleImage);
  });
  beforeEach(async () => {
    idleMinutes = 0;
    machine = await makeRig();
    sandboxes = createSandboxProvider({
      ...machine.options,
      limits: () => ({ living: 0, idleMinutes }),
      idleCheckMs: 50,
    });
  });
  afterEach(async () => {
    await sandboxes.dispose();
    await machine.clear();
  });

  const open = () =>
    Rig.open({
      mcp: { stdio: stdioConnector() },
      deps: { sandboxes, alwaysRefold: false },
      config: { type: 'image', image: SAMPLE },
      agent: {
        tools: [
          {
            type: 'mcp_toolset',
            mcp_server_name: 'tester',
            default_config: { permission_policy: { type: 'always_allow' } },
          },
        ],
        mcp_servers: [testServer()],
      },
    });
  const task = (tool: string, input: object = {}) =>
    `[rehearsal:call tool=mcp__tester__${tool}] ${JSON.stringify(input)}`;
  const last = (state: SessionState) => [...state.calls.values()].at(-1);

  it('goes on when the container rests and when it is killed: a fresh server answers; the rest is removed with it', async () => {
    const rig = await open();
    try {
      const first = last(await rig.run(task('environment')));
      expect(first?.result).toMatchObject({ outcome: 'ok' });
      expect(JSON.stringify(first?.result?.content)).toContain('/workspace');
      const container = docker('ps', '--quiet', '--filter', `label=drover.session=${rig.session}`);
      const state = () => docker('inspect', '--format', '{{.State.Status}}', container);
      idleMinutes = 0.0001;
      await eventually('its rest', 20_000, () => state() === 'exited');
      idleMinutes = 0;
      expect(last(await rig.say(task('write', { path: 'woken.txt' })))?.result).toMatchObject({ outcome: 'ok' });
      expect(state()).toBe('running');
      docker('kill', container);
      expect(last(await rig.say(task('environment')))?.result).toMatchObject({ outcome: 'ok' });
      const records = await rig.records();
      expect(eventsOf(records, 'drover.sandbox_lost')).toHaveLength(1);
      expect(eventsOf(records, 'drover.sandbox_ready')).toHaveLength(2);
    } finally {
      await sandboxes.remove({ session: rig.session, record: async () => undefined }, 'the test is over');
    }
    expect(docker('ps', '--all', '--quiet', '--filter', `label=drover.session=${rig.session}`)).toBe('');
  }, 120_000);
});
