import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readLog } from '../../../src/log/read.ts';
import { verifySession } from '../../../src/log/verify.ts';
import { text } from '../../../src/protocol/content.ts';
import { FORMAT_VERSION } from '../../../src/protocol/record.ts';
import { validateMessages } from '../../../src/rehearsal/validate.ts';
import { decide, nothingInHand } from '../../../src/session/decide.ts';
import { apply, fold } from '../../../src/session/fold.ts';
import { resume } from '../../../src/session/snapshot.ts';
import type { SessionState, ThreadState } from '../../../src/session/state.ts';
import { transcript } from '../../../src/session/transcript.ts';
import { keptOf } from '../session/kept.ts';
import { record, recordings } from './record-logs.ts';

const LOGS = join(import.meta.dirname, '../../fixtures/logs');
/** `UPDATE_FIXTURES=1` records what has no log yet, in the version this program writes. Logs that are there stay. */
const RECORDS = process.env.UPDATE_FIXTURES === '1';
const current = join(LOGS, `v${FORMAT_VERSION}`);

/** A state as text that people can compare: maps as objects, and of a request that is an entry too, its id. */
const shown = (state: SessionState): string =>
  `${JSON.stringify(
    state,
    (key, value: unknown) => {
      if (value instanceof Map) return Object.fromEntries(value);
      return (key === 'open' || key === 'last') && isRequest(value) ? value.id : value;
    },
    1,
  )}\n`;

const isRequest = (value: unknown): value is NonNullable<ThreadState['last']> =>
  typeof value === 'object' && value !== null && 'type' in value && value.type === 'request';

if (RECORDS) {
  describe('recording', () => {
    for (const name of Object.keys(recordings)) {
      const folder = join(current, name);
      if (!existsSync(folder)) it(name, () => record(name, folder), 60_000);
    }
  });
}

describe('the stored logs', () => {
  it('are there for every session that can be recorded', () => {
    expect(readdirSync(current).sort()).toEqual(Object.keys(recordings).sort());
  });

  for (const version of readdirSync(LOGS)) {
    for (const name of readdirSync(join(LOGS, version))) {
      const folder = join(LOGS, version, name);

      it(`${version}/${name} folds to what it did when it was written`, async () => {
        const { records, ...found } = await readLog(join(folder, 'log.jsonl'));
        expect(found).toEqual({ damage: [], tornBytes: 0, stale: 0, newer: false });
        await expect(shown(fold(records))).toMatchFileSnapshot(join(folder, 'state.json'));
      });

      it(`${version}/${name} is whole, can go on, and can be kept at any record`, async () => {
        expect((await verifySession(folder)).wrong.listed).toEqual([]);
        const { records } = await readLog(join(folder, 'log.jsonl'));
        const state = fold(records);
        expect(decide(state, nothingInHand)).toEqual([]);
        for (const id of state.threads.keys()) {
          const messages = transcript(state, id).map(({ role, blocks }) => ({
            role,
            content: blocks.map((one) => one.block),
          }));
          if (messages.at(-1)?.role !== 'user') messages.push({ role: 'user', content: [text('go on')] });
          expect(validateMessages(messages)).toBeUndefined();
        }
        for (let cut = 1; cut <= records.length; cut++) {
          const again = resume(keptOf(fold(records.slice(0, cut))));
          for (const one of records.slice(cut)) apply(again, one);
          expect(again).toEqual(state);
        }
      });
    }
  }
});
