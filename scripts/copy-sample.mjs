// @ts-check
// A copy of the bundled sample project as a git repository with one commit: what an agent does there shows as a diff.
//
//   node scripts/copy-sample.mjs FOLDER      replaces what is there

import { cp, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Failed, lastLines, root, run } from './machine.mjs';

/** @param {string} folder absolute, must not exist */
export async function copySample(folder) {
  const leave = /[\\/](\.drover|node_modules)$/;
  await cp(join(root, 'sample'), folder, { recursive: true, filter: (file) => !leave.test(file) });
  const who = ['-c', 'user.name=Drover', '-c', 'user.email=drover@localhost', '-c', 'commit.gpgsign=false'];
  for (const args of [
    ['init', '-q'],
    ['add', '-A'],
    [...who, 'commit', '-q', '-m', 'The sample, with its bug'],
  ]) {
    const { code, output } = await run('git', args, { cwd: folder });
    if (code !== 0) throw new Failed(`git ${args.join(' ')} failed in ${folder}:\n${lastLines(output, 5)}`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = resolve(process.argv[2] ?? join(root, '.cache', 'sample'));
  await rm(folder, { recursive: true, force: true });
  await copySample(folder);
}
