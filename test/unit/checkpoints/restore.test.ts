import { mkdir, readFile, rm, stat, symlink, truncate, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { planned } from '../../../src/sandbox/checkpoints/restore.ts';
import { changesOf, Place } from './rig.ts';

const text = (place: Place, path: string): Promise<string> => readFile(place.path(path), 'utf8');
const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

describe('putting files back', () => {
  it('undoes what came since, can itself be undone, and says who changed what', async () => {
    const place = await Place.open({ 'a.txt': 'one\n', 'gone.txt': 'x\n', 'mine.txt': 'm\n' });
    await place.call(() => place.write('a.txt', 'two\n'));
    await place.call(async () => {
      await place.write('a.txt', 'three\n');
      await place.write('deep/er/new.txt', 'n\n');
      await unlink(place.path('gone.txt'));
    });
    await place.write('mine.txt', 'edited by the person\n');
    const [, one, two] = place.checkpoints;
    const restore = place.restore(one?.commit ?? '', two ? [two] : []);
    const plan = await restore.plan();
    expect(planned(plan)).toEqual([
      { path: 'a.txt', change: 'modified', byOthers: false },
      { path: 'deep/er/new.txt', change: 'deleted', byOthers: false },
      { path: 'gone.txt', change: 'added', byOthers: false },
      { path: 'mine.txt', change: 'modified', byOthers: true },
    ]);
    expect(await text(place, 'a.txt')).toBe('three\n');
    const drafts = await restore.apply(plan);
    place.drafts.push(...drafts);
    expect(drafts.map(({ event }) => event.type)).toEqual([
      'drover.checkpoint',
      'drover.files_restored',
      'drover.checkpoint',
    ]);
    expect(await text(place, 'a.txt')).toBe('two\n');
    expect(await text(place, 'gone.txt')).toBe('x\n');
    expect(await text(place, 'mine.txt')).toBe('m\n');
    expect(await exists(place.path('deep'))).toBe(false);
    const before = place.checkpoints.at(-2);
    expect(changesOf(before)).toEqual({ 'mine.txt': 'modified' });
    const undo = place.restore(before?.commit ?? '');
    place.drafts.push(...(await undo.apply(await undo.plan())));
    expect(await text(place, 'a.txt')).toBe('three\n');
    expect(await text(place, 'mine.txt')).toBe('edited by the person\n');
    expect(await text(place, 'deep/er/new.txt')).toBe('n\n');
  });

  it('drops no commit, branch or staged change of the user’s repository', async () => {
    const place = await Place.open({ 'a.txt': '1\n', 'b.txt': '1\n' });
    await place.git('init', '-q', '-b', 'main');
    await place.git('add', 'a.txt', 'b.txt');
    await place.git('commit', '-qm', 'first');
    await place.call(() => place.write('a.txt', '2\n'));
    await place.git('commit', '-qam', 'second');
    await place.write('b.txt', '3\n');
    await place.git('add', 'b.txt');
    const refs = async () => [await place.git('rev-parse', 'HEAD'), await place.git('diff', '--cached')];
    const before = await refs();
    const restore = place.restore(place.checkpoints[0]?.commit ?? '');
    await restore.apply(await restore.plan());
    expect(await text(place, 'a.txt')).toBe('1\n');
    expect(await text(place, 'b.txt')).toBe('1\n');
    expect(await refs()).toEqual(before);
    expect(await place.git('fsck', '--strict')).toBe('');
  });

  it('changes nothing when a file moved on since the person was asked', async () => {
    const place = await Place.open({ 'a.txt': '1\n', 'b.txt': '1\n' });
    await place.call(async () => {
      await place.write('a.txt', '2\n');
      await place.write('b.txt', '2\n');
    });
    const restore = place.restore(place.checkpoints[0]?.commit ?? '');
    const plan = await restore.plan();
    await place.write('b.txt', 'saved just now\n');
    await expect(restore.apply(plan)).rejects.toThrow(/Files changed in the meantime/);
    expect(await text(place, 'a.txt')).toBe('2\n');
    expect(await text(place, 'b.txt')).toBe('saved just now\n');
  });

  it('leaves alone what a checkpoint never had: ignored and huge files, then and now', async () => {
    const place = await Place.open({ '.gitignore': 'ignored\n', ignored: '1', 'was-small': 's', 'a.txt': '1' });
    await place.write('was-huge', '');
    await truncate(place.path('was-huge'), 11 * 1024 * 1024);
    await place.call(async () => {
      await place.write('ignored', '2');
      await place.write('was-huge', 'small now');
      await truncate(place.path('was-small'), 11 * 1024 * 1024);
      await place.write('a.txt', '2');
    });
    const restore = place.restore(place.checkpoints[0]?.commit ?? '');
    const plan = await restore.plan();
    expect(plan.leftAlone.sort()).toEqual(['was-huge', 'was-small']);
    expect(planned(plan).map(({ path }) => path)).toEqual(['a.txt']);
    await restore.apply(plan);
    expect(await text(place, 'a.txt')).toBe('1');
    expect(await text(place, 'ignored')).toBe('2');
    expect(await text(place, 'was-huge')).toBe('small now');
    expect((await stat(place.path('was-small'))).size).toBe(11 * 1024 * 1024);
  });

  it('writes through no link that leads out of the folder', async () => {
    const place = await Place.open({ 'dir/a.txt': 'inside' });
    const outside = join(place.folder, '..', 'outside');
    await mkdir(outside);
    await place.call(async () => {
      await rm(place.path('dir'), { recursive: true });
      await symlink(outside, place.path('dir'));
    });
    const restore = place.restore(place.checkpoints[0]?.commit ?? '');
    await restore.apply(await restore.plan());
    expect(await text(place, 'dir/a.txt')).toBe('inside');
    expect(await exists(join(outside, 'a.txt'))).toBe(false);
  });

  it('puts back the files of a repository inside the folder and leaves its .git as it is', async () => {
    const place = await Place.open({ 'dep/lib.c': '1' });
    await place.git('init', '-q', 'dep');
    await place.git('-C', 'dep', 'add', '.');
    await place.git('-C', 'dep', 'commit', '-qm', 'x');
    await place.call(async () => {
      await place.write('dep/lib.c', '2');
      await place.git('-C', 'dep', 'commit', '-qam', 'y');
      await place.write('dep/more.c', '2');
    });
    const head = await place.git('-C', 'dep', 'rev-parse', 'HEAD');
    const restore = place.restore(place.checkpoints[0]?.commit ?? '');
    await restore.apply(await restore.plan());
    expect(await text(place, 'dep/lib.c')).toBe('1');
    expect(await exists(place.path('dep/more.c'))).toBe(false);
    expect(await place.git('-C', 'dep', 'rev-parse', 'HEAD')).toBe(head);
  });

  it('says that the files are not kept any more where they are not', async () => {
    const place = await Place.open({ 'a.txt': '1' });
    await place.call(() => place.write('a.txt', '2'));
    await expect(place.restore('0'.repeat(39).concat('1')).plan()).rejects.toThrow(/not kept any more/);
    await expect(place.store.blob('0'.repeat(39).concat('1'))).rejects.toThrow(/not kept any more/);
  });

  it('writes the files of a checkpoint into another folder, for a session that works on a copy', async () => {
    const place = await Place.open({ 'a.txt': '1', 'x/b.txt': '1' });
    await place.call(() => place.write('a.txt', '2'));
    const copy = join(place.folder, '.drover', 'work', 'sesn_copy');
    await place.store.writeTo(copy, place.checkpoints[0]?.commit ?? '');
    expect(await readFile(join(copy, 'a.txt'), 'utf8')).toBe('1');
    expect(await readFile(join(copy, 'x', 'b.txt'), 'utf8')).toBe('1');
  });
});
