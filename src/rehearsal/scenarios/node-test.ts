/** What `node --test` said, in its spec or its TAP form. */
export interface TestRun {
  tests: number;
  pass: number;
  fail: number;
  /** Name of the first test that failed, "" if none is named. */
  failing: string;
  /** Path of the file it stands in, as the output gives it; "" if it does not. */
  file: string;
}

/** Reads a test run's output; undefined if it holds no result. */
export function readTestRun(output: string): TestRun | undefined {
  const text = stripColors(output);
  const number = (name: string): number | undefined => {
    const [, digits] = new RegExp(`^(?:#|ℹ) ${name} (\\d+)$`, 'm').exec(text) ?? [];
    return digits === undefined ? undefined : Number(digits);
  };
  const tests = number('tests');
  const pass = number('pass');
  const fail = number('fail');
  if (tests === undefined || pass === undefined || fail === undefined) return undefined;
  const [, failing = ''] =
    /^\s*not ok \d+ - (.+)$/m.exec(text) ?? /^\s*✖ (?!failing tests)(.+?)(?: \([\d.]+ms\))?$/m.exec(text) ?? [];
  const [, file = ''] = /^\s*(?:location: '|test at )(.+?\.[cm]?[jt]s):\d+:\d+/m.exec(text) ?? [];
  return { tests, pass, fail, failing, file };
}

const ESCAPE = String.fromCharCode(27);
const stripColors = (text: string): string => text.replaceAll(new RegExp(`${ESCAPE}\\[[\\d;]*m`, 'g'), '');
