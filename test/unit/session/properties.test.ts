import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { text } from '../../../src/protocol/content.ts';
import type { LogRecord } from '../../../src/protocol/record.ts';
import { validateMessages } from '../../../src/rehearsal/validate.ts';
import { decide, nothingInHand } from '../../../src/session/decide.ts';
import { apply, callPhase, fold } from '../../../src/session/fold.ts';
import { openQuestions } from '../../../src/session/fold-question.ts';
import type { SessionState } from '../../../src/session/state.ts';
import { transcript } from '../../../src/session/transcript.ts';
import { play, reply, result, take, World } from './simulate.ts';

const RUNS = { numRuns: 150 };

/** What the world does, as numbers: a counterexample shrinks to a few of them. */
const worlds = fc.array(fc.integer({ min: 0, max: 999 }), { minLength: 40, maxLength: 600 });

function logOf(choices: number[]): LogRecord[] {
  const world = new World(choices[Symbol.iterator]());
  play(world, 120);
  return world.records;
}

/** Every state a log goes through, each folded from nothing. */
function everyPrefix(records: LogRecord[], check: (state: SessionState, length: number) => void): void {
  for (let length = 1; length <= records.length; length += 1) check(fold(records.slice(0, length)), length);
}

const messagesOf = (state: SessionState, thread: Parameters<typeof transcript>[1]) =>
  transcript(state, thread).map(({ role, blocks }) => ({ role, content: blocks.map((one) => one.block) }));

/** Hundreds of made-up logs each, on machines that have other things to do. */
const PATIENT = { timeout: 120_000 };

describe('what any log promises', PATIENT, () => {
  it('folds to the same state from any cut', () => {
    fc.assert(
      fc.property(worlds, fc.nat(), (choices, at) => {
        const records = logOf(choices);
        const cut = 1 + (at % records.length);
        const state = fold(records.slice(0, cut));
        for (const record of records.slice(cut)) apply(state, record);
        expect(state).toEqual(fold(records));
      }),
      RUNS,
    );
  });

  it('passes over a record it has folded already', () => {
    fc.assert(
      fc.property(worlds, (choices) => {
        const records = logOf(choices);
        const state = fold(records);
        for (const record of records) apply(state, record);
        expect(state).toEqual(fold(records));
      }),
      { numRuns: 30 },
    );
  });

  it('gives, from any prefix, messages that the Messages API accepts, in every thread', () => {
    fc.assert(
      fc.property(worlds, (choices) => {
        const records = logOf(choices);
        everyPrefix(records, (state) => {
          for (const id of state.threads.keys()) {
            const messages = messagesOf(state, id);
            // A turn that is over is followed by what the person says next; nothing is sent before.
            if (messages.at(-1)?.role !== 'user') messages.push({ role: 'user', content: [text('go on')] });
            expect(validateMessages(messages)).toBeUndefined();
          }
        });
      }),
      { numRuns: 60 },
    );
  });

  it('never starts, from any prefix, a call that has a result, was started, was denied or lacks its approval', () => {
    fc.assert(
      fc.property(worlds, (choices) => {
        const records = logOf(choices);
        everyPrefix(records, (state) => {
          for (const step of decide(state, nothingInHand)) {
            if (step.type !== 'run_tool') continue;
            const call = state.calls.get(step.call);
            expect(call?.result).toBeNull();
            expect(call?.execution).toBeNull();
            expect(call?.refused).toBeNull();
            const allowed = call?.permission === 'allow' || call?.confirmation?.result === 'allow';
            expect(allowed).toBe(true);
            expect(call && callPhase(state, call)).toBe('approved');
          }
        });
      }),
      { numRuns: 60 },
    );
  });

  it('begins nothing, from any prefix, while a tripwire waits for a person', () => {
    let tripped = 0;
    fc.assert(
      fc.property(worlds, (choices) => {
        everyPrefix(logOf(choices), (state) => {
          if (!openQuestions(state).some(({ kind }) => kind === 'canary')) return;
          tripped += 1;
          for (const step of decide(state, nothingInHand)) {
            expect(['close_request', 'apply_interrupt', 'idle_thread', 'idle_session']).toContain(step.type);
          }
        });
      }),
      { numRuns: 60 },
    );
    expect(tripped).toBeGreaterThan(0);
  });

  it('never loses what a person typed: it is in the queue or in the transcript, once', () => {
    fc.assert(
      fc.property(worlds, (choices) => {
        const records = logOf(choices);
        everyPrefix(records, (state, length) => {
          const thread = state.threads.get(state.primary);
          const shown = JSON.stringify(messagesOf(state, state.primary));
          for (const record of records.slice(0, length)) {
            const event = record.event;
            if (event.type !== 'user.message' || !('content' in event)) continue;
            const said = JSON.stringify(event.content).slice(1, -1);
            const seen = shown.split(said).length - 1;
            expect(seen + (thread?.queue.includes(event.id) ? 1 : 0)).toBe(1);
          }
        });
      }),
      { numRuns: 60 },
    );
  });

  it('comes to rest from any prefix, whatever was open when the process died', () => {
    fc.assert(
      fc.property(worlds, fc.nat(), (choices, at) => {
        const records = logOf(choices);
        const world = World.from(records.slice(0, 1 + (at % records.length)));
        for (let rounds = 0; rounds < 400; rounds += 1) {
          const [step] = decide(world.state, world.inHand);
          if (step) take(world, step);
          else if (!finish(world)) break;
        }
        expect(decide(world.state, world.inHand)).toEqual([]);
        expect(world.state.status).toBe('idle');
        for (const thread of world.state.threads.values()) {
          const tripped = openQuestions(world.state).some(({ kind }) => kind === 'canary');
          const waits =
            tripped || thread.stopReason?.type === 'requires_action' || hasAskingChild(world.state, thread.id);
          if (!waits) expect(thread.queue).toEqual([]);
        }
      }),
      RUNS,
    );
  });
});

/** With no choices left the world's model ends its turn and its tools succeed. */
function finish(world: World): boolean {
  const [thread] = world.inHand.threads;
  if (thread) {
    world.inHand.threads.delete(thread);
    const open = world.state.threads.get(thread)?.open;
    if (open) {
      world.choices = calm[Symbol.iterator]();
      reply(world, thread, open.id);
    }
    return true;
  }
  const [call] = world.inHand.calls;
  if (!call) return false;
  world.inHand.calls.delete(call);
  world.choices = calm[Symbol.iterator]();
  result(world, call, 'ok');
  return true;
}

/** A whole reply, no calls, some words, the end of the turn. */
const calm = [9, 0, 1, 1];

const hasAskingChild = (state: SessionState, parent: Parameters<typeof transcript>[1]): boolean =>
  [...state.threads.values()].some((one) => one.parent === parent && one.stopReason?.type === 'requires_action');
