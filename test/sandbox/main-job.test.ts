import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { copySample } from '../../scripts/copy-sample.mjs';
import { createAnthropicClient } from '../../src/harness/anthropic.ts';
import { createHarness } from '../../src/harness/harness.ts';
import { openStore } from '../../src/log/store.ts';
import { createPolicy } from '../../src/policy/policy.ts';
import { text } from '../../src/protocol/content.ts';
import type { AgentSnapshot } from '../../src/protocol/drover-event.ts';
import { mint } from '../../src/protocol/ids.ts';
import { draft } from '../../src/protocol/record.ts';
import { startRehearsal } from '../../src/rehearsal/server.ts';
import { fold, pendingApprovals } from '../../src/session/fold.ts';
import { createToolbox } from '../../src/tools/toolbox.ts';
import { describeWith, docker, engineAvailable } from '../support/engine.ts';
import { environmentOf, makeRig, SAMPLE } from './rig.ts';

const engine = await engineAvailable();

const AGENT: AgentSnapshot = {
  name: 'Developer',
  model: 'drover-rehearsal',
  tools: [
    {
      type: 'agent_toolset_20260401',
      configs: [{ name: 'edit', permission_policy: { type: 'always_ask' } }],
    },
  ],
  multiagent: { type: 'coordinator', agents: [{ type: 'self' }] },
};

describeWith(engine, 'the main job', () => {
  it('finds the bug of the sample in its dev container, fixes it when allowed, and has a subagent check it', async () => {
    const rig = await makeRig();
    const rehearsal = await startRehearsal();
    await rm(rig.workspace, { recursive: true });
    await copySample(rig.workspace);
    const store = openStore({ root: join(rig.workspace, '.drover') });
    const client = createAnthropicClient({ apiKey: async () => 'rehearsal', baseUrl: () => rehearsal.url });
    const harness = createHarness({
      store,
      workspaceFolder: rig.workspace,
      modelFor: () => client,
      toolbox: ({ agent, roster, depth }) => createToolbox({ agent, roster: [...roster], depth }),
      sandboxes: rig.provider,
      policy: createPolicy(),
    });
    const session = mint.session();
    const primary = mint.thread();
    const state = async () => fold((await store.read(session)).records);
    try {
      await store.create(session, [
        draft('drover.session_created', {
          session_id: session,
          primary_thread_id: primary,
          title: 'Fix the sample',
          agent: AGENT,
          environment: environmentOf({ type: 'devcontainer' }),
          vault_ids: [],
          strategy: 'elide',
        }),
        draft(
          'user.message',
          { content: [text('[rehearsal:fix-the-sample] The test fails. Find out why and fix it.')] },
          { thread: primary, queued: true },
        ),
      ]);
      await harness.wake(session, 'a test');
      const asked = pendingApprovals(await state());
      expect(asked.map((call) => call.name)).toEqual(['edit']);
      const [edit] = asked;
      if (!edit) throw new Error('nothing asks');
      const writer = await store.acquire(session, 'a test');
      await writer.append([
        draft('user.tool_confirmation', { tool_use_id: edit.id, result: 'allow' }, { thread: primary }),
      ]);
      await harness.wake(session, 'a test');
      const end = await state();
      const endings = [...end.calls.values()].map((call) => `${call.name} ${call.result?.outcome}`);
      expect(end.stopReason, endings.join(', ')).toEqual({ type: 'end_turn' });
      expect([...end.threads.values()].length).toBe(2);
      expect([...end.sandboxes.values()].map((box) => box.state)).toEqual(['ready']);
      const mount = `${rig.workspace}:/workspace`;
      const verdict = docker(
        'run',
        '--rm',
        '--network',
        'none',
        '-v',
        mount,
        '-w',
        '/workspace',
        SAMPLE,
        'node',
        '--test',
      );
      expect(verdict).toMatch(/fail 0/);
    } finally {
      await harness.dispose();
      await store.dispose();
      await rehearsal.close();
      await rig.clear();
    }
  }, 120_000);
});
