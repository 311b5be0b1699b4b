import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mint } from '../../../src/protocol/ids.ts';
import { IgnoreRules } from '../../../src/tools/ignore-rules.ts';
import type { ToolContext } from '../../../src/tools/tools.ts';
import { batches, isIgnored, walk } from '../../../src/tools/walk.ts';
import { ProcessSandbox } from '../../support/process-sandbox.ts';

const context: ToolContext = {
  executionId: mint.execution(),
  thread: mint.thread(),
  signal: new AbortController().signal,
  sandbox: () => Promise.reject(new Error('not asked for')),
  onOutput: () => {},
  seen: () => undefined,
  readLog: async () => [],
};

async function inFolder<T>(files: Record<string, string>, act: (folder: string) => Promise<T>): Promise<T> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'drover-walk-')));
  try {
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), content);
    }
    return await act(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const sandboxOf = (folder: string) => new ProcessSandbox(mint.sandbox(), folder);
const walked = async (folder: string, where: string, most = 1000) => {
  const found = await walk(sandboxOf(folder), context, where, most);
  return { ...found, files: found.files.map((file) => file.path).sort() };
};

/** What git itself would take in, in a repository of its own beside the files. */
function byGit(folder: string): string[] {
  const git = (...args: string[]) => {
    const env = { PATH: process.env.PATH, HOME: '/nonexistent', GIT_CONFIG_NOSYSTEM: '1' };
    const done = spawnSync('git', ['-C', folder, ...args], { encoding: 'utf8', env });
    if (done.status !== 0) throw new Error(done.stderr);
    return done.stdout;
  };
  git('init', '-q', '--template=');
  return git('ls-files', '-z', '--others', '--exclude-standard').split('\0').filter(Boolean).sort();
}

describe('a walk without ripgrep', () => {
  const name = fc.constantFrom('a', 'b', 'build', 'x.log', 'y.txt', 'sp ace');
  const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/'));
  const pattern = fc
    .tuple(
      fc.constantFrom('', '!', '/', '!/'),
      fc.constantFrom('a', 'b', 'build', '*.log', '*', 'a/b', '**/b', 'a/**', 'b/*', 'x.lo?', '[ab]', 'sp\\ ace'),
      fc.constantFrom('', '/'),
    )
    .map((parts) => parts.join(''));
  const ignoreFile = fc.array(fc.oneof({ weight: 8, arbitrary: pattern }, fc.constant('# a note'), fc.constant('')), {
    maxLength: 5,
  });
  const where = fc.constantFrom('', 'a/', 'b/', 'build/', 'a/b/');
  const tree = fc.record({
    files: fc.array(path, { minLength: 1, maxLength: 14 }),
    ignores: fc.array(fc.tuple(where, ignoreFile), { maxLength: 3 }),
  });

  it('lists what git would take in, whatever the ignore files say', async () => {
    await fc.assert(
      fc.asyncProperty(tree, async ({ files, ignores }) => {
        // A name can't be a file and a folder.
        const folders = new Set(
          files.flatMap((file) => file.split('/').map((_, i, parts) => parts.slice(0, i).join('/'))),
        );
        const contents = Object.fromEntries(files.filter((file) => !folders.has(file)).map((file) => [file, '']));
        for (const [folder, lines] of ignores) {
          const parts = folder.split('/').filter(Boolean);
          const taken = parts.some((_, i) => parts.slice(0, i + 1).join('/') in contents);
          if (!taken) contents[`${folder}.gitignore`] = `${lines.join('\n')}\n`;
        }
        await inFolder(contents, async (folder) => {
          const ours = (await walked(folder, '.')).files;
          expect(ours).toEqual(byGit(folder));
        });
      }),
      { numRuns: 60 },
    );
  }, 60_000);

  it('never enters what is ignored, and stops at its limit', async () => {
    const files = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`d${i % 7}/f${i}.txt`, '']));
    await inFolder({ '.gitignore': 'd3/\n', ...files }, async (folder) => {
      const found = await walked(folder, '.');
      expect(found.partial).toBe(false);
      expect(found.files.some((file) => file.startsWith('d3/'))).toBe(false);
      expect(found.files).toHaveLength(44);
      const sandbox = sandboxOf(folder);
      expect(await isIgnored(sandbox, context, 'd3', 'd3')).toBe(true);
      expect(await isIgnored(sandbox, context, 'd2', 'd2')).toBe(false);
      expect((await walked(folder, 'd3')).files).toHaveLength(7);
      expect((await walked(folder, 'd3/f3.txt')).files).toEqual(['d3/f3.txt']);
      expect((await walked(folder, '.', 0)).partial).toBe(true);
    });
  });

  it('gives names to a program in portions it can take', () => {
    const names = Array.from({ length: 3000 }, (_, i) => `folder/number/${i}`);
    const portions = [...batches(names)];
    expect(portions.flat()).toEqual(names);
    expect(Math.max(...portions.map((portion) => portion.join(' ').length))).toBeLessThan(61_000);
    expect([...batches(['x'.repeat(200_000), 'y'])]).toHaveLength(2);
  });
});

describe('ignore rules', () => {
  it('of a deeper file take a folder back in, and what is in it', () => {
    const rules = new IgnoreRules();
    rules.add('.gitignore', 'build\n*.log\n');
    rules.add('lib/.gitignore', '!build/\n');
    expect(rules.ignores('lib/build', true)).toBe(false);
    expect(rules.ignores('lib/build/x.txt', false)).toBe(false);
    expect(rules.ignores('lib/build/x.log', false)).toBe(true);
    expect(rules.ignores('src/build', true)).toBe(true);
    expect(rules.ignoresWithin('src/build/deep')).toBe(true);
    expect(rules.ignoresWithin('lib/build/deep')).toBe(false);
  });

  it('tell capital letters apart', () => {
    const rules = new IgnoreRules();
    rules.add('.gitignore', 'Build\n');
    expect(rules.ignores('build', true)).toBe(false);
  });
});
