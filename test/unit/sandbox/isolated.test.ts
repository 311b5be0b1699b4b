import { execFileSync } from 'node:child_process';
import { chmod, lstat, mkdir, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { AnyEvent } from '../../../src/protocol/event.ts';
import { mint, type SessionId } from '../../../src/protocol/ids.ts';
import { applyChanges } from '../../../src/sandbox/isolated/apply.ts';
import { changesIn } from '../../../src/sandbox/isolated/changes.ts';
import { ensureCopy, removeLeftCopies } from '../../../src/sandbox/isolated/copy.ts';
import { workFolder } from '../../../src/sandbox/work-folder.ts';
import { makeFolder } from '../../support/temp.ts';

let folder: string;
let copy: string;
let session: SessionId;
let events: AnyEvent[];

const git = (...args: string[]) => {
  const who = ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.test', '-c', 'init.defaultBranch=main'];
  return execFileSync('git', [...who, ...args], { cwd: folder, encoding: 'utf8' });
};
const put = async (root: string, path: string, content: string) => {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), content);
};
const text = (root: string, path: string) => readFile(join(root, path), 'utf8');
const makeCopy = () =>
  ensureCopy({
    session,
    workspaceFolder: folder,
    record: async (drafts) => {
      for (const { event } of drafts) events.push({ ...event, processed_at: event.processed_at ?? 'now' });
    },
  });
const changes = async () => {
  const found = await changesIn(folder, session);
  if (!found) throw new Error('there is no copy');
  return found;
};
const listed = async () => (await changes()).map((one) => `${one.change} ${one.path} ${one.folder}`);
const apply = async (unsaved: (path: string) => boolean = () => false) =>
  applyChanges(folder, session, await changes(), unsaved);

beforeEach(async () => {
  folder = await makeFolder('drover-isolated-');
  session = mint.session();
  events = [];
  copy = workFolder({ session, environment: { workspace: 'isolated' }, workspaceFolder: folder });
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, '.drover'));
  await writeFile(join(folder, '.drover/.gitignore'), '*\n');
});

