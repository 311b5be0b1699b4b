import type { Fault } from '../../src/rehearsal/faults.ts';
import type { Act, Where } from './plan.ts';
import type { Point } from './point.ts';

/** How often what can be struck comes in a session that is left alone. */
export interface Counts {
  appends: number;
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
  points: Point[];
  /** In every `npm test` one of so many is played, always the same ones. */
  sample: number;
}

const upTo = (n: number): number[] => Array.from({ length: n }, (_, index) => index + 1);
const every = (step: number, from: number, to: number): number[] =>
  upTo(to).filter((n) => n >= from && (n - from) % step === 0);

const append = (n: number, when: 'before' | 'after'): Where => ({ kind: 'append', n, when });
const strike = (where: Where, act: Exclude<Act, 'stop'>): Point => ({ kind: 'once', strike: { where, act } });

/** Every point there is to strike. */
export function groupsOf(counts: Counts): Group[] {
  const { appends, ready } = counts;
  return [
    {
      name: 'the host is killed right before an append',
      points: upTo(appends).map((n) => strike(append(n, 'before'), 'kill')),
      sample: 9,
    },
    {
      name: 'the host is killed right after an append',
      points: upTo(appends).map((n) => strike(append(n, 'after'), 'kill')),
      sample: 9,
    },
    {
      name: 'the host is killed while a call runs',
      points: during('running', counts.running, [15, 60, 150, 400]),
      sample: 8,
    },
    {
      name: 'the host is killed while a sandbox is made',
      points: during('provisioning', counts.provisioning, [20, 150, 350]),
      sample: 4,
    },
    {
      name: 'the host is killed while it makes the session',
      points: upTo(counts.opening).map((n) => strike({ kind: 'opening', n }, 'kill')),
      sample: 2,
    },
    { name: 'the next host is killed too, while it wakes the session', points: wakings(counts), sample: 12 },
    {
      name: 'every host is killed after a few appends',
      points: [9, 5, 6, 7, 8, 12].map((n) => ({ kind: 'again', every: n })),
      sample: 6,
    },
    {
      name: 'the container is killed',
      points: every(3, ready, appends).map((n) => strike(append(n, 'after'), 'kill_container')),
      sample: 9,
    },
    {
      name: 'container and host are killed',
      points: every(3, ready + 1, appends).map((n) => strike(append(n, 'after'), 'reboot')),
      sample: 9,
    },
    {
      name: 'the power fails in the middle of a write',
      points: every(2, 3, appends).map(
        (n, index): Point => ({ kind: 'torn', n, share: [0.2, 0.5, 0.9][index % 3] ?? 0 }),
      ),
      sample: 9,
    },
    { name: 'the model’s answer breaks off', points: faults(counts), sample: 9 },
    { name: 'the host stops for longer than its lease', points: pauses(counts), sample: 6 },
  ];
}

/** The disk is full from some append on: only where a small one can be had. */
export const fullDisks = ({ appends }: Counts): Group => ({
  name: 'the disk is full',
  // Near the end a record or two may still fit in what the disk rounds up.
  points: every(5, 2, appends - 5).map((n) => strike(append(n, 'before'), 'fill_disk')),
  sample: 5,
});

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

/** Also directly after a call was recorded as started, when the next host has done it anew. */
function pauses({ appends, ready }: Counts): Point[] {
  const started: Point[] = [3, 22, 0].map((n) => ({ kind: 'pause', where: append(ready + 1, 'after'), appends: n }));
  const others = every(7, 3, appends - 3).map((n, index): Point => {
    const when = index % 2 === 0 ? 'before' : 'after';
    return { kind: 'pause', where: append(n, when), appends: [6, 18, 0][index % 3] ?? 0 };
  });
  return [...started, ...others];
}
