import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureTinyImage } from '../../scripts/image.mjs';
import type { EnvironmentConfig } from '../../src/protocol/environment.ts';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import type { SandboxOwner } from '../../src/sandbox/sandbox.ts';
import { workFolder } from '../../src/sandbox/work-folder.ts';
import { describeWith, engineAvailable, osSandboxAvailable } from '../support/engine.ts';
import { makeImages, makeRig, type Rig, sh, TINY, textOf, types } from './rig.ts';

const engine = await engineAvailable();

/** The same promises, whatever the hands are. */
function worksOnACopy(config: EnvironmentConfig): void {
  let rig: Rig;
  const owner = (): SandboxOwner => {
    const of = rig.owner(config);
    return { ...of, environment: { ...of.environment, workspace: 'isolated' } };
  };
  beforeEach(async () => {
    rig = await makeRig();
    await mkdir(join(rig.workspace, '.drover'));
    execFileSync('git', ['init', '--quiet'], { cwd: rig.workspace });
    await rig.put('file.txt', 'as it was\n');
    await rig.put('.drover/sessions/secret.txt', 'log\n');
  });
  afterEach(async () => {
    await rig.clear();
  });

  it('reads and writes the copy, and never the folder itself', async () => {
    const of = owner();
    const sandbox = await rig.provider.acquire(of);
    const copy = workFolder(of);
    const seen = await sh(
      sandbox,
      'cat file.txt; echo changed >file.txt; echo new >new.txt; git status >/dev/null 2>&1; cat .drover/sessions/secret.txt',
    );
    expect(textOf(seen.stdout)).toBe('as it was\n');
    expect(await readFile(join(rig.workspace, 'file.txt'), 'utf8')).toBe('as it was\n');
    expect((await readdir(rig.workspace)).sort()).toEqual(['.drover', '.git', 'file.txt']);
    expect(await readFile(join(copy, 'file.txt'), 'utf8')).toBe('changed\n');
    expect(await readFile(join(copy, 'new.txt'), 'utf8')).toBe('new\n');
    // By its full path the folder is out of reach, too, and so are the logs.
    const around = await sh(
      sandbox,
      `echo out >'${rig.workspace}/out.txt'; cat '${rig.workspace}/.drover/sessions/secret.txt'`,
    );
    expect(textOf(around.stdout)).toBe('');
    expect(await readdir(rig.workspace)).not.toContain('out.txt');
    expect(types(rig.events)).toEqual([
      'drover.sandbox_provisioning',
      'drover.workspace_copied',
      'drover.sandbox_ready',
    ]);
  });

  it('goes on in the same copy in another process', async () => {
    const of = owner();
    const first = await rig.provider.acquire(of);
    await sh(first, 'echo kept >kept.txt');
    const next = createSandboxProvider(rig.options);
    const second = await next.acquire(of);
    expect(textOf((await sh(second, 'cat kept.txt')).stdout)).toBe('kept\n');
    await next.remove(of, 'the test is over');
    await next.dispose();
  });
}

describeWith(engine, 'a session with a copy of its own, in a container', () => {
  beforeAll(async () => {
    await makeImages(ensureTinyImage);
  });
  worksOnACopy({ type: 'image', image: TINY });
});

describeWith(
  await osSandboxAvailable(),
  'a session with a copy of its own, in the sandbox of the operating system',
  () => {
    worksOnACopy({ type: 'os' });
  },
);
