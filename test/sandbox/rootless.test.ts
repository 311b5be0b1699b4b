import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ensureTinyImage } from '../../scripts/image.mjs';
import { type Available, describeWith, docker, engineAvailable } from '../support/engine.ts';
import { eventually } from '../support/eventually.ts';
import { makeFolder } from '../support/temp.ts';
import { makeImages, TINY } from './rig.ts';
import { asThePerson } from './user-seen.ts';

const CHILD = fileURLToPath(new URL('./user-child.ts', import.meta.url));
const USER = 'drover-rootless';
const IMAGE = `localhost/${TINY}`;
const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;

const engine = await engineAvailable();
const parts: Available = engine.ok
  ? {
      ok:
        process.env.CI === 'true' &&
        process.getuid?.() === 0 &&
        ['podman', 'runc', 'newuidmap', 'rootlesskit', 'dockerd', 'useradd', 'setpriv'].every(has),
      why: 'it makes a user of its own, so only on a machine of CI’s, with podman, runc, uidmap and rootlesskit',
    }
  : engine;

describeWith(parts, 'an engine without root', () => {
  let home: string;
  let uid: number;
  let server: ChildProcess;
  const env = () => ({
    PATH: `${home}/bin:${process.env.PATH}`,
    HOME: home,
    TMPDIR: home,
    XDG_RUNTIME_DIR: join(home, 'run'),
  });
  const as = (...argv: string[]) => ['--reuid', USER, '--regid', USER, '--clear-groups', ...argv];
  const options = () => ({ env: env(), cwd: home, timeout: 120_000 });

  beforeAll(async () => {
    await makeImages(ensureTinyImage);
    execFileSync('useradd', ['--no-create-home', '--shell', '/bin/sh', USER], { stdio: 'ignore' });
    uid = Number(execFileSync('id', ['-u', USER], { encoding: 'utf8' }));
    home = await makeFolder('drover-rootless-');
    const settings = join(home, '.config/containers');
    for (const folder of [settings, join(home, 'run/podman'), join(home, 'bin')])
      await mkdir(folder, { recursive: true });
    // Its own defaults ask for more than a machine without the right to raise limits, or with older cgroups, may give.
    await writeFile(
      join(settings, 'containers.conf'),
      '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\n',
    );
    await writeFile(join(settings, 'storage.conf'), '[storage]\ndriver = "vfs"\n');
    // Nothing is fetched when images are built here, and not every machine could give a build a network.
    await writeFile(join(home, 'bin/podman'), '#!/bin/sh\nBUILDAH_ISOLATION=chroot exec /usr/bin/podman "$@"\n');
    await chmod(join(home, 'bin/podman'), 0o755);
    docker('save', '--output', join(home, 'tiny.tar'), TINY);
    execFileSync('chown', ['-R', `${USER}:`, home]);
    execFileSync('setpriv', as('podman', 'load', '--quiet', '--input', join(home, 'tiny.tar')), {
      ...options(),
      stdio: 'ignore',
    });
    const socket = join(home, 'run/podman/podman.sock');
    server = spawn('setpriv', as('/usr/bin/podman', 'system', 'service', '--time', '0', `unix://${socket}`), {
      ...options(),
      timeout: undefined,
      stdio: 'ignore',
    });
    await eventually('podman to listen', 20_000, () => existsSync(socket));
  }, 120_000);
  afterAll(async () => {
    server?.kill();
    // What it has written belongs to users that only it knows.
    if (home) spawnSync('setpriv', as('/usr/bin/podman', 'system', 'reset', '--force'), options());
    // Some of its programs stay on for minutes; all that runs as this user is this test's.
    await eventually('the user to be gone', 20_000, () => {
      const { stdout } = spawnSync('ps', ['-u', USER, '-o', 'pid='], { encoding: 'utf8' });
      for (const pid of stdout.split('\n').map(Number)) if (pid > 1) spawnSync('kill', ['-9', String(pid)]);
      return spawnSync('userdel', [USER]).status !== 8;
    });
    if (home) await rm(home, { recursive: true, force: true });
  });

  it('that is Podman is found in its usual place; what is written inside is the person’s, also by a devcontainer’s user', async () => {
    const { stdout } = await promisify(execFile)('setpriv', as(process.execPath, CHILD, IMAGE, 'dev'), options());
    const { workspace, ...seen } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
    expect(workspace).toMatch(/^drover-ws-/);
    expect(seen).toEqual(
      asThePerson(uid, expect.stringMatching(/^Podman \S+ \(rootless\) at unix:\S+ \(from its usual place\)$/)),
    );
  }, 120_000);

  it('that is Docker is found as well; root inside is the person, so a devcontainer works as root', async () => {
    const run = join(home, 'docker-run');
    const options = { env: { ...env(), XDG_RUNTIME_DIR: run }, cwd: home };
    execFileSync('setpriv', as('mkdir', '--mode=700', run));
    // In a network of its own: a second engine would take the first one's bridge away.
    const daemon = ['dockerd', '--rootless', '--iptables=false', '--bridge=none', '--storage-driver=vfs'];
    const places = [`--data-root=${home}/docker`, `--exec-root=${run}/docker`, `--pidfile=${run}/docker.pid`];
    const script = 'rm -f /run/docker /run/containerd /run/xtables.lock; exec "$@"';
    const kit = ['rootlesskit', '--net=host', '--copy-up=/etc', '--copy-up=/run', '--propagation=rslave'];
    const socket = `unix://${run}/docker.sock`;
    const whole = as(...kit, 'sh', '-c', script, 'sh', ...daemon, ...places, `--host=${socket}`);
    const engine = spawn('unshare', ['--net', 'setpriv', ...whole], { ...options, stdio: 'ignore' });
    try {
      const client = { env: { ...process.env, DOCKER_HOST: socket }, timeout: 60_000 };
      await eventually('dockerd to answer', 30_000, () => spawnSync('docker', ['version'], client).status === 0);
      execFileSync('docker', ['load', '--quiet', '--input', join(home, 'tiny.tar')], { ...client, stdio: 'ignore' });
      const child = as(process.execPath, CHILD, TINY, 'dev');
      const { stdout } = await promisify(execFile)('setpriv', child, { ...options, timeout: 120_000 });
      expect(JSON.parse(stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({
        user: uid,
        serving: expect.stringMatching(/^Docker \S+ \(rootless\) at unix:\S+ \(from its usual place\)$/),
        plain: '0\nmine\n',
        owners: { '.': uid, 'mine.txt': uid, made: uid, 'made/m.txt': uid, '.drover/log.jsonl': uid },
        devcontainer: 'root\n',
        devcontainerOwners: { 'post.txt': uid, 'dev.txt': uid },
        log: 'truth\n',
      });
    } finally {
      engine.kill();
    }
  }, 180_000);
});
