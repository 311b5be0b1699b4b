// @ts-check
// Everything that needs no run: format, lint, import walls, types, dead code. Each prints its findings and counts as one.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bin, childEnv, run } from './machine.mjs';

const walls = 'style/noRestrictedImports';
const biome = ['--colors=off', '--error-on-warnings', '--max-diagnostics=50'];

/** @type {{ name: string, command: [string, ...string[]] }[]} */
const checks = [
  { name: 'format', command: ['biome', 'ci', ...biome, '--linter-enabled=false', '.'] },
  { name: 'lint', command: ['biome', 'lint', ...biome, `--skip=${walls}`, '.'] },
  { name: 'import walls', command: ['biome', 'lint', ...biome, `--only=${walls}`, '.'] },
  { name: 'types', command: ['tsc', '-p', '.'] },
  { name: 'dead code', command: ['knip', '--no-progress'] },
];

/** @returns {Promise<{ passed: string[], failed: string[] }>} names of the checks */
export async function check() {
  /** @type {{ passed: string[], failed: string[] }} */
  const result = { passed: [], failed: [] };
  for (const { name, command } of checks) {
    const [tool, ...args] = command;
    const windows = process.platform === 'win32' ? '.cmd' : '';
    const { code, output } = await run(join(bin, tool + windows), args, {
      env: childEnv({ NO_COLOR: '1' }),
      timeoutMs: 180_000,
    });
    console.log(`  ${code === 0 ? '✓' : '✗'} ${name}`);
    if (code !== 0) console.log(output.trimEnd().replace(/^/gm, '    '));
    (code === 0 ? result.passed : result.failed).push(name);
  }
  return result;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { failed } = await check();
  process.exitCode = failed.length > 0 ? 1 : 0;
}
