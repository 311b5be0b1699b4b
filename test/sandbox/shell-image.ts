import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { docker } from '../support/engine.ts';
import { makeFolder } from '../support/temp.ts';

const found = (program: string): string =>
  spawnSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).stdout.trim();

/** Whether this machine has the programs that such an image is made of. */
export const canMakeShellImage = (shell: 'busybox' | 'dash'): boolean =>
  found('busybox') !== '' && (shell === 'busybox' || found('dash') !== '');

/** An image that has only busybox; with `dash` that is its shell. Returns how to remove it. */
export async function makeShellImage(shell: 'busybox' | 'dash', image: string): Promise<() => void> {
  const root = await makeFolder('drover-shell-');
  const busybox = found('busybox');
  try {
    for (const folder of ['bin', 'tmp', 'etc', 'workspace']) await mkdir(join(root, folder));
    await copyFile(busybox, join(root, 'bin/busybox'));
    const applets = spawnSync(busybox, ['--list'], { encoding: 'utf8' }).stdout.trim().split('\n');
    const taken = shell === 'dash' ? ['busybox', 'sh', 'ash', 'bash'] : ['busybox'];
    for (const applet of applets) {
      if (!taken.includes(applet)) await symlink('busybox', join(root, 'bin', applet));
    }
    if (shell === 'dash') await addDash(root);
    await writeFile(join(root, 'etc/passwd'), 'root:x:0:0:root:/:/bin/sh\n');
    const imported = spawnSync('sh', ['-c', `tar -C '${root}' -c . | docker import -c 'ENV PATH=/bin' - ${image}`]);
    if (imported.status !== 0) throw new Error(`${image} could not be made: ${imported.stderr}`);
  } finally {
    await rm(root, { recursive: true });
  }
  return () => void docker('rmi', '--force', image);
}

/** With the libraries it is linked against. */
async function addDash(root: string): Promise<void> {
  await copyFile(found('dash'), join(root, 'bin/sh'));
  const linked = spawnSync('ldd', [found('dash')], { encoding: 'utf8' }).stdout;
  for (const [library] of linked.matchAll(/\/\S+/g)) {
    await mkdir(join(root, library, '..'), { recursive: true });
    await copyFile(library, join(root, library));
  }
}
