import { writeFileSync } from 'node:fs';
import Mocha from 'mocha';

/** Lines with this prefix are ours; the console of an extension host is full of other voices. */
const say = (text: string): void => console.log(`[host-tests]${text}`);

/** What a run inside the extension host came to; scripts/host-tests.mjs reads it. */
interface Report {
  passed: number;
  failed: number;
  skipped: number;
}

/**
 * Runs test files with mocha inside the extension host. VS Code calls the `run` of the bundle that
 * scripts/host-tests.mjs makes of this and of all the test files.
 * @param load imports the test files once mocha's globals are there
 * @param reportFile gets the `Report`, as JSON, after each test: a host that dies has told what it did
 */
export async function runHostTests(load: () => Promise<void>, reportFile: string): Promise<void> {
  const mocha = new Mocha({ ui: 'bdd', timeout: 30_000, reporter: LineReporter, reporterOptions: { reportFile } });
  mocha.suite.emit('pre-require', globalThis, '', mocha);
  await load();
  const failures = await new Promise<number>((resolve) => mocha.run(resolve));
  if (failures > 0) throw new Error(`${failures} tests failed in the extension host.`);
}

class LineReporter extends Mocha.reporters.Base {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const reportFile: string = options.reporterOptions.reportFile;
    const report: Report = { passed: 0, failed: 0, skipped: 0 };
    const write = () => writeFileSync(reportFile, JSON.stringify(report));
    write();
    runner.on('pass', (test) => {
      report.passed++;
      write();
      say(`  ✓ ${test.fullTitle()} (${test.duration ?? 0} ms)`);
    });
    runner.on('pending', (test) => {
      report.skipped++;
      write();
      say(`  - ${test.fullTitle()}`);
    });
    runner.on('fail', (test, error: Error) => {
      report.failed++;
      write();
      say(`  ✗ ${test.fullTitle()}\n${(error.stack ?? error.message).replace(/^/gm, '      ')}`);
    });
  }
}
