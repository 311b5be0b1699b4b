import { setTimeout as sleep } from 'node:timers/promises';
import { openStore } from '../../src/log/store.ts';
import type { Fault } from '../../src/rehearsal/faults.ts';
import { startRehearsal } from '../../src/rehearsal/server.ts';
import { eventually } from '../support/eventually.ts';
import { Course, type CourseOptions } from './course.ts';
import type { HostProcess } from './host-process.ts';
import type { OwnEngine } from './own-engine.ts';
import type { Act, Strike, Where } from './plan.ts';
import { type Allowed, type Verdict, verdictOf } from './verdict.ts';

/** One way for a session to be struck. */
export type Point =
  /** Once, at one moment. */
  | { kind: 'once'; strike: Strike & { act: Exclude<Act, 'stop'> } }
  /** The host is killed at one moment, and the one that wakes the session after it at another. */
  | { kind: 'twice'; first: Where; second: Where }
  /** Each host process is killed after so many appends or a few more, until one gets to the end. */
  | { kind: 'again'; every: number }
  /** Container and host die, and of what the host wrote last only this share is on the disk. */
  | { kind: 'torn'; n: number; share: number }
  /** The same, but it is whole records that are on the disk: the first of several of one write of more than those. */
  | { kind: 'cut'; n: number; records: number }
  /** A request to the model fails, counted from 0. */
  | { kind: 'fault'; request: number; fault: Fault }
  /**
   * The host stops for longer than its lease; another takes over, and when that has made so many appends
   * (or, with 0, has got to the end) the first one goes on.
   */
  | { kind: 'pause'; where: Where; appends: number };

export interface Rig {
  /** A folder of the run's own. */
  folder: string;
  /** Where the rehearsal answers. */
  url: string;
  /** An engine that may be killed, for the points that do so. */
  engine?: OwnEngine;
}

/** The point as one line, and as the name of a folder. */
export function nameOf(point: Point): string {
  switch (point.kind) {
    case 'once':
      return `${point.strike.act} ${nameOfPlace(point.strike.where)}`;
    case 'twice':
      return `kill ${nameOfPlace(point.first)}, and the next ${nameOfPlace(point.second)}`;
    case 'again':
      return `kill after every ${point.every} appends`;
    case 'torn':
      return `${point.share * 100} % of append ${point.n} on the disk`;
    case 'cut':
      return `${point.records} records on the disk of append ${point.n} of those with more`;
    case 'fault':
      return `${point.fault.kind} in request ${point.request}`;
    case 'pause':
      return `stop ${nameOfPlace(point.where)}, resume after ${point.appends || 'all'} appends of the next`;
  }
}

function nameOfPlace(where: Where): string {
  switch (where.kind) {
    case 'append':
      return `${where.when} append ${where.n}`;
    case 'batch':
      return `after append ${where.n} of those with more than ${where.records} records`;
    case 'opening':
      return `at clock ${where.n} of the opening`;
    default:
      return `${where.ms} ms into ${where.kind} ${where.n}`;
  }
}

/** Host processes for one session at most, where each is killed after a few appends. */
const MOST_HOSTS = 60;
/** ms. Short, as it has to run out; long enough for a busy machine to renew it. */
const LEASE_MS = 2500;
/** ms. What a session waits after each of many crashes in a row is not under test here. */
const RETRY_MS = 20;
/** Room for the log and a little more. */
const DISK_KIB = 1024;

/** Plays a session, strikes, lets it go on, and looks at what is left. Undefined if it was over before it could be struck. */
export async function survive(point: Point, rig: Rig): Promise<Verdict | undefined> {
  const folder = `${rig.folder}/${nameOf(point).replaceAll(/[^a-z0-9]+/gi, '-')}`;
  switch (point.kind) {
    case 'once':
      return once(point, folder, rig);
    case 'twice':
      return twice(point, folder, rig);
    case 'again':
      return again(point, folder, rig);
    case 'torn':
      return torn(point, folder, rig);
    case 'cut':
      return cut(point, folder, rig);
    case 'fault':
      return faulty(point, folder);
    case 'pause':
      return paused(point, folder, rig);
  }
}

/** Plays by `act`, and judges what it left. What `act` finds wrong comes first; undefined: the point was not reached. */
async function play(
  folder: string,
  options: CourseOptions,
  act: (course: Course) => Promise<string[] | undefined>,
  allowed?: Allowed,
): Promise<Verdict | undefined> {
  await using course = await Course.open(folder, options);
  const found = await act(course);
  if (!found) return undefined;
  const verdict = await verdictOf(course, allowed);
  return { ...verdict, problems: [...found, ...verdict.problems] };
}

/** Waits for a host's end; what it should not have said. */
async function endOf(host: HostProcess, said: 'done' | 'lost' | 'killed'): Promise<string[]> {
  const problem = await host.ended();
  if (problem !== undefined) return [problem];
  return said === 'killed' || host.has(said) ? [] : [`a host ended without being ${said}`];
}

