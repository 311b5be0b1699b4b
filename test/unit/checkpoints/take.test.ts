import { execFileSync } from 'node:child_process';
import { chmod, link, mkdir, readdir, readFile, rm, symlink, truncate, unlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { changesOf, Place } from './rig.ts';

const NOBODY = 65534;

/** Root reads everything, so for this test it is somebody who may not; the folder becomes theirs. */
function becomeNobody(folder: string): void {
  if (process.getuid?.() !== 0) return;
  execFileSync('chown', ['--recursive', `${NOBODY}:${NOBODY}`, folder]);
  process.seteuid?.(NOBODY);
  onTestFinished(() => process.seteuid?.(0));
}

describe('a checkpoint', () => {
  it('keeps the files before the first call, and after each call that changed some', async () => {
    const place = await Place.open({ 'a.txt': 'one\n', 'sub/b.txt': 'two\n' });
    const first = await place.call(() => place.write('a.txt', 'changed\n'));
    await place.call(async () => undefined);
    const third = await place.call(async () => {
      await place.write('new.txt', 'new\n');
      await unlink(place.path('sub/b.txt'));
    });
    expect(place.checkpoints.map(({ why, tool_use_ids }) => [why, tool_use_ids])).toEqual([
      ['start', []],
      ['calls', [first]],
      ['calls', [third]],
    ]);
    const [start, one, two] = place.checkpoints;
    expect(changesOf(one)).toEqual({ 'a.txt': 'modified' });
    expect(changesOf(two)).toEqual({ 'new.txt': 'added', 'sub/b.txt': 'deleted' });
    expect([start?.parent, one?.parent, two?.parent]).toEqual([null, start?.commit, one?.commit]);
    expect(place.problems).toEqual([]);
  });

  it('does not give a call what a person changed before it', async () => {
    const place = await Place.open({ 'a.txt': '1\n', 'mine.txt': '1\n' });
    const first = await place.call(() => place.write('a.txt', '2\n'));
    await place.write('mine.txt', 'by the person\n');
    const second = await place.call(() => place.write('a.txt', '3\n'));
    const [, one, person, two] = place.checkpoints;
    expect([one?.tool_use_ids, person?.tool_use_ids, two?.tool_use_ids]).toEqual([[first], [], [second]]);
    expect(person?.why).toBe('person');
    expect(changesOf(person)).toEqual({ 'mine.txt': 'modified' });
    expect(changesOf(two)).toEqual({ 'a.txt': 'modified' });
  });

  it('names all calls that ran since the last one when they run side by side', async () => {
    const place = await Place.open({ 'a.txt': '1\n' });
    const a = await place.begin();
    const b = await place.begin();
    await place.write('by-a.txt', 'a\n');
    await place.end(a);
    await place.write('by-b.txt', 'b\n');
    await place.end(b);
    const [, one, two] = place.checkpoints;
    expect(new Set(one?.tool_use_ids)).toEqual(new Set([a, b]));
    expect(two?.tool_use_ids).toEqual([b]);
    expect(changesOf(two)).toEqual({ 'by-b.txt': 'added' });
  });

  it('leaves out what .gitignore, the user’s own exclude list and Drover say, and what is made from other files', async () => {
    const place = await Place.open({
      '.gitignore': 'build/\n*.log\n',
      'build/out.js': 'x',
      'a.log': 'x',
      'private.txt': 'x',
      'node_modules/x/index.js': 'x',
      'src/a.js': 'x',
    });
    await place.git('init', '-q');
    await writeFile(place.path('.git/info/exclude'), 'private.txt\n');
    await place.call(async () => {
      await place.write('build/out.js', 'y');
      await place.write('b.log', 'y');
      await place.write('private.txt', 'y');
      await place.write('node_modules/x/index.js', 'y');
      await place.write('.drover/something.json', 'y');
    });
    expect(place.checkpoints).toHaveLength(1);
    await place.call(() => place.write('src/a.js', 'y'));
    expect(changesOf(place.checkpoints[1])).toEqual({ 'src/a.js': 'modified' });
  });

  it('honours the .gitignore files above a folder that lies inside a repository', async () => {
    const place = await Place.open({ 'a.txt': '1' });
    const top = join(place.folder, '..');
    await mkdir(join(top, '.git'));
    await writeFile(join(top, '.gitignore'), 'dist\n/work/out/\n/elsewhere/a.txt\n');
    await place.call(async () => {
      await place.write('dist/x', '1');
      await place.write('sub/dist/x', '1');
      await place.write('out/x', '1');
      await place.write('a.txt', '2');
    });
    expect(changesOf(place.checkpoints[1])).toEqual({ 'a.txt': 'modified' });
  });

  it('takes the files of repositories inside the folder as plain files, with and without commits, deep and worktrees too', async () => {
    const place = await Place.open({ 'a.txt': '1', 'dep/lib.c': '1', 'fresh/x.c': '1', 'dep/inner/deep.c': '1' });
    await place.git('init', '-q', 'dep');
    await place.git('-C', 'dep', 'add', 'lib.c');
    await place.git('-C', 'dep', 'commit', '-qm', 'x');
    await place.git('init', '-q', 'dep/inner');
    await place.git('init', '-q', 'fresh');
    await place.git('-C', 'dep', 'worktree', 'add', '-q', '../tree');
    await place.call(async () => {
      await place.write('dep/lib.c', '2');
      await place.write('dep/inner/deep.c', '2');
      await place.write('fresh/y.c', '2');
      await place.write('tree/lib.c', '2');
      await place.git('init', '-q', 'made');
      await place.write('made/z.c', '2');
    });
    expect(changesOf(place.checkpoints[1])).toEqual({
      'dep/inner/deep.c': 'modified',
      'dep/lib.c': 'modified',
      'fresh/y.c': 'added',
      'made/z.c': 'added',
      'tree/lib.c': 'modified',
    });
    await place.call(() => place.write('made/z.c', '3'));
    expect(changesOf(place.checkpoints[2])).toEqual({ 'made/z.c': 'modified' });
  });

  it('leaves out a file over 10 MiB, names it, and has it again when it has shrunk', async () => {
    const place = await Place.open({ 'a.txt': '1', 'grows.bin': 'small' });
    await place.call(async () => {
      await place.write('huge.bin', '');
      await truncate(place.path('huge.bin'), 11 * 1024 * 1024);
      await truncate(place.path('grows.bin'), 12 * 1024 * 1024);
    });
    const [, one] = place.checkpoints;
    expect(one?.skipped).toEqual([
      { path: 'grows.bin', why: 'large', bytes: 12 * 1024 * 1024 },
      { path: 'huge.bin', why: 'large', bytes: 11 * 1024 * 1024 },
    ]);
    expect(one?.skipped_count).toBe(2);
    await place.call(() => place.write('grows.bin', 'small again'));
    expect(changesOf(place.checkpoints[2])).toEqual({ 'grows.bin': 'added' });
  });

  it('leaves out a file that this user can’t read, and names it', async () => {
    const place = await Place.open({ 'a.txt': '1', 'closed.txt': 'x' });
    becomeNobody(dirname(place.folder));
    await place.call(async () => {
      await chmod(place.path('closed.txt'), 0o000);
      await place.write('closed-too.txt', 'y');
      await chmod(place.path('closed-too.txt'), 0o000);
      await place.write('a.txt', '2');
    });
    expect(place.problems).toEqual([]);
    expect(place.checkpoints[1]?.skipped.map(({ path, why }) => [path, why])).toContainEqual([
      'closed-too.txt',
      'unreadable',
    ]);
    await place.call(() => place.write('a.txt', '3'));
    expect(changesOf(place.checkpoints[2])).toEqual({ 'a.txt': 'modified' });
  });

  it('keeps links as links, modes, odd names and bytes as they are, whatever .gitattributes asks for', async () => {
    const crlf = Buffer.from('a\r\nb\n$Id: x $\r\n');
    const utf16 = Buffer.from('\ufeffwide\r\n', 'utf16le');
    const place = await Place.open({
      '.gitattributes':
        '* text=auto eol=lf ident\n*.wide working-tree-encoding=UTF-16 text\n*.lfs filter=lfs diff=lfs merge=lfs -text\n',
      'mixed.txt': crlf,
      'w.wide': utf16,
      'x.lfs': 'whole content',
      'run.sh': '#!/bin/sh\n',
    });
    const odd = [Buffer.from('line\nbreak'), Buffer.from([0x6c, 0xe9, 0x2e, 0x74]), Buffer.from('a\\b "q" :(top)*')];
    for (const name of odd) await writeFile(Buffer.concat([Buffer.from(`${place.folder}/`), name]), 'odd');
    await chmod(place.path('run.sh'), 0o755);
    await symlink('/nowhere/at/all', place.path('dangling'));
    await symlink('mixed.txt', place.path('way'));
    await place.call(async () => {
      for (const path of ['mixed.txt', 'w.wide', 'x.lfs', 'run.sh', 'dangling', 'way']) await unlink(place.path(path));
      for (const name of odd) await unlink(Buffer.concat([Buffer.from(`${place.folder}/`), name]));
    });
    expect(place.problems).toEqual([]);
    expect(Object.keys(changesOf(place.checkpoints[1])).sort()).toEqual(
      [
        '"l\\351.t"',
        'a\\b "q" :(top)*',
        'dangling',
        'line\nbreak',
        'mixed.txt',
        'run.sh',
        'w.wide',
        'way',
        'x.lfs',
      ].sort(),
    );
    const restore = place.restore(place.checkpoints[0]?.commit ?? '');
    await restore.apply(await restore.plan());
    expect(await readFile(place.path('mixed.txt'))).toEqual(crlf);
    expect(await readFile(place.path('w.wide'))).toEqual(utf16);
    expect(await readFile(place.path('x.lfs'), 'utf8')).toBe('whole content');
    const names = (await readdir(place.folder, { encoding: 'buffer' })).map((name) => name.toString('latin1'));
    for (const name of odd) expect(names).toContain(name.toString('latin1'));
    const { lstat, readlink } = await import('node:fs/promises');
    expect(await readlink(place.path('dangling'))).toBe('/nowhere/at/all');
    expect((await lstat(place.path('run.sh'))).mode & 0o777).toBe(0o755);
  });

  it('follows a file that becomes a folder, and a folder that becomes a file or a link', async () => {
    const place = await Place.open({ x: 'file', 'y/in.txt': '1', 'z/in.txt': '1' });
    await place.call(async () => {
      await unlink(place.path('x'));
      await place.write('x/in.txt', '2');
      await rm(place.path('y'), { recursive: true });
      await place.write('y', 'file');
      await rm(place.path('z'), { recursive: true });
      await symlink('x', place.path('z'));
    });
    expect(place.problems).toEqual([]);
    expect(changesOf(place.checkpoints[1])).toEqual({
      x: 'deleted',
      'x/in.txt': 'added',
      y: 'added',
      'y/in.txt': 'deleted',
      z: 'added',
      'z/in.txt': 'deleted',
    });
  });

  it('takes many new files into one pack, and they are read and put back like any other', async () => {
    const place = await Place.open({ 'a.txt': '1' });
    for (let n = 0; n < 600; n += 1) await place.write(`many/f${n}.txt`, `file ${n}\n`);
    await place.call(() => rm(place.path('many'), { recursive: true }));
    expect(place.checkpoints[1]?.files_changed).toBe(600);
    expect((await readdir(place.path('.drover/checkpoints/objects/pack'))).length).toBeGreaterThan(0);
    const restore = place.restore(place.checkpoints[0]?.commit ?? '');
    await restore.apply(await restore.plan());
    expect(await readFile(place.path('many/f599.txt'), 'utf8')).toBe('file 599\n');
  });

  it('is of the session’s own copy where it works on one, with its repository left out, and not of the folder', async () => {
    const place = await Place.open({ 'a.txt': '1' });
    place.restart(undefined, 'isolated');
    const early = await place.begin();
    await place.end(early);
    expect(place.drafts).toEqual([]);
    const copy = `.drover/work/${place.session}`;
    await place.write(`${copy}/a.txt`, '1');
    await place.git('init', '-q', copy);
    await place.call(async () => {
      await place.write(`${copy}/a.txt`, 'in the copy');
      await place.write('a.txt', 'in the folder');
    });
    expect(place.problems).toEqual([]);
    expect(place.checkpoints.map(({ files }) => files)).toEqual([[], [{ path: 'a.txt', change: 'modified' }]]);
    const [, [change] = []] = await place.store.changes(place.checkpoints.map(({ commit }) => commit));
    expect((await place.store.blob(change?.after ?? '')).toString()).toBe('in the copy');
  });

  it('passes over sockets, and counts hard links as files', async () => {
    const place = await Place.open({ 'a.txt': '1' });
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(place.path('s.sock'), resolve));
    try {
      await place.call(() => link(place.path('a.txt'), place.path('b.txt')));
      expect(changesOf(place.checkpoints[1])).toEqual({ 'b.txt': 'added' });
      expect(place.problems).toEqual([]);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
