/*
 * Strikes a session at every point there is, and says what became of it.
 * Usage: node main.ts [part of a group's name]…
 */
import { GROUPS, lacking } from './points.ts';
import { CrashRun, type Report } from './run.ts';

/** ms for all of it. */
const MOST_MS = 60 * 60_000;
/** A run that misses more of its points than this share has not shown what it should. */
const MOST_MISSED = 0.05;

// Until all is shown to be well it is not: whatever ends this program before its last line has failed it.
process.exitCode = 1;
const wanted = process.argv.slice(2);
const started = Date.now();
const seconds = (since: number) => `${Math.round((Date.now() - since) / 1000)} s`;

await using run = await CrashRun.open();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => void run[Symbol.asyncDispose]().finally(() => process.exit(130)));
}

const reports: Report[] = [];
const counts = await run.count();
for (const group of GROUPS) {
  if (wanted.length > 0 && !wanted.some((part) => group.name.includes(part))) continue;
  const why = lacking(group);
  if (why !== undefined) {
    console.log(`  - left out, as ${why}: ${group.name}`);
    continue;
  }
  const since = Date.now();
  const report = await run.play(group, group.points(counts), started + MOST_MS);
  reports.push(report);
  console.log(`  ${report.survived} of ${report.points} survived: ${group.name} (${seconds(since)})`);
  for (const failure of report.failures) console.log(`    ✗ ${failure}`);
  for (const name of report.missed) console.log(`    - not reached: ${name}`);
}

const sum = (of: (report: Report) => number) => reports.reduce((total, report) => total + of(report), 0);
const [points, survived] = [sum((report) => report.points), sum((report) => report.survived)];
const [duplicated, lost] = [sum((report) => report.duplicated), sum((report) => report.lost)];
console.log(`\nAll of it took ${seconds(started)}.`);
console.log(`points ${points}, survived ${survived}, duplicated effects ${duplicated}, lost events ${lost}`);
const missed = sum((report) => report.missed.length);
const enough = points > 0 && missed <= MOST_MISSED * (points + missed);
if (!enough) console.log(`${missed} of ${points + missed} points were not reached, which is too many.`);
if (survived === points && duplicated === 0 && lost === 0 && enough) process.exitCode = 0;
