import { chmod, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureSampleImage, ensureTinyImage } from '../../scripts/image.mjs';
import { mint } from '../../src/protocol/ids.ts';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import { SandboxLost, SandboxUnavailable } from '../../src/sandbox/sandbox.ts';
import { describeWith, docker, engineAvailable } from '../support/engine.ts';
import { relayTo } from './relay.ts';
import { environmentOf, makeImages, makeRig, type Rig, SAMPLE, sh, TINY, textOf, types } from './rig.ts';

const engine = await engineAvailable();

const image = { type: 'image' as const, image: TINY };
const devcontainer = { type: 'devcontainer' as const };
const DEVCONTAINER = '.devcontainer/devcontainer.json';

describeWith(engine, 'provisioning', () => {
  let rig: Rig;
  const containers = () =>
    docker('ps', '--all', '--quiet', '--no-trunc', '--filter', `label=drover.workspace=${rig.workspace}`)
      .split('\n')
      .filter(Boolean);
  const containerId = () => containers()[0] ?? 'none';

  beforeAll(async () => {
    await makeImages(ensureTinyImage, ensureSampleImage);
  });
  beforeEach(async () => {
    rig = await makeRig();
  });
  afterEach(async () => {
    await rig.clear();
  });

  it('makes a container from an image with the workspace mounted, and logs it before and after', async () => {
    await rig.put('hello.txt', 'from the host\n');
    let containersWhenLogged = -1;
    const owner = rig.owner(image);
    const sandbox = await rig.provider.acquire({
      ...owner,
      record: async (drafts) => {
        if (drafts[0]?.event.type === 'drover.sandbox_provisioning') containersWhenLogged = containers().length;
        await owner.record(drafts);
      },
    });
    expect(containersWhenLogged).toBe(0);
    expect(types(rig.events)).toEqual(['drover.sandbox_provisioning', 'drover.sandbox_ready']);
    expect(rig.events[0]).toMatchObject({ sandbox_id: sandbox.id, recipe: `image ${TINY}` });
    expect(rig.events[1]).toMatchObject({ sandbox_id: sandbox.id, kind: 'container' });
    const result = await sh(sandbox, 'pwd; cat hello.txt; echo from the sandbox >back.txt');
    expect(textOf(result.stdout)).toBe('/workspace\nfrom the host\n');
    const files = (await readdir(rig.workspace)).filter((name) => !name.startsWith('.'));
    expect(files).toEqual(['back.txt', 'hello.txt']);
  });

  it('takes privileges and capabilities away, and reaps zombies', async () => {
    const sandbox = await rig.provider.acquire(rig.owner(image));
    const status = textOf((await sh(sandbox, 'cat /proc/self/status; cat /proc/1/comm')).stdout);
    expect(status).toMatch(/^CapEff:\t0000000000000000$/m);
    expect(status).toMatch(/^CapBnd:\t0000000000000000$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).toMatch(/docker-init|tini/);
    expect((await sh(sandbox, 'ls /var/run/docker.sock')).exitCode).not.toBe(0);
  });

  it('applies limits', async () => {
    const owner = rig.owner(image);
    owner.environment.limits = { memory_mib: 64, cpus: 0.5, pids: 50 };
    await rig.provider.acquire(owner);
    const host = JSON.parse(docker('inspect', '--format', '{{json .HostConfig}}', containerId()));
    expect(host).toMatchObject({ Memory: 64 * 1024 * 1024, NanoCpus: 5e8, PidsLimit: 50 });
  });

  it('hides the sessions’ logs and write-protects what the host would run', async () => {
    await rig.put('.drover/sessions/x/log.jsonl', 'truth\n');
    await rig.put('.git/hooks/pre-commit', 'hook\n');
    await rig.put('.vscode/tasks.json', '{}\n');
    const sandbox = await rig.provider.acquire(rig.owner(image));
    const tried = await sh(
      sandbox,
      'ls -A .drover; echo forged >.drover/y; echo evil >.git/hooks/pre-commit; echo evil >.vscode/tasks.json; mv .vscode v',
    );
    expect(textOf(tried.stdout)).toBe('');
    expect(textOf(tried.stderr).match(/Read-only file system/g)).toHaveLength(3);
    expect(textOf(tried.stderr)).toMatch(/busy/);
    expect(await readdir(join(rig.workspace, '.drover'))).toEqual(['sessions']);
  });

  it('provisions once however many ask at the same time', async () => {
    const owner = rig.owner(image);
    const [first, ...others] = await Promise.all([1, 2, 3, 4].map(() => rig.provider.acquire(owner)));
    for (const other of others) expect(other).toBe(first);
    expect(types(rig.events)).toEqual(['drover.sandbox_provisioning', 'drover.sandbox_ready']);
    expect(containers()).toHaveLength(1);
  });

  it('brings up the folder’s devcontainer.json with its lifecycle commands and environment', async () => {
    await rig.put(
      DEVCONTAINER,
      `{
        // comments and trailing commas are allowed
        "image": "${SAMPLE}",
        "postCreateCommand": "echo made >made.txt",
        "containerEnv": { "COLOUR": "blue" },
        "remoteEnv": { "PATH": "\${containerEnv:PATH}:/extra" },
      }`,
    );
    const sandbox = await rig.provider.acquire(rig.owner(devcontainer));
    const result = await sh(sandbox, 'cat made.txt; echo $COLOUR; echo $PATH');
    expect(textOf(result.stdout)).toMatch(/^made\nblue\n\/usr.*:\/extra\n$/);
    expect(types(rig.events)).toEqual(['drover.sandbox_provisioning', 'drover.sandbox_ready']);
    expect(rig.progress.join('\n')).toContain('postCreateCommand');
    const status = textOf((await sh(sandbox, 'cat /proc/self/status')).stdout);
    expect(status).toMatch(/^CapBnd:\t0000000000000000$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
  });

  it('can write to the workspace as whoever owns it, and has a home', async () => {
    await chmod(rig.workspace, 0o700);
    await rig.put(DEVCONTAINER, JSON.stringify({ image: SAMPLE, remoteUser: 'dev' }));
    const sandbox = await rig.provider.acquire(rig.owner(devcontainer));
    const result = await sh(sandbox, 'touch mine.txt && touch "$HOME/x" && stat -c %u . && id -u');
    expect(result.exitCode).toBe(0);
    const [owner, user] = textOf(result.stdout).trim().split('\n');
    expect(user).toBe(owner);
    expect((await stat(join(rig.workspace, 'mine.txt'))).uid).toBe((await stat(rig.workspace)).uid);
    // The same user is found again by another process.
    const again = await createSandboxProvider(rig.options).acquire(rig.owner(devcontainer));
    expect(again.id).toBe(sandbox.id);
    expect((await sh(again, 'touch more.txt')).exitCode).toBe(0);
  });

  it('builds a devcontainer from a Dockerfile', async () => {
    await rig.put('.devcontainer/Dockerfile', `FROM ${TINY}\nRUN echo built >/built.txt\n`);
    await rig.put(DEVCONTAINER, '{ "build": { "dockerfile": "Dockerfile" } }');
    const sandbox = await rig.provider.acquire(rig.owner(devcontainer));
    expect(textOf((await sh(sandbox, 'cat /built.txt')).stdout)).toBe('built\n');
  });

  it('leaves out of a devcontainer.json what would open the host, and says so', async () => {
    await rig.put(
      DEVCONTAINER,
      JSON.stringify({
        image: SAMPLE,
        privileged: true,
        capAdd: ['SYS_ADMIN'],
        initializeCommand: `touch ${rig.cache}/ran-on-the-host`,
        runArgs: ['--network=host', '-v', '/:/host', '--cap-add', 'NET_ADMIN', '--hostname', 'box'],
        mounts: ['source=/var/run/docker.sock,target=/var/run/docker.sock,type=bind'],
      }),
    );
    const sandbox = await rig.provider.acquire(rig.owner(devcontainer));
    const result = await sh(sandbox, 'hostname 2>/dev/null || cat /etc/hostname; ls /host /var/run/docker.sock');
    expect(textOf(result.stdout)).toBe('box\n');
    expect(result.exitCode).not.toBe(0);
    expect(await readdir(rig.cache)).not.toContain('ran-on-the-host');
    const said = rig.progress.find((line) => line.startsWith('Left out'));
    for (const part of ['initializeCommand', 'privileged', 'capAdd', '--network=host', '-v /:/host', 'docker.sock'])
      expect(said).toContain(part);
  });

  it('names the file and line of a broken devcontainer.json', async () => {
    await rig.put(DEVCONTAINER, '{\n  "image": "x",\n  "name": "no comma"\n  "remoteUser": "dev"\n}\n');
    const failing = rig.provider.acquire(rig.owner(devcontainer));
    await expect(failing).rejects.toThrow(SandboxUnavailable);
    await expect(failing).rejects.toThrow(/^\.devcontainer\/devcontainer\.json, line 4: a comma is missing/);
    expect(types(rig.events)).toEqual(['drover.sandbox_provisioning', 'drover.sandbox_failed']);
  });

  it('names the line of a value of the wrong kind', async () => {
    await rig.put(DEVCONTAINER, '{\n  "image": "x",\n\n  "runArgs": "--init"\n}\n');
    await expect(rig.provider.acquire(rig.owner(devcontainer))).rejects.toThrow(/line 4: "runArgs" is not as expected/);
  });

  it('says what to do in a folder without a devcontainer.json, or uses the default image', async () => {
    await expect(rig.provider.acquire(rig.owner(devcontainer))).rejects.toThrow(
      /no devcontainer\.json.*add \.devcontainer\/devcontainer\.json/,
    );
    const provider = createSandboxProvider({ ...rig.options, defaultImage: TINY });
    const sandbox = await provider.acquire(rig.owner(devcontainer));
    expect((await sh(sandbox, 'true')).exitCode).toBe(0);
  });

  it('says that an image does not exist', async () => {
    const missing = { type: 'image' as const, image: 'localhost:1/drover/no-such-image' };
    const failing = rig.provider.acquire(rig.owner(missing));
    await expect(failing).rejects.toThrow(/The image localhost:1\/drover\/no-such-image is not on this machine/);
    expect(rig.events.at(-1)).toMatchObject({ type: 'drover.sandbox_failed' });
    expect(containers()).toEqual([]);
  });

  it('tells the phase and last lines of a failing postCreateCommand, and leaves no container behind', async () => {
    await rig.put(DEVCONTAINER, JSON.stringify({ image: TINY, postCreateCommand: 'echo about to fail; exit 3' }));
    const failing = rig.provider.acquire(rig.owner(devcontainer));
    await expect(failing).rejects.toThrow(/postCreateCommand from devcontainer\.json failed/);
    await expect(failing).rejects.toThrow(/about to fail/);
    expect(containers()).toEqual([]);
    // The next call tries anew: the person may have corrected the file.
    await rig.put(DEVCONTAINER, JSON.stringify({ image: TINY }));
    const sandbox = await rig.provider.acquire(rig.owner(devcontainer));
    expect((await sh(sandbox, 'true')).exitCode).toBe(0);
  });

  it('keeps going in a folder that can’t be written to, says so, and changes nothing about it', async () => {
    await rig.put('a.txt', 'a\n');
    await chmod(rig.workspace, 0o555);
    const before = await stat(rig.workspace);
    try {
      const sandbox = await rig.provider.acquire(rig.owner(image));
      expect(textOf((await sh(sandbox, 'cat a.txt')).stdout)).toBe('a\n');
      expect(rig.progress.join('\n')).toMatch(/can only be read/);
      const after = await stat(rig.workspace);
      expect([after.uid, after.gid, after.mode]).toEqual([before.uid, before.gid, before.mode]);
    } finally {
      await chmod(rig.workspace, 0o755);
    }
  });

  it('notices a killed container at the next call, logs the loss, and gives a fresh one', async () => {
    const owner = rig.owner(image);
    const sandbox = await rig.provider.acquire(owner);
    docker('kill', containerId());
    await expect(sh(sandbox, 'true')).rejects.toThrow(SandboxLost);
    await expect(sh(sandbox, 'true')).rejects.toThrow(SandboxLost);
    const fresh = await rig.provider.acquire(owner);
    expect(fresh.id).not.toBe(sandbox.id);
    expect((await sh(fresh, 'true')).exitCode).toBe(0);
    expect(types(rig.events).slice(2)).toEqual([
      'drover.sandbox_lost',
      'drover.sandbox_provisioning',
      'drover.sandbox_ready',
    ]);
    expect(rig.events[2]).toMatchObject({ sandbox_id: sandbox.id });
    expect(containers()).toHaveLength(1);
  });

  it('finds a living container again from another provider, and makes none', async () => {
    const owner = rig.owner(image);
    const sandbox = await rig.provider.acquire(owner);
    const other = createSandboxProvider(rig.options);
    expect((await other.attach(owner, sandbox.id))?.id).toBe(sandbox.id);
    expect(await other.attach(owner, mint.sandbox())).toBeNull();
    const third = createSandboxProvider(rig.options);
    expect((await third.acquire(owner)).id).toBe(sandbox.id);
    expect(containers()).toHaveLength(1);
    expect(types(rig.events).slice(2)).toEqual(['drover.sandbox_ready']);
  });

  it('says that a container is gone which died while nobody looked, when it is asked for or replaced', async () => {
    const sandbox = await rig.provider.acquire(rig.owner(image));
    const owner = { ...rig.owner(image), inUse: () => sandbox.id };
    docker('kill', containerId());
    expect(await createSandboxProvider(rig.options).attach(owner, sandbox.id)).toBeNull();
    expect(rig.events.slice(2)).toMatchObject([{ type: 'drover.sandbox_lost', sandbox_id: sandbox.id }]);
    const fresh = await createSandboxProvider(rig.options).acquire(owner);
    expect(rig.events.slice(3)).toMatchObject([
      { type: 'drover.sandbox_lost', sandbox_id: sandbox.id },
      { type: 'drover.sandbox_provisioning', sandbox_id: fresh.id },
      { type: 'drover.sandbox_ready', sandbox_id: fresh.id },
    ]);
  });

  it('never takes an engine that does not answer for a sandbox that is gone', async () => {
    const relay = await relayTo('/var/run/docker.sock', join(rig.cache, 'engine.sock'));
    const options = { ...rig.options, env: { DOCKER_HOST: `unix://${relay.path}` } };
    try {
      const sandbox = await createSandboxProvider(options).acquire(rig.owner(image));
      const owner = { ...rig.owner(image), inUse: () => sandbox.id };
      const provider = createSandboxProvider(options);
      relay.close();
      await expect(provider.attach(owner, sandbox.id)).rejects.toThrow(SandboxUnavailable);
      await expect(provider.acquire(owner)).rejects.toThrow(SandboxUnavailable);
      expect(types(rig.events).slice(2)).toEqual(['drover.sandbox_provisioning', 'drover.sandbox_failed']);
      await relay.open();
      expect((await provider.attach(owner, sandbox.id))?.id).toBe(sandbox.id);
    } finally {
      relay.close();
    }
  });

  it('asks an engine again that did not list its containers, and makes no second one if it can not be told', async () => {
    const owner = rig.owner(image);
    await rig.provider.acquire(owner);
    for (const failures of [1, 2]) {
      let left = failures;
      const relay = await relayTo(
        '/var/run/docker.sock',
        join(rig.cache, 'forgetful.sock'),
        (line) => line.startsWith('GET ') && line.includes('/containers/json') && left-- > 0,
      );
      const provider = createSandboxProvider({ ...rig.options, env: { DOCKER_HOST: `unix://${relay.path}` } });
      try {
        if (failures === 1) expect((await provider.acquire(owner)).kind).toBe('container');
        else await expect(provider.acquire(owner)).rejects.toThrow(/did not say which sandboxes there are \(.*broken/);
        expect(left).toBeLessThanOrEqual(0);
        expect(containers()).toHaveLength(1);
      } finally {
        await provider.dispose();
        relay.close();
      }
    }
  });

  it('does not take over a container whose provisioning a crash cut short', async () => {
    const owner = rig.owner(image);
    const sandbox = await rig.provider.acquire(owner);
    docker('exec', containerId(), 'rm', '/tmp/.drover/ready');
    const fresh = await createSandboxProvider(rig.options).acquire(owner);
    expect(fresh.id).not.toBe(sandbox.id);
    expect(containers()).toHaveLength(1);
  });

  it('removes a session’s sandbox and logs it', async () => {
    const owner = rig.owner(image);
    const sandbox = await rig.provider.acquire(owner);
    await rig.provider.remove(owner, 'the session ended');
    expect(rig.events.at(-1)).toMatchObject({
      type: 'drover.sandbox_removed',
      sandbox_id: sandbox.id,
      reason: 'the session ended',
    });
    expect(containers()).toEqual([]);
    await rig.provider.remove(owner, 'again');
    expect(types(rig.events).filter((type) => type === 'drover.sandbox_removed')).toHaveLength(1);
  });

  it('reaps what a crash left of this workspace, but no session that is kept', async () => {
    const kept = rig.owner(image);
    const crashed = { ...rig.owner(image), session: mint.session() };
    const stays = await rig.provider.acquire(kept);
    await rig.provider.acquire(crashed);
    const next = createSandboxProvider(rig.options);
    expect(await next.reap('/some/other/folder', new Set())).toBe(0);
    expect(await next.reap(rig.workspace, new Set([kept.session]))).toBe(1);
    expect((await sh(stays, 'true')).exitCode).toBe(0);
    expect(containers()).toHaveLength(1);
  });

  it('says in one sentence that no engine answers', async () => {
    const deaf = await makeRig({ env: { DOCKER_HOST: 'unix:///nowhere/docker.sock' } });
    try {
      const failing = deaf.provider.acquire(deaf.owner(image));
      await expect(failing).rejects.toMatchObject({ name: 'SandboxUnavailable', part: 'engine' });
      await expect(failing).rejects.toThrow(/unix:\/\/\/nowhere\/docker\.sock \(from DOCKER_HOST\) does not answer/);
      expect(types(deaf.events)).toEqual(['drover.sandbox_provisioning', 'drover.sandbox_failed']);
      const words = await deaf.provider.diagnose(environmentOf(image));
      expect(words.ok).toBe(false);
      expect(words.text).toMatch(/start Docker/);
      expect(await deaf.provider.reap(deaf.workspace, new Set())).toBe(0);
    } finally {
      await deaf.clear();
    }
  });

  it('is lost when the engine goes away under a command, and provisioned afresh when it is back', async () => {
    const relay = await relayTo('/var/run/docker.sock', join(rig.cache, 'engine.sock'));
    const provider = createSandboxProvider({ ...rig.options, env: { DOCKER_HOST: `unix://${relay.path}` } });
    const owner = rig.owner(image);
    try {
      const sandbox = await provider.acquire(owner);
      const running = sh(sandbox, 'echo go; sleep 309', { onOutput: () => relay.close() });
      await expect(running).rejects.toThrow(/was lost \(the container engine stopped answering\)/);
      await expect(provider.acquire(owner)).rejects.toMatchObject({ part: 'engine' });
      await relay.open();
      const fresh = await provider.acquire(owner);
      expect(fresh.id).not.toBe(sandbox.id);
      expect((await sh(fresh, 'true')).exitCode).toBe(0);
      // The one that was told as lost is not kept, though it had gone on.
      expect(containers()).toHaveLength(1);
    } finally {
      await provider.dispose();
      relay.close();
    }
  });

  it('says what ssh said where an engine elsewhere can’t be reached', async () => {
    const remote = await makeRig({ env: { ...process.env, DOCKER_HOST: 'ssh://nobody@127.0.0.1:1' } });
    try {
      const failing = remote.provider.acquire(remote.owner(image));
      await expect(failing).rejects.toMatchObject({ part: 'engine' });
      await expect(failing).rejects.toThrow(
        /ssh:\/\/nobody@127\.0\.0\.1:1 .*does not answer: .*(Connection refused|ssh)/,
      );
    } finally {
      await remote.clear();
    }
  });

  it('tells what would serve an environment', async () => {
    expect(await rig.provider.diagnose(environmentOf(image))).toMatchObject({
      ok: true,
      text: expect.stringContaining(TINY),
    });
  });
});
