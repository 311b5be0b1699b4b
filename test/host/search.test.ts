import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import type { LiveSession } from '../../src/editor/live-session.ts';
import { SearchList } from '../../src/editor/search-sessions.ts';
import type { EventId } from '../../src/protocol/ids.ts';
import { eventually } from '../support/eventually.ts';
import { Stage } from './stage.ts';

interface Shown {
  session: LiveSession;
  event: EventId;
}

function listOf(stage: Stage): { list: SearchList; shown: Shown[] } {
  const shown: Shown[] = [];
  const list = new SearchList({
    projects: stage.projects.all(),
    sessions: stage.sessions,
    show: (session, event) => void shown.push({ session, event }),
    failed: (error) => void stage.failures.push(error),
  });
  return { list, shown };
}

describe('Search Sessions', () => {
  afterEach(() => vscode.commands.executeCommand('workbench.action.closeQuickOpen'));

  it('lists what is found with its session, its thread, what it is and how old, and shows the chosen event', async () => {
    await using stage = await Stage.open();
    const { session, calls } = await stage.asking(
      { name: 'bash', input: { command: 'grep -rn "kumquat $(trash)" src' } },
      { name: 'bash', input: { command: 'true' } },
    );
    const { list, shown } = listOf(stage);
    list.open();
    list.pick.value = 'kumquat';
    await eventually('the row', 10_000, () => list.pick.items.length === 1);
    const [row] = list.pick.items;
    assert.equal(row?.label, 'A session that asks');
    assert.equal(row?.description, 'Actor · given to a tool · now');
    assert.equal(row?.detail, 'bash grep -rn "kumquat \\$(trash)" src');
    assert.equal(row?.alwaysShow, true);

    await eventually('the row to be chosen', 5000, () => list.pick.activeItems.length === 1);
    await vscode.commands.executeCommand('workbench.action.acceptSelectedQuickOpenItem');
    await eventually('the event', 5000, () => shown.length === 1);
    assert.equal(shown[0]?.session, session);
    assert.equal(shown[0]?.event, calls[0]);
    assert.deepEqual(stage.failures, []);
  });

  it('finds in a second list what came since the first, and nothing for nothing', async () => {
    await using stage = await Stage.open();
    await stage.asking({ name: 'bash', input: { command: 'echo mangosteen' } });
    const first = listOf(stage).list;
    first.pick.value = 'mangosteen';
    first.open();
    await eventually('one row', 10_000, () => first.pick.items.length === 1);
    first.pick.value = '';
    await first.search();
    assert.equal(first.pick.items.length, 0);
    first.dispose();

    await stage.asking({ name: 'bash', input: { command: 'echo another mangosteen' } });
    const second = listOf(stage).list;
    second.pick.value = 'mangosteen';
    second.open();
    await eventually('two rows', 10_000, () => second.pick.items.length === 2);
    assert.equal(second.pick.items[0]?.detail, 'bash echo another mangosteen');
    second.dispose();
  });
});