function once({ strike }: Extract<Point, { kind: 'once' }>, folder: string, { url, engine }: Rig) {
  const isFull = strike.act === 'fill_disk';
  const act = async (course: Course) => {
    const host = course.start(strike);
    const kills = strike.act === 'kill' || strike.act === 'reboot';
    const problems = await endOf(host, kills ? 'killed' : 'done');
    if (!host.has('strikes')) return problems.length > 0 ? problems : undefined;
    if (isFull) return [...problems, ...pauseProblems(host)];
    return kills ? [...problems, ...(await endOf(course.start(), 'done'))] : problems;
  };
  const deadContainer = strike.act !== 'kill' && strike.act !== 'fill_disk';
  const options: CourseOptions = { url, ...(isFull ? { diskKib: DISK_KIB } : {}) };
  if (strike.act === 'restart_engine' && engine) options.engine = engine;
  return play(folder, options, act, { deadContainer });
}

function pauseProblems(host: HostProcess): string[] {
  const said = host.lines.flatMap((line) => (line.said === 'paused' ? [line.message] : []));
  if (said.length === 0) return ['the disk was full and the session did not say so'];
  return said.filter((one) => !/could not be saved: .*(free some space|fitted on the disk)/.test(one));
}

function twice({ first, second }: Extract<Point, { kind: 'twice' }>, folder: string, { url }: Rig) {
  return play(folder, { url }, async (course) => {
    const problems: string[] = [];
    for (const where of [first, second]) {
      const host = course.start({ where, act: 'kill' });
      problems.push(...(await endOf(host, 'killed')));
      if (!host.has('strikes')) return problems.length > 0 ? problems : undefined;
    }
    return [...problems, ...(await endOf(course.start(), 'done'))];
  });
}

function again({ every }: Extract<Point, { kind: 'again' }>, folder: string, { url }: Rig) {
  return play(folder, { url, retryBaseMs: RETRY_MS }, async (course) => {
    for (let hosts = 0; hosts < MOST_HOSTS; hosts += 1) {
      // Not always at the same step: whoever dies between a call's start and its act each time never gets anything done.
      const n = every + ((hosts * 3) % 5);
      const host = course.start({ where: { kind: 'append', n, when: 'after' }, act: 'kill' });
      const problem = await host.ended();
      if (problem !== undefined) return [problem];
      if (host.has('done')) return [];
    }
    return [`it was not done after ${MOST_HOSTS} hosts`];
  });
}

function torn({ n, share }: Extract<Point, { kind: 'torn' }>, folder: string, { url }: Rig) {
  const act = powerFailure({ kind: 'append', n, when: 'after' }, (course, host) => course.tearOff(host, share));
  return play(folder, { url }, act, { torn: true, deadContainer: true });
}

function cut({ n, records }: Extract<Point, { kind: 'cut' }>, folder: string, { url }: Rig) {
  const act = powerFailure({ kind: 'batch', n, records }, (course, host) => course.cutOff(host, records));
  return play(folder, { url }, act, { deadContainer: true });
}

/** `lose` takes from the disk what was not on it yet. */
function powerFailure(where: Where, lose: (course: Course, host: HostProcess) => Promise<void>) {
  return async (course: Course) => {
    const host = course.start({ where, act: 'reboot' });
    const problems = await endOf(host, 'killed');
    if (!host.has('strikes')) return problems.length > 0 ? problems : undefined;
    await lose(course, host);
    return [...problems, ...(await endOf(course.start(), 'done'))];
  };
}

async function faulty({ request, fault }: Extract<Point, { kind: 'fault' }>, folder: string) {
  const server = await startRehearsal({ faults: { requests: { [request]: fault } } });
  try {
    const act = async (course: Course) => {
      const problems = await endOf(course.start(), 'done');
      const asked = server.requests.filter(({ path }) => path === '/v1/messages').length;
      return asked > request ? problems : undefined;
    };
    return await play(folder, { url: server.url, retryBaseMs: RETRY_MS }, act, { errors: true });
  } finally {
    await server.close();
  }
}

function paused({ where, appends }: Extract<Point, { kind: 'pause' }>, folder: string, { url }: Rig) {
  const act = async (course: Course) => {
    const first = course.start({ where, act: 'stop' });
    await first.until((host) => host.has('strikes'));
    if (!first.has('strikes')) {
      const problems = await endOf(first, 'done');
      return problems.length > 0 ? problems : undefined;
    }
    await leaseRunsOut(course);
    const second = course.start();
    await second.until((host) => appends > 0 && host.appends >= appends);
    first.resume();
    return [...(await endOf(second, 'done')), ...(await endOf(first, 'lost'))];
  };
  return play(folder, { url, leaseMs: LEASE_MS }, act, { stale: true });
}

async function leaseRunsOut(course: Course): Promise<void> {
  await sleep(LEASE_MS);
  const store = openStore({ root: `${course.workspace}/.drover`, leaseMs: LEASE_MS });
  try {
    await eventually('the lease to run out', 4 * LEASE_MS, async () => {
      for (const id of await store.list()) if (await store.holder(id)) return false;
      return true;
    });
  } finally {
    await store.dispose();
  }
}
