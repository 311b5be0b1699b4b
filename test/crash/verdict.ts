import { isKnown } from '../../src/protocol/event.ts';
import type { LogRecord } from '../../src/protocol/record.ts';
import { type Course, LINES } from './course.ts';
import { chainProblems } from './promises/chain.ts';
import { endProblems, prefixProblems } from './promises/fold.ts';
import { recordProblems } from './promises/records.ts';

export interface Verdict {
  /** What was wrong, in words; nothing if it survived. */
  problems: string[];
  /** Lines left more than once. */
  duplicated: number;
  /** Records a host was told to be in the log that are not in it. */
  lost: number;
}

export interface Allowed {
  /** Records of a host that was fenced off, passed over. */
  stale?: boolean;
  /** Errors that the session told of and got over. */
  errors?: boolean;
  /** The end of the log was torn once, and the next host said so. */
  torn?: boolean;
  /** A container that was killed may be left, where nothing or no engine took it away: it is reaped at the next start. */
  deadContainer?: boolean;
}

/** Looks at what a course has left: the log, the file, the containers. */
export async function verdictOf(course: Course, allowed: Allowed = {}): Promise<Verdict> {
  const effects = await course.effects();
  const duplicated = effects.filter((line, index) => effects.indexOf(line) !== index).length;
  const found = await course.read();
  if (!found) return { problems: ['there is no session that can be read'], duplicated, lost: 0 };
  const { reading, bytes } = found;
  const { records, damage, tornBytes, newer } = reading;
  const hashes = new Set(records.map((record) => record.hash));
  const lost = course.hosts.flatMap((host) => host.acknowledged).filter((hash) => !hashes.has(hash)).length;
  const chain = chainProblems(bytes);
  const problems = [
    ...damage.map(({ reason }) => `the log is damaged: ${reason}`),
    ...(tornBytes > 0 ? [`${tornBytes} bytes are torn`] : []),
    ...(newer ? ['the log is said to be of a newer version'] : []),
    ...(chain.stale !== reading.stale ? [`${chain.stale} stale records, read as ${reading.stale}`] : []),
    ...(chain.stale > 0 && !allowed.stale ? [`${chain.stale} records of a host that was fenced off`] : []),
    ...chain.problems,
    ...recordProblems(records),
    ...tornProblems(records, allowed.torn ?? false),
    ...prefixProblems(records),
    ...endProblems(records),
    ...effectProblems(effects),
    ...containerProblems(course, allowed.deadContainer ?? false),
  ];
  for (const { event } of records) {
    if (!allowed.errors && isKnown(event) && event.type === 'session.error') problems.push(event.error.message);
  }
  if (lost > 0) problems.push(`${lost} records are lost`);
  return { problems, duplicated, lost };
}

/** Damage that was mended is told in the log, and nothing else is. */
function tornProblems(records: readonly LogRecord[], torn: boolean): string[] {
  const told = records.flatMap(({ event }) =>
    isKnown(event) && event.type === 'drover.log_damaged' ? [event.reason] : [],
  );
  if (!torn) return told.map((reason) => `the log tells of damage: ${reason}`);
  return told.length === 1 && told[0]?.startsWith('the last write was cut off') ? [] : ['the torn end was not told of'];
}

function effectProblems(effects: readonly string[]): string[] {
  return LINES.flatMap((line) => {
    const times = effects.filter((one) => one === line).length;
    return times === 1 ? [] : [`“${line}” was left ${times} times`];
  });
}

/** What a killed container is; an engine that was itself killed while it took one away calls that `dead`. */
const DEAD = ['exited', 'dead'];

/** One sandbox lives; those that were lost, or half made, are gone. */
function containerProblems(course: Course, mayBeDead: boolean): string[] {
  const states = course.containers('{{.State}}');
  const left = states.filter((state) => !(mayBeDead && DEAD.includes(state)));
  const fine = left.join() === 'running' || (mayBeDead && left.length === 0);
  return fine ? [] : [`the containers left are: ${states.join() || 'none'}`];
}
