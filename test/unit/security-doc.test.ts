import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/security.md'), 'utf8');

/** The tests that the page names: a path in backquotes, a colon, and names in curly quotes. */
function named(): { path: string; names: string[] }[] {
  return [...page.matchAll(/`(test\/[^`]+)`: ((?:“[^”]+”(?:, )?)+)/g)].map(([, path = '', names = '']) => ({
    path,
    names: [...names.matchAll(/“([^”]+)”/g)].map(([, name = '']) => name),
  }));
}

describe('the page on security', () => {
  it('names tests that exist, by their words', () => {
    const missing = named().flatMap(({ path, names }) => {
      if (!existsSync(join(root, path))) return [path];
      const source = readFileSync(join(root, path), 'utf8');
      return names.filter((name) => !source.includes(name)).map((name) => `${path}: ${name}`);
    });
    expect(missing).toEqual([]);
    expect(named().length).toBeGreaterThan(20);
  });

  it('has a test for each of its claims', () => {
    const rows = page.split('\n').filter((line) => /^\| [^-]/.test(line));
    const claims = rows.filter((row) => !/^\| (claim|what) /.test(row) && row.split('|').length === 4);
    const bare = claims.filter((row) => !/`test\/[^`]+`: “/.test(row));
    expect(bare).toEqual([]);
    expect(claims.length).toBeGreaterThan(15);
  });
});