describe('the copy of a repository', () => {
  beforeEach(async () => {
    git('init', '--quiet');
    await put(folder, '.gitignore', 'node_modules/\n*.log\n');
    await put(folder, 'committed.txt', 'one\n');
    await put(folder, 'src/deep/run.sh', '#!/bin/sh\n');
    await chmod(join(folder, 'src/deep/run.sh'), 0o755);
    await symlink('committed.txt', join(folder, 'link'));
    git('add', '--all');
    git('commit', '--quiet', '--message', 'first');
    git('branch', 'other');
    git('remote', 'add', 'origin', 'https://user:token@git.example.test/x.git');
    await put(folder, '.git/hooks/post-checkout', '#!/bin/sh\ntouch ran\n');
    await chmod(join(folder, '.git/hooks/post-checkout'), 0o755);
    await put(folder, 'committed.txt', 'changed here, not committed\n');
    await put(folder, 'untracked.txt', 'new\n');
    await put(folder, 'node_modules/dep/index.js', 'dep\n');
    await put(folder, 'trace.log', 'log\n');
  });

  it('has every file as it is now, in its own repository, and the original does not notice', async () => {
    const before = git('status', '--porcelain', '--branch');
    const refs = git('for-each-ref');
    const index = await stat(join(folder, '.git/index'));
    await makeCopy();
    expect((await stat(join(folder, '.git/index'))).mtimeMs).toBe(index.mtimeMs);
    expect(await text(copy, 'committed.txt')).toBe('changed here, not committed\n');
    expect(await text(copy, 'untracked.txt')).toBe('new\n');
    expect(await text(copy, 'node_modules/dep/index.js')).toBe('dep\n');
    expect((await stat(join(copy, 'src/deep/run.sh'))).mode & 0o777).toBe(0o755);
    expect(await readlink(join(copy, 'link'))).toBe('committed.txt');
    const inCopy = (...args: string[]) => execFileSync('git', args, { cwd: copy, encoding: 'utf8' });
    expect(inCopy('status', '--porcelain', '--branch')).toBe('## main\n M committed.txt\n?? untracked.txt\n');
    expect(inCopy('log', '--format=%s', 'other')).toBe('first\n');
    expect(inCopy('remote')).toBe('');
    expect(await text(copy, '.git/config')).not.toContain('token');
    expect(await readdir(join(copy, '.git/hooks'))).toEqual([]);
    expect(await lstat(join(copy, '.git/objects/info/alternates')).catch(() => null)).toBeNull();
    inCopy('-c', 'user.name=Bot', '-c', 'user.email=bot@example.test', 'commit', '--quiet', '-am', 'work');
    expect(git('status', '--porcelain', '--branch')).toBe(before);
    expect(git('for-each-ref')).toBe(refs);
    expect(git('worktree', 'list').trim().split('\n')).toHaveLength(1);
    expect(await lstat(join(folder, 'ran')).catch(() => null)).toBeNull();
    expect(events.map(({ type }) => type)).toEqual(['drover.workspace_copied']);
  });

  it('shares no file with the original: writing into its objects changes nothing there', async () => {
    await makeCopy();
    const inode = async (root: string) => {
      const [first = ''] = (await readdir(join(root, '.git/objects'))).filter((name) => name.length === 2).sort();
      const [name = ''] = await readdir(join(root, '.git/objects', first));
      return (await stat(join(root, '.git/objects', first, name))).ino;
    };
    expect(await inode(copy)).not.toBe(await inode(folder));
  });

  it('shows what was changed in it by anyone, but not what git ignores, nor the repository', async () => {
    await makeCopy();
    expect(await changes()).toEqual([]);
    await put(copy, 'committed.txt', 'by the session\n');
    await put(copy, 'new/file.txt', 'added\n');
    await put(copy, 'node_modules/other/index.js', 'ignored\n');
    await put(copy, 'more.log', 'ignored\n');
    await put(copy, 'packages/a/node_modules/x.js', 'ignored\n');
    await put(copy, '.git/config', '[core]\n\tfsmonitor = "touch /tmp/drover-must-not-run"\n');
    await rm(join(copy, 'untracked.txt'));
    await chmod(join(copy, 'src/deep/run.sh'), 0o644);
    expect(await listed()).toEqual([
      'modified committed.txt mine',
      'added new/file.txt mine',
      'modified src/deep/run.sh mine',
      'deleted untracked.txt mine',
    ]);
    await put(folder, 'committed.txt', 'by the person\n');
    await put(folder, 'new/file.txt', 'added\n');
    expect(await listed()).toEqual([
      'modified committed.txt theirs',
      'modified src/deep/run.sh mine',
      'deleted untracked.txt mine',
    ]);
  });

  it('sees a change that keeps size and time', async () => {
    await makeCopy();
    const { atime, mtime } = await stat(join(copy, 'untracked.txt'));
    await put(copy, 'untracked.txt', 'NEW\n');
    const { utimes } = await import('node:fs/promises');
    await utimes(join(copy, 'untracked.txt'), atime, mtime);
    expect(await listed()).toEqual(['modified untracked.txt mine']);
  });

  it('brings changes back with their modes, and leaves those alone that the person has changed', async () => {
    await makeCopy();
    await put(copy, 'committed.txt', 'by the session\n');
    await put(copy, 'new/tool.sh', '#!/bin/sh\n');
    await chmod(join(copy, 'new/tool.sh'), 0o755);
    await rm(join(copy, 'src'), { recursive: true });
    await rm(join(copy, 'link'));
    await symlink('untracked.txt', join(copy, 'link'));
    await put(copy, 'untracked.txt', 'also by the session\n');
    await put(folder, 'untracked.txt', 'by the person\n');
    const applied = await apply((path) => path === 'committed.txt');
    expect(applied.refused).toEqual([
      { path: 'committed.txt', why: 'it is open in an editor with changes that are not saved' },
      { path: 'untracked.txt', why: 'you changed it since the session made its copy' },
    ]);
    expect(applied.files.map((file) => `${file.change} ${file.path}`)).toEqual([
      'deleted src/deep/run.sh',
      'modified link',
      'added new/tool.sh',
    ]);
    expect(await text(folder, 'untracked.txt')).toBe('by the person\n');
    expect((await stat(join(folder, 'new/tool.sh'))).mode & 0o777).toBe(0o755);
    expect(await readlink(join(folder, 'link'))).toBe('untracked.txt');
    expect(await lstat(join(folder, 'src')).catch(() => null)).toBeNull();
    expect(await listed()).toEqual(['modified committed.txt mine', 'modified untracked.txt theirs']);
    expect((await apply()).files.map(({ path }) => path)).toEqual(['committed.txt']);
    expect(await text(folder, 'committed.txt')).toBe('by the session\n');
    // What the session writes after that is a change again, and the person's state is the new one to compare with.
    await put(copy, 'committed.txt', 'once more\n');
    expect(await listed()).toEqual(['modified committed.txt mine', 'modified untracked.txt theirs']);
    expect((await readdir(folder)).filter((name) => name.startsWith('.drover-'))).toEqual([]);
  });

  it('never writes through a link, out of the folder or into the repository', async () => {
    const outside = await makeFolder('drover-outside-');
    onTestFinished(() => rm(outside, { recursive: true, force: true }));
    await symlink(outside, join(folder, 'away'));
    await makeCopy();
    await rm(join(copy, 'away'));
    await put(copy, 'away/evil.txt', 'evil\n');
    await put(copy, 'sub/.git/hooks/pre-commit', 'evil\n');
    const [link, file] = await changes();
    expect([link?.path, file?.path]).toEqual(['away', 'away/evil.txt']);
    // The link is still the person's: a file "below" it would land outside.
    const refused = await applyChanges(folder, session, file ? [file] : [], () => false);
    expect(refused.refused).toEqual([{ path: 'away/evil.txt', why: 'away is no folder in your workspace' }]);
    expect(await readdir(outside)).toEqual([]);
    const forged = file
      ? [
          { ...file, path: '../escaped.txt' },
          { ...file, path: '.git/hooks/x' },
        ]
      : [];
    expect((await applyChanges(folder, session, forged, () => false)).files).toEqual([]);
    // With the link's own change chosen too, the folder takes its place.
    expect((await apply()).refused).toEqual([]);
    expect(await text(folder, 'away/evil.txt')).toBe('evil\n');
    expect(await readdir(outside)).toEqual([]);
  });

  it('does not bring back what was written after it was listed', async () => {
    await makeCopy();
    await put(copy, 'committed.txt', 'reviewed\n');
    const seen = await changes();
    await put(copy, 'committed.txt', 'not reviewed\n');
    const applied = await applyChanges(folder, session, seen, () => false);
    expect(applied.refused).toEqual([
      { path: 'committed.txt', why: 'the session changed it again since it was listed; review it anew' },
    ]);
    await rm(join(copy, 'committed.txt'));
    await symlink('/etc/hostname', join(copy, 'committed.txt'));
    expect((await applyChanges(folder, session, seen, () => false)).files).toEqual([]);
    expect(await text(folder, 'committed.txt')).toBe('changed here, not committed\n');
  });

  it('is made once, also by several at the same time, and again if a crash left it half', async () => {
    await put(folder, `.drover/work/${session}.partial/half.txt`, 'half\n');
    await Promise.all([makeCopy(), makeCopy(), makeCopy()]);
    expect(events).toHaveLength(1);
    await put(copy, 'mine.txt', 'the session wrote this\n');
    await makeCopy();
    expect(await text(copy, 'mine.txt')).toBe('the session wrote this\n');
    expect(await readdir(join(folder, '.drover/work'))).toEqual([session, `${session}.base.json`]);
  });

  it('takes a folder that is there as it is, and compares it with the folder of the person', async () => {
    await put(copy, 'committed.txt', 'as it was at a checkpoint\n');
    await makeCopy();
    expect(await listed()).toContain('modified committed.txt mine');
    expect(await text(copy, 'committed.txt')).toBe('as it was at a checkpoint\n');
  });
});

