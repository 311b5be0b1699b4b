import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { LogRecord } from '../../../src/protocol/record.ts';
import { decide, nothingInHand } from '../../../src/session/decide.ts';
import { apply, fold } from '../../../src/session/fold.ts';
import { FOLD_VERSION, Folding, folded, pagesOf, resume } from '../../../src/session/snapshot.ts';
import type { SessionState } from '../../../src/session/state.ts';
import { transcript } from '../../../src/session/transcript.ts';
import { keptOf } from './kept.ts';
import { play, World } from './simulate.ts';

const worlds = fc.array(fc.integer({ min: 0, max: 999 }), { minLength: 40, maxLength: 600 });

function logOf(choices: number[]): LogRecord[] {
  const world = new World(choices[Symbol.iterator]());
  play(world, 120);
  return world.records;
}

const bytes = (state: SessionState): Uint8Array[] => [...pagesOf(state)].map((page) => new TextEncoder().encode(page));

/** A state that was kept and taken up again. */
const kept = (state: SessionState): SessionState => resume(keptOf(state));

/** Hundreds of made-up logs each, on machines that have other things to do. */
const PATIENT = { timeout: 120_000 };

describe('a kept state', PATIENT, () => {
  it('is the state, from any cut of any log, whether it is looked at or not', () => {
    fc.assert(
      fc.property(worlds, fc.nat(), (choices, at) => {
        const records = logOf(choices);
        const cut = 1 + (at % records.length);
        expect(kept(fold(records.slice(0, cut)))).toEqual(fold(records.slice(0, cut)));
      }),
      { numRuns: 100 },
    );
  });

  it('with the records behind it gives what all records give, from every cut', () => {
    fc.assert(
      fc.property(worlds, (choices) => {
        const records = logOf(choices);
        const all = fold(records);
        for (let cut = 1; cut <= records.length; cut++) {
          const state = kept(fold(records.slice(0, cut)));
          for (const record of records.slice(cut)) apply(state, record);
          expect(state).toEqual(all);
        }
      }),
      { numRuns: 15 },
    );
  });

  it('can be kept and taken up again at every record, and never drifts', () => {
    fc.assert(
      fc.property(worlds, (choices) => {
        const records = logOf(choices);
        let state = fold(records.slice(0, 1));
        for (const record of records.slice(1)) state = apply(kept(state), record);
        expect(state).toEqual(fold(records));
      }),
      { numRuns: 30 },
    );
  });

  it('decides and speaks as the state does', () => {
    fc.assert(
      fc.property(worlds, fc.nat(), (choices, at) => {
        const records = logOf(choices);
        const state = fold(records.slice(0, 1 + (at % records.length)));
        const again = kept(state);
        expect(decide(again, nothingInHand)).toEqual(decide(state, nothingInHand));
        for (const id of state.threads.keys()) expect(transcript(again, id)).toEqual(transcript(state, id));
      }),
      { numRuns: 100 },
    );
  });

  it('of which only the first page is there is made anew from the log, whatever is looked at first', () => {
    fc.assert(
      fc.property(worlds, fc.nat(), fc.boolean(), (choices, at, moves) => {
        const records = logOf(choices);
        const cut = 1 + (at % records.length);
        const before = records.slice(0, cut);
        const again = resume({ ...keptOf(fold(before)), rest: () => null, replay: (each) => each(before) });
        if (!moves) expect(again).toEqual(fold(before));
        for (const record of records.slice(cut)) apply(again, record);
        expect(again).toEqual(fold(records));
      }),
      { numRuns: 60 },
    );
  });

  it('gives the open and the last request as they are, also when entries have moved before they are asked for', () => {
    fc.assert(
      fc.property(worlds, (choices) => {
        const records = logOf(choices);
        for (let cut = 1; cut <= records.length; cut += 3) {
          const state = fold(records.slice(0, cut));
          const again = kept(state);
          for (const one of again.threads.values()) {
            one.entries.reverse();
            const { open, last } = state.threads.get(one.id) ?? one;
            expect(one.open?.id).toBe(open?.id);
            expect(one.last?.id).toBe(last?.id);
            for (const request of [one.open, one.last]) if (request) expect(one.entries.includes(request)).toBe(true);
          }
        }
      }),
      { numRuns: 30 },
    );
  });

  it('reads, for a list of sessions, the first page only', () => {
    const state = fold(long());
    const rest = vi.fn(() => bytes(state).slice(1));
    const again = resume({ ...keptOf(state), rest });
    expect(rest().length).toBeGreaterThan(6);
    expect(again).toMatchObject({ title: state.title, head: state.head, status: state.status, usage: state.usage });
    expect(again.sandboxes).toEqual(state.sandboxes);
    expect([...again.threads.values()].map((thread) => thread.queue)).toEqual(
      [...state.threads.values()].map((thread) => thread.queue),
    );
    expect(rest).toHaveBeenCalledTimes(1);
    expect(again.calls).toEqual(state.calls);
    expect(again.seqOf).toEqual(state.seqOf);
    expect(again.threads).toEqual(state.threads);
    expect(rest).toHaveBeenCalledTimes(2);
  });

  it('of which a page is missing is made anew from the log', () => {
    const records = long();
    const state = fold(records);
    const rest = bytes(state).slice(2);
    expect(resume({ ...keptOf(state), rest: () => rest, replay: (each) => each(records) })).toEqual(state);
  });

  it('whose first page is none is refused, and the log is folded instead', async () => {
    const records = long();
    const spoiled = { ...keptOf(fold(records)), first: new TextEncoder().encode('{"session":{}}') };
    expect(new Folding().kept(spoiled)).toBe(false);
    const state = await folded(async (version, into) => {
      expect(version).toBe(FOLD_VERSION);
      into.take(records.slice(into.kept(spoiled) ? 10 : 0));
    });
    expect(state).toEqual(fold(records));
  });
});

/** A session with several pages of everything. */
function long(): LogRecord[] {
  const world = new World([][Symbol.iterator]());
  let seed = 7;
  world.choices = (function* () {
    for (;;) {
      seed = (seed * 48271) % 2147483647;
      yield seed % 1000;
    }
  })();
  for (let rounds = 0; world.records.length < 4000 && rounds < 400; rounds++) {
    world.say(world.state.primary);
    play(world, 200);
  }
  return world.records;
}

describe('the version of the fold', () => {
  it('is raised when the fold is changed, so that no state of an older one is used', () => {
    const sources = [
      'fold.ts',
      'fold-files.ts',
      'fold-question.ts',
      'fold-reply.ts',
      'fold-status.ts',
      'new-thread.ts',
      'state.ts',
      'snapshot.ts',
    ];
    const hash = createHash('sha256');
    for (const name of sources) {
      const source = readFileSync(join(import.meta.dirname, '../../../src/session', name), 'utf8');
      hash.update(source.replaceAll(/\/\*.*?\*\/|\/\/[^\n]*|\s+/gs, ''));
    }
    // If what is folded has changed, raise FOLD_VERSION; then write here what the test says it has got.
    expect({ version: FOLD_VERSION, sources: hash.digest('hex').slice(0, 16) }).toEqual({
      version: 3,
      sources: '13d4a8b35016b10e',
    });
  });
});
