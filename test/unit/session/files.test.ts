import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { forkDrafts } from '../../../src/harness/fork.ts';
import { text } from '../../../src/protocol/content.ts';
import { mint } from '../../../src/protocol/ids.ts';
import { type Draft, draft, type LogRecord } from '../../../src/protocol/record.ts';
import { validateMessages } from '../../../src/rehearsal/validate.ts';
import { decide, nothingInHand } from '../../../src/session/decide.ts';
import { apply, fold } from '../../../src/session/fold.ts';
import type { SessionState } from '../../../src/session/state.ts';
import { transcript } from '../../../src/session/transcript.ts';
import { play, World } from './simulate.ts';

const worlds = fc.array(fc.integer({ min: 0, max: 999 }), { minLength: 40, maxLength: 400 });
const COMMIT = 'c'.repeat(40);

function logOf(choices: number[]): LogRecord[] {
  const world = new World(choices[Symbol.iterator]());
  play(world, 100);
  return world.records;
}

/** Applies a draft as the next record. */
function append(state: SessionState, { thread, event, local }: Draft): void {
  const record = {
    v: 1,
    seq: state.head.seq + 1,
    at: state.updatedAt,
    ...(thread ? { thread } : {}),
    fence: state.fence,
    prev: state.head.hash,
    event: { ...event, processed_at: event.processed_at === null ? null : state.updatedAt },
    ...(local ? { local } : {}),
    hash: `next${state.head.seq}`,
  };
  apply(state, record as LogRecord);
}

function assertSendable(state: SessionState): void {
  for (const id of state.threads.keys()) {
    const messages = transcript(state, id).map(({ role, blocks }) => ({
      role,
      content: blocks.map((one) => one.block),
    }));
    if (messages.at(-1)?.role !== 'user') messages.push({ role: 'user', content: [text('go on')] });
    expect(validateMessages(messages)).toBeUndefined();
  }
}

describe('files, in any log and at any record of it', () => {
  it('that are put back are told to every thread, in a conversation the model accepts, and start nothing', () => {
    fc.assert(
      fc.property(worlds, (choices) => {
        const records = logOf(choices);
        for (let length = 1; length <= records.length; length += 1) {
          const state = fold(records.slice(0, length));
          const before = decide(state, nothingInHand);
          const files = [{ path: 'src/a "b".ts', change: 'modified' as const }];
          append(state, draft('drover.files_restored', { commit: COMMIT, before: COMMIT, files_changed: 30, files }));
          assertSendable(state);
          expect(decide(state, nothingInHand)).toEqual(before);
          for (const id of state.threads.keys()) {
            expect(JSON.stringify(transcript(state, id))).toContain('and 29 more');
          }
        }
      }),
      { numRuns: 25 },
    );
  });

  it('and a fork rests there: nothing is asked for but what nobody has read yet', () => {
    fc.assert(
      fc.property(worlds, (choices) => {
        const records = logOf(choices);
        for (let length = 1; length <= records.length; length += 1) {
          const state = fold(records.slice(0, length));
          const from = { session: state.id, seq: state.head.seq, hash: state.head.hash };
          const actor = { type: 'person', via: 'command' } as const;
          const id = mint.session();
          for (const one of forkDrafts({ state, from, id, title: 'Fork', actor, now: Date.now() })) append(state, one);
          for (const step of decide(state, nothingInHand)) {
            expect(step.type).toBe('request_model');
            expect(step.type === 'request_model' && step.inputs.length).toBeGreaterThan(0);
          }
          expect([state.id, state.status, state.reserved.size]).toEqual([id, 'idle', 0]);
          assertSendable(state);
        }
      }),
      { numRuns: 25 },
    );
  });
});