describe('the copy of a folder without a repository', () => {
  it('has all of it but the logs, and its changes come back', async () => {
    await put(folder, 'a/b.txt', 'b\n');
    await put(folder, '.drover/sessions/x/log.jsonl', 'truth\n');
    await makeCopy();
    expect(await readdir(copy)).toEqual(['a']);
    await put(copy, 'a/c.txt', 'c\n');
    expect(await listed()).toEqual(['added a/c.txt mine']);
    expect((await apply()).files).toHaveLength(1);
    expect(await text(folder, 'a/c.txt')).toBe('c\n');
    expect(await changes()).toEqual([]);
  });

  it('goes when its session is gone, but not before it is old enough to be left over', async () => {
    await put(folder, 'a.txt', 'a\n');
    await makeCopy();
    const kept = mint.session();
    await mkdir(join(folder, '.drover/work', kept));
    await mkdir(join(folder, '.drover/sessions', kept), { recursive: true });
    await removeLeftCopies(folder);
    expect(await readdir(join(folder, '.drover/work'))).toHaveLength(3);
    vi.useFakeTimers({ now: Date.now() + 2 * 60 * 60_000, toFake: ['Date'] });
    try {
      await removeLeftCopies(folder);
    } finally {
      vi.useRealTimers();
    }
    expect(await readdir(join(folder, '.drover/work'))).toEqual([kept]);
  });

  it('is none before it is made', async () => {
    expect(await changesIn(folder, session)).toBeNull();
  });
});
