import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { ensureTinyImage } from '../../scripts/image.mjs';
import { type Available, describeWith, docker, engineAvailable, removeLabelled } from '../support/engine.ts';
import { eventually } from '../support/eventually.ts';
import { makeFolder } from '../support/temp.ts';
import { environmentOf, makeImages, makeRig, type Rig, sh, TINY, textOf } from './rig.ts';

const engine = await engineAvailable();
const image = { type: 'image' as const, image: TINY };
const runs = (program: string, ...args: string[]) => spawnSync(program, args, { timeout: 20_000 }).status === 0;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const bound = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof bound === 'object' && bound ? bound.port : 0;
}

function sshAvailable(): Available {
  if (!engine.ok) return engine;
  const ok = existsSync('/usr/sbin/sshd') && runs('sh', '-c', 'command -v ssh') && process.getuid?.() === 0;
  return { ok, why: 'a server of ssh of the test’s own needs sshd, ssh and root' };
}

describeWith(sshAvailable(), 'an engine reached by ssh', () => {
  let folder: string;
  let server: ChildProcess;
  let rig: Rig;
  let port: number;

  beforeAll(async () => {
    await makeImages(ensureTinyImage);
    folder = await makeFolder('drover-ssh-');
    for (const key of ['host', 'client'])
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, key)]);
    await writeFile(join(folder, 'authorized'), await readFile(join(folder, 'client.pub')));
    await chmod(join(folder, 'authorized'), 0o600);
    port = await freePort();
    const hostKey = (await readFile(join(folder, 'host.pub'), 'utf8')).split(' ').slice(0, 2).join(' ');
    await writeFile(join(folder, 'known'), `[127.0.0.1]:${port} ${hostKey}\n`);
    await mkdir('/run/sshd', { recursive: true });
    const options = {
      ListenAddress: '127.0.0.1',
      Port: String(port),
      HostKey: join(folder, 'host'),
      AuthorizedKeysFile: join(folder, 'authorized'),
      PasswordAuthentication: 'no',
      UsePAM: 'no',
      StrictModes: 'no',
      PidFile: 'none',
      SetEnv: `PATH=${process.env.PATH}`,
    };
    const config = Object.entries(options).map(([name, value]) => `${name} ${value}\n`);
    await writeFile(join(folder, 'sshd_config'), config.join(''));
    server = spawn('/usr/sbin/sshd', ['-D', '-e', '-f', join(folder, 'sshd_config')], { stdio: 'ignore' });
    // The person's own ssh is used with the person's own settings: here, those of this folder.
    await writeFile(
      join(folder, 'ssh'),
      `#!/bin/sh\nexec /usr/bin/ssh -F none -i ${join(folder, 'client')} -o UserKnownHostsFile=${join(folder, 'known')} "$@"\n`,
    );
    await chmod(join(folder, 'ssh'), 0o755);
    const env = { ...process.env, PATH: `${folder}:${process.env.PATH}`, DOCKER_HOST: `ssh://root@127.0.0.1:${port}` };
    rig = await makeRig({ env });
    await eventually(
      'sshd to listen',
      10_000,
      () =>
        runs('sh', '-c', `exec 3<>/dev/tcp/127.0.0.1/${port}`) ||
        runs('bash', '-c', `exec 3<>/dev/tcp/127.0.0.1/${port}`),
    );
  });
  afterAll(async () => {
    server.kill();
    removeLabelled(`drover.workspace=${rig.workspace}`);
    await rig.clear();
    await rm(folder, { recursive: true, force: true });
  });

  it('serves as any other, with the files carried there and back', async () => {
    await rig.put('a.txt', 'a\n');
    const owner = rig.owner(image);
    const sandbox = await rig.provider.acquire(owner);
    const result = await sh(sandbox, 'cat a.txt; cat; echo b >b.txt', { stdin: new TextEncoder().encode('given\n') });
    expect(textOf(result.stdout)).toBe('a\ngiven\n');
    expect(await readFile(join(rig.workspace, 'b.txt'), 'utf8')).toBe('b\n');
    expect(rig.provider.serving()).toMatch(
      /^Docker .*on another machine at ssh:\/\/root@127\.0\.0\.1:\d+ \(from DOCKER_HOST\)$/,
    );
    await rig.provider.remove(owner, 'done');
    expect(docker('ps', '--all', '--quiet', '--filter', `label=drover.workspace=${rig.workspace}`)).toBe('');
  });
});

