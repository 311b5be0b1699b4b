import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fold } from '../../../src/session/fold.ts';
import { FOLD_VERSION, Folding } from '../../../src/session/snapshot.ts';
import { lastMessage, Rig } from './rig.ts';

describe('the state of a long session', () => {
  it('is kept when the session comes to rest, and the next harness goes on from it', async () => {
    const rig = await Rig.open({ deps: { alwaysRefold: false } });
    const folder = join(rig.folder, '.drover', 'sessions', rig.session);
    const snapshot = join(folder, 'snapshot.jsonl');
    await rig.run('[rehearsal:parallel]');
    expect(existsSync(snapshot)).toBe(false);
    for (let turn = 0; turn < 80 && !existsSync(snapshot); turn++) await rig.say(`[rehearsal:say] turn ${turn}`);
    expect(existsSync(snapshot)).toBe(true);
    const kept = readFileSync(snapshot);
    await rig.restart();
    expect(lastMessage(await rig.say('[rehearsal:say] and on'))).toContain('and on');
    // Too little has come since for another one.
    expect(readFileSync(snapshot).equals(kept)).toBe(true);
    const folding = new Folding();
    let read = 0;
    await rig.store.scan(rig.session, FOLD_VERSION, {
      kept: (state) => folding.kept(state),
      take(records) {
        read += records.length;
        folding.take(records);
      },
    });
    const all = await rig.records();
    expect(read).toBeLessThan(40);
    expect(all.length).toBeGreaterThan(500);
    expect(folding.state).toEqual(fold(all));
    expect((await rig.store.verify(rig.session)).wrong.listed).toEqual([]);
  }, 120_000);

  it('that is not what it was is of no matter: the log is folded', async () => {
    const rig = await Rig.open({ deps: { alwaysRefold: false } });
    await rig.run('[rehearsal:parallel]');
    const folder = join(rig.folder, '.drover', 'sessions', rig.session);
    writeFileSync(join(folder, 'snapshot.jsonl'), '{"v":1,"fold":1}\n{}\n');
    await rig.restart();
    expect(lastMessage(await rig.say('[rehearsal:say] all the same'))).toContain('all the same');
  });
});
