import type { Fault } from '../../src/rehearsal/faults.ts';
import { canMount } from '../support/memory-disk.ts';
import { canHaveEngine } from './own-engine.ts';
import type { Act, Where } from './plan.ts';
import type { Point } from './point.ts';

/** How often what can be struck comes in a session that is left alone. */
export interface Counts {
  appends: number;
  /** How many records each of them wrote. */
  sizes: readonly number[];
  /** The append by which the first container is ready. */
  ready: number;
  /** Times the log asks for the time while it makes the session. */
  opening: number;
  /** Calls started. */
  running: number;
  provisioning: number;
  /** Requests to the model. */
  requests: number;
}

export interface Group {
  name: string;
  points(counts: Counts): Point[];
  /** In every `npm test` one of so many is played, always the same ones. */
  sample: number;
  /** What it needs of its own, which not every machine lets us have. */
  needs?: 'disk' | 'engine';
}

const upTo = (n: number): number[] => Array.from({ length: n }, (_, index) => index + 1);
const every = (step: number, from: number, to: number): number[] =>
  upTo(to).filter((n) => n >= from && (n - from) % step === 0);

const append = (n: number, when: 'before' | 'after'): Where => ({ kind: 'append', n, when });
const strike = (where: Where, act: Exclude<Act, 'stop'>): Point => ({ kind: 'once', strike: { where, act } });

/** What belongs together is not always written together: the last one, that another run may not have, is left out. */
const cuts = (sizes: readonly number[], records: number): Point[] =>
  upTo(Math.max(1, sizes.filter((size) => size > records).length - 1)).map((n) => ({ kind: 'cut', n, records }));

/** All ways to strike a session, and in each every point there is. */
export const GROUPS: readonly Group[] = [
  {
    name: 'the host is killed right before an append',
    points: ({ appends }) => upTo(appends).map((n) => strike(append(n, 'before'), 'kill')),
    sample: 14,
  },
  {
    name: 'the host is killed right after an append',
    points: ({ appends }) => upTo(appends).map((n) => strike(append(n, 'after'), 'kill')),
    sample: 14,
  },
  {
    name: 'the host is killed while a call runs',
    points: ({ running }) => during('running', running, [15, 60, 150, 400]),
    sample: 12,
  },
  {
    name: 'the host is killed while a sandbox is made',
    points: ({ provisioning }) => during('provisioning', provisioning, [20, 150, 350]),
    sample: 6,
  },
  {
    name: 'the host is killed while it makes the session',
    points: ({ opening }) => upTo(opening).map((n) => strike({ kind: 'opening', n }, 'kill')),
    sample: 3,
  },
  { name: 'the next host is killed too, while it wakes the session', points: wakings, sample: 24 },
  {
    name: 'every host is killed after a few appends',
    points: () => [9, 5, 6, 7, 8, 12].map((n) => ({ kind: 'again', every: n })),
    sample: 6,
  },
  {
    name: 'the container is killed',
    points: ({ ready, appends }) => every(3, ready, appends).map((n) => strike(append(n, 'after'), 'kill_container')),
    sample: 18,
  },
  {
    name: 'container and host are killed',
    points: ({ ready, appends }) => every(3, ready + 1, appends).map((n) => strike(append(n, 'after'), 'reboot')),
    sample: 18,
  },
  {
    name: 'the power fails in the middle of a write',
    points: ({ appends }) =>
      every(2, 3, appends).map((n, index) => ({ kind: 'torn', n, share: [0.2, 0.5, 0.9][index % 3] ?? 0 })),
    sample: 14,
  },
  {
    name: 'the power fails between two records of a write',
    points: ({ sizes }) => upTo(Math.max(...sizes) - 1).flatMap((records) => cuts(sizes, records)),
    sample: 16,
  },
  { name: 'the model’s answer breaks off', points: faults, sample: 16 },
  { name: 'the host stops for longer than its lease', points: pauses, sample: 11 },
  {
    name: 'the disk is full',
    // Near the end a record or two may still fit in what the disk rounds up.
    points: ({ appends }) => every(5, 2, appends - 5).map((n) => strike(append(n, 'before'), 'fill_disk')),
    sample: 10,
    needs: 'disk',
  },
  {
    name: 'the engine is killed and started again',
    points: ({ ready, appends }) => every(4, ready, appends).map((n) => strike(append(n, 'after'), 'restart_engine')),
    sample: 12,
    needs: 'engine',
  },
];

/** Why a group can't be played here; undefined if it can. */
export function lacking({ needs }: Group): string | undefined {
  if (needs === 'disk' && !canMount()) return 'a disk of its own takes root on Linux';
  if (needs === 'engine' && !canHaveEngine()) return 'an engine of its own takes root on Linux, and dockerd';
  return undefined;
}

/** The points of a group that every `npm test` plays. */
export const sampleOf = ({ points, sample }: Group, counts: Counts): Point[] =>
  points(counts).filter((_, index) => index % sample === 0);

const during = (kind: 'running' | 'provisioning', count: number, delays: readonly number[]): Point[] =>
  upTo(count).flatMap((n) => delays.map((ms) => strike({ kind, n, ms }, 'kill')));

/** A first host is killed at a few telling moments; the second between the files of its lease, and at its first appends. */
function wakings({ ready }: Counts): Point[] {
  const moments = [append(ready - 2, 'after'), append(ready + 2, 'after'), append(ready + 9, 'after')];
  const second: Where[] = [
    ...upTo(4).map((n): Where => ({ kind: 'opening', n })),
    ...[2, 3, 4, 5].map((n) => append(n, 'before')),
  ];
  return moments.flatMap((first) => second.map((where): Point => ({ kind: 'twice', first, second: where })));
}

function faults({ requests }: Counts): Point[] {
  const others: Fault[] = [
    { kind: 'cut_stream', afterBytes: 700 },
    { kind: 'error_event', type: 'overloaded_error', afterBytes: 700 },
    { kind: 'reset' },
    { kind: 'status', status: 529 },
  ];
  return upTo(requests).flatMap((n): Point[] => {
    const request = n - 1;
    const other = others[request % others.length];
    const drop: Point = { kind: 'fault', request, fault: { kind: 'drop', afterBytes: 700 } };
    return other ? [drop, { kind: 'fault', request, fault: other }] : [drop];
  });
}

/** Also when a call was recorded as started but may not have reached the engine, and the next host has done it anew. */
function pauses({ appends, ready }: Counts): Point[] {
  const started: Point[] = [3, 22, 0].map((n) => ({ kind: 'pause', where: append(ready + 1, 'after'), appends: n }));
  const onTheWay = [2, 6, 12, 20, 30, 45, 60, 90].map((ms): Point => {
    return { kind: 'pause', where: { kind: 'running', n: 1, ms }, appends: 22 };
  });
  const others = every(7, 3, appends - 3).map((n, index): Point => {
    const when = index % 2 === 0 ? 'before' : 'after';
    return { kind: 'pause', where: append(n, when), appends: [6, 18, 0][index % 3] ?? 0 };
  });
  return [...started, ...onTheWay, ...others];
}