describeWith(
  engine.ok ? { ok: process.getuid?.() === 0, why: 'only root can become a user who may not use the engine' } : engine,
  'an engine that this user may not use',
  () => {
    it('is told from one that is not there, with what to do', async () => {
      const script = `
        const { connect } = await import(${JSON.stringify(new URL('../../src/sandbox/docker/client.ts', import.meta.url).href)});
        await connect({ DOCKER_HOST: 'unix:///var/run/docker.sock' }).catch((error) => console.log(error.message));`;
      const said = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
        encoding: 'utf8',
        uid: 65534,
        gid: 65534,
        timeout: 30_000,
        env: { PATH: process.env.PATH },
      });
      expect(said.stdout).toMatch(
        /is not open to the user nobody: add that user to the group that owns \/var\/run\/docker\.sock/,
      );
    });
  },
);

const podman: Available = engine.ok
  ? {
      ok: process.platform === 'linux' && runs('podman', '--version') && runs('runc', '--version'),
      why: 'podman and runc are not installed',
    }
  : engine;

describeWith(podman, 'Podman’s socket', () => {
  let folder: string;
  let server: ChildProcess;
  let rig: Rig | undefined;
  const roots = () => ['--root', join(folder, 'root'), '--runroot', join(folder, 'run'), '--storage-driver', 'vfs'];

  beforeAll(async () => {
    folder = await makeFolder('drover-podman-');
    const image = join(folder, 'tiny.tar');
    docker('save', '--output', image, TINY);
    execFileSync('podman', [...roots(), 'load', '--input', image], { stdio: 'ignore', timeout: 60_000 });
    const socket = `unix://${join(folder, 'podman.sock')}`;
    const settings = join(folder, 'containers.conf');
    // Its own defaults ask for more than a machine without the right to raise limits, or with older cgroups, may give.
    await writeFile(
      settings,
      '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n[engine]\nruntime = "runc"\n',
    );
    server = spawn('podman', [...roots(), 'system', 'service', '--time', '0', socket], {
      stdio: 'ignore',
      env: { ...process.env, CONTAINERS_CONF: settings },
    });
    await eventually('podman to listen', 20_000, () => existsSync(join(folder, 'podman.sock')));
  }, 90_000);
  afterEach(async () => {
    await rig?.provider.remove({ session: rig.owner(image).session, record: async () => {} }, 'over');
    await rig?.clear();
  });
  afterAll(async () => {
    spawnSync('podman', [...roots(), 'rm', '--all', '--force', '--time', '0'], { timeout: 30_000 });
    server.kill();
    spawnSync('podman', [...roots(), 'system', 'reset', '--force'], { timeout: 30_000 });
    await rm(folder, { recursive: true, force: true });
  });

  it('is known for what it is, and serves with the same promises', async () => {
    rig = await makeRig({ env: { DOCKER_HOST: `unix://${join(folder, 'podman.sock')}`, PATH: process.env.PATH } });
    await rig.put('a.txt', 'a\n');
    expect(await rig.provider.diagnose(environmentOf(image))).toMatchObject({
      ok: true,
      text: expect.stringMatching(/by Podman 4\.\d+\.\d+ at unix:/),
    });
    const sandbox = await rig.provider.acquire(rig.owner({ type: 'image', image: 'localhost/drover-tiny:latest' }));
    const result = await sh(sandbox, 'cat a.txt; echo b >b.txt; echo evil >.vscode/tasks.json; cat /proc/self/status');
    expect(textOf(result.stdout)).toMatch(/^a\n/);
    expect(textOf(result.stdout)).toMatch(/^CapEff:\t0000000000000000$/m);
    expect(textOf(result.stdout)).toMatch(/^NoNewPrivs:\t1$/m);
    expect(textOf(result.stderr)).toMatch(/Read-only file system/);
    expect(await readFile(join(rig.workspace, 'b.txt'), 'utf8')).toBe('b\n');
  });
});
