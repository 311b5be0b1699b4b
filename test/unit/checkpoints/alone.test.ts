import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { changesOf, Place } from './rig.ts';

/** All files under a folder with their bytes, and when each was last written. */
async function fingerprint(folder: string): Promise<string> {
  const hash = createHash('sha256');
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  for (const entry of entries.sort((a, b) => join(a.parentPath, a.name).localeCompare(join(b.parentPath, b.name)))) {
    const path = join(entry.parentPath, entry.name);
    hash.update(`${path} ${(await stat(path)).mtimeMs}\n`);
    if (entry.isFile()) hash.update(await readFile(path));
  }
  return hash.digest('hex');
}

function withEnv(env: Record<string, string>): void {
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, env);
  onTestFinished(() => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
}

describe('the repository of the checkpoints', () => {
  it('touches nothing of the user’s own repository', async () => {
    const place = await Place.open({ 'a.txt': '1\n' });
    await place.git('init', '-q');
    await place.git('add', '.');
    await place.git('commit', '-qm', 'x');
    const before = await fingerprint(place.path('.git'));
    await place.call(() => place.write('a.txt', '2\n'));
    const restore = place.restore(place.checkpoints[0]?.commit ?? '');
    await restore.apply(await restore.plan());
    expect(await fingerprint(place.path('.git'))).toBe(before);
    expect(await place.git('status', '--porcelain')).toBe('');
  });

  it('runs no program that the workspace, the user’s configuration or the environment names', async () => {
    const place = await Place.open({ 'a.txt': '1\n', 'x.dat': '1\n' });
    const trap = join(place.folder, '..', 'trap.sh');
    const sprung = join(place.folder, '..', 'sprung');
    await writeFile(trap, `#!/bin/sh\necho "$0 $*" >> ${sprung}\ncat\n`);
    await chmod(trap, 0o755);
    await place.git('init', '-q');
    const config = `[core]\n\tfsmonitor = ${trap}\n\thooksPath = ${join(place.folder, 'hooks')}\n[filter "t"]\n\tclean = ${trap}\n\tsmudge = ${trap}\n\trequired = true\n[diff]\n\texternal = ${trap}\n[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = ${trap}\n`;
    for (const path of ['.git/config', '.gitconfig']) await writeFile(place.path(path), config, { flag: 'a' });
    const hooks = ['post-index-change', 'post-checkout', 'pre-commit', 'reference-transaction'];
    for (const name of hooks) {
      for (const folder of ['hooks', '.git/hooks']) {
        await place.write(`${folder}/${name}`, `#!/bin/sh\n${trap} ${name}\n`);
        await chmod(place.path(`${folder}/${name}`), 0o755);
      }
    }
    await place.write('.gitattributes', '*.dat filter=t diff=t\n');
    await place.write('dep/a.c', '1');
    await place.git('init', '-q', 'dep');
    await writeFile(place.path('dep/.git/config'), config, { flag: 'a' });
    withEnv({
      HOME: place.folder,
      GIT_DIR: place.path('.git'),
      GIT_INDEX_FILE: place.path('.git/index'),
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'core.fsmonitor',
      GIT_CONFIG_VALUE_0: trap,
      GIT_EXTERNAL_DIFF: trap,
      GIT_TRACE: sprung,
      GIT_EDITOR: trap,
      GIT_ASKPASS: trap,
    });
    await place.call(async () => {
      await place.write('x.dat', '2\n');
      await place.write('dep/a.c', '2');
    });
    // Whoever works in the workspace may have written here too.
    const ours = place.path('.drover/checkpoints');
    await writeFile(join(ours, 'config'), config);
    await mkdir(join(ours, 'hooks'), { recursive: true });
    await writeFile(join(ours, 'hooks', 'post-checkout'), `#!/bin/sh\n${trap}\n`, { mode: 0o755 });
    await mkdir(join(ours, 'info'), { recursive: true });
    await writeFile(join(ours, 'info', 'attributes'), '* filter=t\n');
    place.restart();
    await place.call(() => place.write('x.dat', '3\n'));
    const restore = place.restore(place.checkpoints[0]?.commit ?? '');
    await restore.apply(await restore.plan());
    await place.store.tidy({ always: true });
    expect(await readFile(place.path('x.dat'), 'utf8')).toBe('1\n');
    expect(place.problems).toEqual([]);
    expect(await readFile(sprung, 'utf8').catch(() => 'nothing ran')).toBe('nothing ran');
  });

  it('is not found in the workspace, and does without a git that is not there: one sentence, once', async () => {
    const place = await Place.open({ 'a.txt': '1' });
    await place.write('git', '#!/bin/sh\nexit 0\n');
    await chmod(place.path('git'), 0o755);
    place.restart({ PATH: `.:${join(place.folder, '..', 'none')}` });
    await place.call(() => place.write('a.txt', '2'));
    await place.call(() => place.write('a.txt', '3'));
    place.restart({ PATH: '' });
    await place.call(() => place.write('a.txt', '4'));
    expect(place.checkpoints).toEqual([]);
    expect(place.problems).toHaveLength(1);
    expect(place.problems[0]).toMatch(/^git was not found .* install git .*The session goes on without\.$/);
  });

  it('takes in what a killed process left, by the calls that it was left by', async () => {
    const place = await Place.open({ 'a.txt': '1' });
    await place.call(() => place.write('a.txt', '2'));
    const call = await place.begin();
    await place.write('a.txt', 'by the call');
    // Here the process dies. Its git was writing the index.
    const indexes = place.path('.drover/checkpoints/index');
    const [index] = (await readdir(indexes)).filter((name) => name.endsWith('.idx'));
    await writeFile(join(indexes, `${index}.lock`), 'half an index');
    place.restart();
    const next = await place.call(() => place.write('b.txt', 'by the next'));
    const [, , left, last] = place.checkpoints;
    expect([left?.tool_use_ids, left?.why]).toEqual([[call], 'calls']);
    expect(changesOf(left)).toEqual({ 'a.txt': 'modified' });
    expect([last?.tool_use_ids, changesOf(last)]).toEqual([[next], { 'b.txt': 'added' }]);
    expect((await readdir(indexes)).filter((name) => name.includes('.idx'))).toHaveLength(1);
    expect(place.problems).toEqual([]);
  });

  it('gives a person what they changed between two processes, not the calls before', async () => {
    const place = await Place.open({ 'a.txt': '1' });
    await place.call(() => place.write('a.txt', '2'));
    await place.call(async () => undefined);
    place.restart();
    await place.write('a.txt', 'by the person');
    await place.call(async () => undefined);
    expect(place.checkpoints.at(-1)).toMatchObject({ why: 'person', tool_use_ids: [] });
  });

  it('goes on where a kill came between taking the files in and saying so', async () => {
    const place = await Place.open({ 'a.txt': '1' });
    await place.call(() => place.write('a.txt', '2'));
    await place.call(() => place.write('a.txt', '3'));
    // The log has not heard of the last one; the index and the refs have.
    place.drafts.pop();
    place.restart();
    await place.call(async () => undefined);
    const [, one, again] = place.checkpoints;
    expect(again?.parent).toBe(one?.commit);
    expect(changesOf(again)).toEqual({ 'a.txt': 'modified' });
  });

  it('begins anew where it was removed or damaged', async () => {
    const place = await Place.open({ 'a.txt': '1' });
    await place.call(() => place.write('a.txt', '2'));
    await rm(place.path('.drover/checkpoints'), { recursive: true });
    place.restart();
    await place.call(() => place.write('a.txt', '3'));
    expect(place.checkpoints.slice(2).map(({ why }) => why)).toEqual(['start', 'calls']);
    expect(place.problems).toEqual([]);
  });

  it('gives back the room of a deleted session', async () => {
    const place = await Place.open({ 'a.txt': '1' });
    await place.call(() => place.write('a.txt', 'only in this session'));
    const [start, one] = place.checkpoints;
    expect(await place.store.changes([start?.commit ?? '', one?.commit ?? ''])).toMatchObject([
      [{ path: 'a.txt', change: 'added' }],
      [{ path: 'a.txt', change: 'modified' }],
    ]);
    await place.store.tidy({ always: true, grace: 'now' });
    const [, [change] = []] = await place.store.changes([start?.commit ?? '', one?.commit ?? '']);
    expect((await place.store.blob(change?.after ?? '')).toString()).toBe('only in this session');
    expect(await place.store.size(change?.after ?? '')).toBe(20);
    await place.store.forget(place.session);
    await place.store.tidy({ always: true, grace: 'now' });
    await expect(place.store.blob(change?.after ?? '')).rejects.toThrow(/not kept any more/);
    const objects = place.path('.drover/checkpoints/objects');
    const files = execFileSync('find', [objects, '-type', 'f', '-name', '[0-9a-f]*']).toString();
    expect(files).toBe('');
  });

  it('keeps what a fork was made from after the other session is deleted', async () => {
    const place = await Place.open({ 'a.txt': '1' });
    await place.call(() => place.write('a.txt', 'kept by the fork'));
    const commit = place.checkpoints[1]?.commit ?? '';
    await mkdir(place.path('.drover/sessions/sesn_fork'));
    const [[change] = []] = await place.store.changes([commit]);
    await place.store.keep('sesn_fork' as typeof place.session, commit);
    await place.store.forget(place.session);
    await place.store.tidy({ always: true, grace: 'now' });
    expect((await place.store.blob(change?.after ?? '')).toString()).toBe('kept by the fork');
  });

  it('works in a folder without any repository, and in one whose name is odd', async () => {
    const place = await Place.open({ 'ünï côdé/a b.txt': '1' });
    await place.call(() => place.write('ünï côdé/a b.txt', '2'));
    expect(changesOf(place.checkpoints[1])).toEqual({ 'ünï côdé/a b.txt': 'modified' });
  });
});
