/*
 * A person's window, without the window: makes sandboxes as whoever runs it and writes what it saw, as JSON, to its
 * output. Usage: node user-child.ts IMAGE USER-OF-A-DEVCONTAINER [ENGINE], which otherwise is looked for.
 */
import { chmod, lstat, mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { makeRig, sh, textOf } from './rig.ts';

const [image = '', remoteUser = '', engine] = process.argv.slice(2);
// As the setting does, which counts whatever the variables of this process say.
const rig = await makeRig({ env: { ...process.env, ...(engine ? { DOCKER_HOST: engine } : {}) } });
const owners = async (...paths: string[]) =>
  Object.fromEntries(
    await Promise.all(paths.map(async (path) => [path, (await lstat(join(rig.workspace, path))).uid])),
  );
const seen: Record<string, unknown> = { user: process.getuid?.(), workspace: basename(rig.workspace) };
try {
  await rig.put('mine.txt', 'mine\n');
  const line = 'id -u; cat mine.txt; mkdir -p made; echo m >made/m.txt; ls -A .drover; echo x >.drover/x';
  const read = async (path: string) => await readFile(join(rig.workspace, path), 'utf8');
  await mkdir(join(rig.workspace, '.drover'));
  await writeFile(join(rig.workspace, '.drover/log.jsonl'), 'truth\n');

  const owner = rig.owner({ type: 'image', image });
  const plain = await rig.provider.acquire(owner);
  seen.plain = textOf((await sh(plain, line)).stdout);
  seen.owners = await owners('.', 'mine.txt', 'made', 'made/m.txt', '.drover/log.jsonl');
  seen.serving = rig.provider.serving();
  await rig.provider.remove(owner, 'done');

  // Where everybody may write, the user of the image could as well.
  await chmod(rig.workspace, 0o777);
  const open = await rig.provider.acquire(owner);
  await sh(open, 'echo o >open.txt');
  seen.open = await owners('open.txt');
  await rig.provider.remove(owner, 'done');
  await chmod(rig.workspace, 0o700);

  if (remoteUser !== '') {
    await rig.put('.devcontainer.json', JSON.stringify({ image, remoteUser, postCreateCommand: 'echo p >post.txt' }));
    const made = await rig.provider.acquire(rig.owner({ type: 'devcontainer' }));
    seen.devcontainer = textOf((await sh(made, 'id -un; echo d >dev.txt')).stdout);
    seen.devcontainerOwners = await owners('post.txt', 'dev.txt');
    await rig.provider.remove(owner, 'done');
  }
  seen.log = await read('.drover/log.jsonl');
} finally {
  await rig.clear();
}
console.log(JSON.stringify(seen));
process.exit(0);
