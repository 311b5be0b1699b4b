import { execFileSync } from 'node:child_process';
import { lstat, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureSampleImage, ensureTinyImage } from '../../scripts/image.mjs';
import type { EnvironmentConfig } from '../../src/protocol/environment.ts';
import { describeWith, docker, engineAvailable } from '../support/engine.ts';
import { attacks } from './attacks.ts';
import { makeImages, makeRig, type Rig, SAMPLE, sh, TINY, textOf, types } from './rig.ts';

const engine = await engineAvailable();

const GIT = ['-c', 'user.name=Test', '-c', 'user.email=test@localhost', '-c', 'init.defaultBranch=main'];
const OPEN = ['.vscode/tasks.json', '.devcontainer/devcontainer.json', '.devcontainer.json', '.drover/catalog.json'];

describeWith(engine, 'guard rails', () => {
  let rig: Rig;
  const git = (folder: string, ...args: string[]) =>
    execFileSync('git', ['-C', folder, ...GIT, ...args], { encoding: 'utf8', stdio: 'pipe' });
  const container = () =>
    docker('ps', '--all', '--quiet', '--no-trunc', '--filter', `label=drover.workspace=${rig.workspace}`);
  const acquire = (image: string, more: Partial<EnvironmentConfig> = {}) =>
    rig.provider.acquire(rig.owner({ type: 'image', image, ...more } as EnvironmentConfig));

  beforeAll(async () => {
    await makeImages(ensureTinyImage, ensureSampleImage);
  });
  beforeEach(async () => {
    rig = await makeRig();
  });
  afterEach(async () => {
    await rig.clear();
  });

  it('hold where nothing was there when the sandbox was made', async () => {
    const sandbox = await acquire(TINY);
    for (const path of [...OPEN, '.git/config', '.git/hooks/pre-commit', '.git'])
      expect([path, await attacks(sandbox, path)]).toEqual([path, '']);
    for (const path of ['.vscode', '.devcontainer', '.devcontainer.json', '.drover', '.git'])
      expect([path, await readdir(join(rig.workspace, path))]).toEqual([path, []]);
    expect((await sh(sandbox, 'echo fine >new.txt && mkdir -p sub && mv new.txt sub/')).exitCode).toBe(0);
  });

  it('hold over a repository that can still be committed to', async () => {
    git(rig.workspace, 'init', '--quiet');
    await rig.put('.vscode/tasks.json', '{}\n');
    await rig.put('a.txt', 'a\n');
    const sandbox = await acquire(SAMPLE);
    for (const path of [...OPEN, '.git/config', '.git/hooks/pre-commit', '.git/hooks/post-checkout'])
      expect([path, await attacks(sandbox, path)]).toEqual([path, '']);
    const commit = `git ${GIT.join(' ')} add . && git ${GIT.join(' ')} commit --quiet -m "from inside" && git branch x`;
    expect(await sh(sandbox, commit)).toMatchObject({ exitCode: 0 });
    expect(git(rig.workspace, 'log', '--format=%s')).toBe('from inside\n');
    expect((await sh(sandbox, 'git config core.fsmonitor /evil')).exitCode).not.toBe(0);
    expect(await readFile(join(rig.workspace, '.git/config'), 'utf8')).not.toContain('evil');
  });

  it('let no repository be led to a configuration from inside', async () => {
    git(rig.workspace, 'init', '--quiet');
    const sandbox = await acquire(SAMPLE);
    await sh(sandbox, 'mkdir evil && cp -r .git/* evil/ && printf ../evil >.git/commondir');
    expect(await readdir(join(rig.workspace, '.git'))).not.toContain('commondir');
    expect(rig.progress.join('\n')).toMatch(/\.git\/commondir was made in the sandbox and removed/);
    expect(git(rig.workspace, 'rev-parse', '--git-common-dir')).toBe('.git\n');
  });

  it('hold over the file that stands for .git in a worktree or submodule, and over nested repositories', async () => {
    const other = join(rig.cache, 'other');
    await mkdir(other, { recursive: true });
    git(other, 'init', '--quiet');
    git(other, 'commit', '--quiet', '--allow-empty', '-m', 'x');
    git(rig.workspace, 'init', '--quiet');
    git(rig.workspace, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', other, 'sub');
    git(other, 'worktree', 'add', '--quiet', join(rig.workspace, 'tree'));
    const nested = join(rig.workspace, 'packages/inner');
    await mkdir(nested, { recursive: true });
    git(nested, 'init', '--quiet');
    const sandbox = await acquire(SAMPLE);
    for (const path of ['sub/.git', 'tree/.git', '.git/modules/sub/config', '.git/modules/sub/hooks/pre-commit'])
      expect([path, await attacks(sandbox, path)]).toEqual([path, '']);
    for (const path of ['packages/inner/.git/config', 'packages/inner/.git/hooks/pre-commit'])
      expect([path, await attacks(sandbox, path)]).toEqual([path, '']);
  });

  it('hold over hooks and configuration that the repository takes from the folder', async () => {
    git(rig.workspace, 'init', '--quiet');
    git(rig.workspace, 'config', 'core.hooksPath', '.husky/_');
    git(rig.workspace, 'config', 'include.path', '../.gitconfig');
    await rig.put('.gitconfig', '[core]\n');
    const sandbox = await acquire(TINY);
    for (const path of ['.husky/_/pre-commit', '.gitconfig'])
      expect([path, await attacks(sandbox, path)]).toEqual([path, '']);
  });

  it('hold again after the host has put other files in place of the guarded ones', async () => {
    git(rig.workspace, 'init', '--quiet');
    await rig.put('.vscode/tasks.json', '{}\n');
    const sandbox = await acquire(SAMPLE);
    await sh(sandbox, 'echo kept >/tmp/kept');
    const before = container();
    // Git writes a new file and gives it the name, which takes the mount over the old one away.
    git(rig.workspace, 'config', 'user.name', 'Somebody Else');
    await rm(join(rig.workspace, '.vscode'), { recursive: true });
    for (const path of ['.git/config', '.vscode/tasks.json'])
      expect([path, await attacks(sandbox, path)]).toEqual([path, '']);
    expect(textOf((await sh(sandbox, 'cat /tmp/kept; git config user.name')).stdout)).toBe('kept\nSomebody Else\n');
    expect(container()).toBe(before);
    expect(types(rig.events)).not.toContain('drover.sandbox_lost');
  });

  it('hold in a fresh sandbox once the person has made a repository', async () => {
    const owner = rig.owner({ type: 'image', image: SAMPLE });
    const first = await rig.provider.acquire(owner);
    git(rig.workspace, 'init', '--quiet');
    await expect(sh(first, 'true')).rejects.toThrow(/write-protected in this folder has changed/);
    const sandbox = await rig.provider.acquire(owner);
    expect(sandbox.id).not.toBe(first.id);
    expect(await attacks(sandbox, '.git/hooks/pre-commit')).toBe('');
    const commit = `git ${GIT.join(' ')} commit --quiet --allow-empty -m x`;
    expect((await sh(sandbox, commit)).exitCode).toBe(0);
  });

  it('hold for another process that finds the sandbox again', async () => {
    git(rig.workspace, 'init', '--quiet');
    const owner = rig.owner({ type: 'image', image: SAMPLE });
    const sandbox = await rig.provider.acquire(owner);
    git(rig.workspace, 'config', 'user.name', 'Somebody Else');
    const { createSandboxProvider } = await import('../../src/sandbox/provider.ts');
    const other = createSandboxProvider(rig.options);
    try {
      const again = await other.acquire(owner);
      expect(again.id).toBe(sandbox.id);
      expect(await attacks(again, '.git/config')).toBe('');
    } finally {
      await other.dispose();
    }
  });

  it('hold in a devcontainer, wherever it mounts the folder', async () => {
    git(rig.workspace, 'init', '--quiet');
    await rig.put(
      '.devcontainer/devcontainer.json',
      JSON.stringify({
        image: SAMPLE,
        workspaceMount: `source=\${localWorkspaceFolder},target=/somewhere/else,type=bind`,
        workspaceFolder: '/somewhere/else',
        mounts: [`source=\${localWorkspaceFolder}/.git,target=/again,type=bind`],
      }),
    );
    const sandbox = await rig.provider.acquire(rig.owner({ type: 'devcontainer' }));
    expect(sandbox.workspace).toBe('/somewhere/else');
    for (const path of [...OPEN, '.git/config', '.git/hooks/pre-commit'])
      expect([path, await attacks(sandbox, path)]).toEqual([path, '']);
    expect((await sh(sandbox, 'ls /again')).exitCode).not.toBe(0);
  });

  it('refuse a folder where a link takes the place of what is to be guarded', async () => {
    await mkdir(join(rig.workspace, 'real'));
    execFileSync('ln', ['-s', 'real', join(rig.workspace, '.vscode')]);
    await expect(acquire(TINY)).rejects.toThrow(/\.vscode in this folder is a link/);
    expect(container()).toBe('');
  });

  it('leave nothing in the folder when the last sandbox is gone, and keep what the person made meanwhile', async () => {
    await rig.put('a.txt', 'a\n');
    const one = rig.owner({ type: 'image', image: TINY });
    const two = { ...one, session: (await import('../../src/protocol/ids.ts')).mint.session() };
    await rig.provider.acquire(one);
    const second = await rig.provider.acquire(two);
    await rig.provider.remove(one, 'done');
    // Still guarded for the other.
    expect(await attacks(second, '.vscode/tasks.json')).toBe('');
    await writeFile(join(rig.workspace, '.vscode/settings.json'), '{}\n');
    await rig.provider.remove(two, 'done');
    expect(await readdir(rig.workspace)).toEqual(['.vscode', 'a.txt']);
  });

  it('change the owner and mode of nothing', async () => {
    git(rig.workspace, 'init', '--quiet');
    await rig.put('.devcontainer/devcontainer.json', JSON.stringify({ image: SAMPLE, remoteUser: 'dev' }));
    await rig.put('deep/er/a.txt', 'a\n');
    const look = async () => {
      const all = await readdir(rig.workspace, { recursive: true });
      const kept = all.filter((path) => !/^\.(vscode|drover|devcontainer\.json)/.test(path)).sort();
      return await Promise.all(
        kept.map(async (path) => {
          const { uid, gid, mode } = await lstat(join(rig.workspace, path));
          return [path, uid, gid, mode];
        }),
      );
    };
    const before = await look();
    await rig.provider.acquire(rig.owner({ type: 'devcontainer' }));
    expect(await look()).toEqual(before);
  });

  it('are checked in the container itself: one that lacks them is not used', async () => {
    const owner = rig.owner({ type: 'image', image: TINY });
    const sandbox = await rig.provider.acquire(owner);
    const { State: _, ...info } = JSON.parse(docker('inspect', '--format', '{{json .}}', container()));
    const { weakness } = await import('../../src/sandbox/docker/hardening.ts');
    const promised = {
      folder: rig.workspace,
      target: sandbox.workspace,
      guarded: [{ path: '.vscode', how: 'read_only' as const }],
      wayOut: { type: 'bind' as const, source: '', target: '/run/drover', readOnly: true },
    };
    expect(weakness(info, promised)).toBeUndefined();
    const more = { ...promised, guarded: [{ path: 'src', how: 'read_only' as const }] };
    expect(weakness(info, more)).toMatch(/can write to src/);
    expect(weakness(info, { ...promised, folder: '/another' })).toMatch(/mounts .* of the host/);
    await rename(join(rig.workspace, '.vscode'), join(rig.workspace, '.was-vscode'));
  });
});
