import assert from 'node:assert/strict';
import { GoingOn } from '../../src/editor/going-on.ts';
import { createSession } from '../../src/editor/start-session.ts';
import { eventually } from '../support/eventually.ts';
import { Stage } from './stage.ts';

async function leftBehind(stage: Stage) {
  const catalog = await stage.project.catalog();
  const agent = catalog.agents().find(({ id }) => id === 'agent_rehearsal');
  const [environment] = catalog.environments();
  assert.ok(agent && environment);
  const wanted = { agent, roster: [], environment, task: '[rehearsal:say] Here I am again.' };
  const id = await createSession(stage.project, wanted);
  await (await stage.project.store.acquire(id, 'the test')).release();
  return await stage.find(id);
}

describe('A session that nobody works on', () => {
  it('goes on by itself when a window opens, from where its log ends', async () => {
    await using stage = await Stage.open();
    const session = await leftBehind(stage);
    assert.equal(session.state?.status, 'idle');
    const goingOn = new GoingOn(stage.sessions, stage.actions);
    try {
      await eventually('the session to end its turn', 20_000, () => session.state?.stopReason?.type === 'end_turn');
      const { records } = await stage.project.store.read(session.id);
      const words = records
        .filter(({ event }) => event.type === 'agent.message')
        .map(({ event }) => JSON.stringify(event));
      assert.match(words.join(), /Here I am again\./);
      assert.deepEqual(stage.failures, []);
    } finally {
      goingOn.dispose();
    }
  });

  it('is left alone while it waits for a person', async () => {
    await using stage = await Stage.open();
    const { session } = await stage.asking({ name: 'bash', input: { command: 'true' } });
    const before = session.state?.head.seq;
    const goingOn = new GoingOn(stage.sessions, stage.actions);
    try {
      await stage.sessions.ready;
      await new Promise((resolve) => setTimeout(resolve, 500));
      assert.equal(session.state?.head.seq, before);
      assert.equal(session.awake, false);
    } finally {
      goingOn.dispose();
    }
  });
});
