import type { PastCall } from '../conversation.ts';
import { readTestRun, type TestRun } from './node-test.ts';
import { linesOf } from './scenario.ts';

export const TEST_COMMAND = 'node --test';

/** A line that is the bug, and what it should be. */
export interface Remedy {
  path: string;
  line: string;
  fixed: string;
  why: string;
}

/** What the results so far really say. */
export interface Facts {
  runsBefore: PastCall[];
  before: TestRun | undefined;
  /** The failing test's file, and the source file of the same name. */
  suspects: string[];
  /** Source files that are no tests. */
  sources: string[];
  /** Files that were read before any edit: path → text, undefined where the read failed. */
  reads: Map<string, string | undefined>;
  remedy: Remedy | undefined;
  edits: PastCall[];
  /** The last edit. */
  edit: PastCall | undefined;
  /** It is in the file: the edit said so, or the file did when its call was cut short. */
  applied: boolean;
  readsSinceEdit: Map<string, string | undefined>;
  runsAfter: PastCall[];
  after: TestRun | undefined;
  review: PastCall | undefined;
}

export function factsOf(calls: readonly PastCall[]): Facts {
  const edits = calls.filter((past) => past.name === 'edit');
  const firstEdit = calls.findIndex((past) => past.name === 'edit');
  const lastEdit = calls.findLastIndex((past) => past.name === 'edit');
  const earlier = firstEdit < 0 ? calls : calls.slice(0, firstEdit);
  const later = lastEdit < 0 ? [] : calls.slice(lastEdit + 1);
  const runsBefore = earlier.filter(isRun);
  const runsAfter = later.filter(isRun);
  const before = resultOf(runsBefore);
  const reads = readsIn(earlier);
  const files = filesIn(earlier);
  return {
    runsBefore,
    before,
    suspects: suspectsOf(before, files),
    sources: files.filter((path) => !isTest(path)),
    reads,
    remedy: remedyIn(reads),
    edits,
    edit: edits.at(-1),
    applied: isApplied(edits.at(-1), readsIn(later)),
    readsSinceEdit: readsIn(later),
    runsAfter,
    after: resultOf(runsAfter),
    review: later.findLast((past) => past.name === 'create_agent'),
  };
}

const isRun = (past: PastCall): boolean => past.name === 'bash' && past.input.command === TEST_COMMAND;
const isTest = (path: string): boolean => /\.test\.[cm]?[jt]s$|(^|\/)tests?\//.test(path);

/** A failing test run is a failed command to some tools: its output counts all the same. */
const resultOf = (runs: readonly PastCall[]): TestRun | undefined => {
  const last = runs.at(-1);
  return last && (last.ending === 'ok' || last.ending === 'failed') ? readTestRun(last.text) : undefined;
};

const isApplied = (edit: PastCall | undefined, since: ReadonlyMap<string, string | undefined>): boolean =>
  edit?.ending === 'ok' ||
  (edit !== undefined && (since.get(String(edit.input.file_path))?.includes(String(edit.input.new_string)) ?? false));

const readsIn = (calls: readonly PastCall[]): Map<string, string | undefined> =>
  new Map(
    calls
      .filter((past) => past.name === 'read')
      .map((past) => [String(past.input.file_path), past.ending === 'ok' ? past.text : undefined]),
  );

const filesIn = (calls: readonly PastCall[]): string[] => {
  const glob = calls.findLast((past) => past.name === 'glob' && past.ending === 'ok');
  return linesOf(glob?.text ?? '').filter((line) => /^[^\s].*\.[cm]?[jt]s$/.test(line));
};

function suspectsOf(run: TestRun | undefined, files: readonly string[]): string[] {
  if (!run?.file) return [];
  const base = baseOf(run.file);
  const listed = files.find((path) => baseOf(path) === base && isTest(path));
  const subject = files.find((path) => baseOf(path) === base.replace(/\.test(?=\.)/, '') && !isTest(path));
  return [listed ?? run.file, ...(subject ? [subject] : [])];
}

const baseOf = (path: string): string => path.split('/').at(-1) ?? path;

/** `sort()` without a comparison puts 240 before 90, because it compares numbers as words. */
function remedyIn(reads: ReadonlyMap<string, string | undefined>): Remedy | undefined {
  for (const [path, text] of reads) {
    if (text === undefined || isTest(path)) continue;
    const line = text.split('\n').find((one) => one.includes('.sort()'));
    if (line === undefined || text.split(line).length !== 2) continue;
    return {
      path,
      line,
      fixed: line.replace('.sort()', '.sort((a, b) => a - b)'),
      why: '`sort()` without a comparison orders numbers as text, so 240 comes before 90 and the longest time is picked wrong.',
    };
  }
  return undefined;
}
