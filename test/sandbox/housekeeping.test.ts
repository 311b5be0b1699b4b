import { readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureSampleImage, ensureTinyImage } from '../../scripts/image.mjs';
import { mint } from '../../src/protocol/ids.ts';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import type { SandboxOwner, SandboxProvider } from '../../src/sandbox/sandbox.ts';
import { describeWith, docker, engineAvailable, removeLabelled } from '../support/engine.ts';
import { makeImages, makeRig, type Rig, SAMPLE, sh, TINY, textOf, types } from './rig.ts';

const engine = await engineAvailable();
const image = { type: 'image' as const, image: TINY };
/** Minutes that pass at once. */
const AT_ONCE = 0.0001;

describeWith(engine, 'housekeeping', () => {
  let rig: Rig;
  const made: SandboxProvider[] = [];
  const provider = (limits: { living: number | (() => number); idleMinutes: number }) => {
    const { living, idleMinutes } = limits;
    const now = () => ({ living: typeof living === 'number' ? living : living(), idleMinutes });
    const one = createSandboxProvider({ ...rig.options, limits: now, idleCheckMs: 50 });
    made.push(one);
    return one;
  };
  const another = (owner: SandboxOwner): SandboxOwner => ({ ...owner, session: mint.session() });
  const states = () =>
    docker('ps', '--all', '--format', '{{.State}}', '--filter', `label=drover.workspace=${rig.workspace}`)
      .split('\n')
      .filter(Boolean)
      .sort();
  const container = (session: string) =>
    docker('ps', '--all', '--quiet', '--no-trunc', '--filter', `label=drover.session=${session}`);
  const eventually = async (what: () => boolean) => {
    const until = Date.now() + 15_000;
    while (!what() && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 50));
    expect(what()).toBe(true);
  };

  beforeAll(async () => {
    await makeImages(ensureTinyImage, ensureSampleImage);
  });
  beforeEach(async () => {
    rig = await makeRig();
  });
  afterEach(async () => {
    for (const one of made.splice(0)) await one.dispose();
    await rig.clear();
  });

  it('labels what is made with its session, sandbox, workspace, machine and lease', async () => {
    const owner = { ...rig.owner(image), lease: 7 };
    const sandbox = await rig.provider.acquire(owner);
    const labels = JSON.parse(docker('inspect', '--format', '{{json .Config.Labels}}', container(owner.session)));
    expect(labels).toMatchObject({
      'drover.session': owner.session,
      'drover.sandbox': sandbox.id,
      'drover.workspace': rig.workspace,
      'drover.lease': '7',
      'drover.inside': '/workspace',
    });
    expect(labels['drover.host']).toBeTruthy();
  });

  it('stops a container that nobody uses, and starts it at the next call with its files as they were', async () => {
    const one = provider({ living: 0, idleMinutes: AT_ONCE });
    const owner = rig.owner(image);
    const sandbox = await one.acquire(owner);
    await sh(sandbox, 'echo kept >/tmp/kept; echo here >here.txt');
    await eventually(() => states()[0] === 'exited');
    expect(sandbox.workspace).toBe('/workspace');
    const result = await sh(sandbox, 'cat /tmp/kept here.txt; echo evil >.vscode/tasks.json');
    expect(textOf(result.stdout)).toBe('kept\nhere\n');
    expect(result.exitCode).not.toBe(0);
    expect(types(rig.events)).toEqual(['drover.sandbox_provisioning', 'drover.sandbox_ready']);
  });

  it('does not stop one in which a command runs', async () => {
    const one = provider({ living: 0, idleMinutes: AT_ONCE });
    const sandbox = await one.acquire(rig.owner(image));
    expect(textOf((await sh(sandbox, 'sleep 2; echo done')).stdout)).toBe('done\n');
  });

  it('finds a stopped one again from another process, and runs its postStartCommand again', async () => {
    await rig.put(
      '.devcontainer/devcontainer.json',
      JSON.stringify({ image: SAMPLE, postCreateCommand: 'echo c >>log.txt', postStartCommand: 'echo s >>log.txt' }),
    );
    const one = provider({ living: 0, idleMinutes: AT_ONCE });
    const owner = rig.owner({ type: 'devcontainer' });
    const sandbox = await one.acquire(owner);
    await eventually(() => states()[0] === 'exited');
    const again = await rig.provider.acquire(owner);
    expect(again.id).toBe(sandbox.id);
    expect(textOf((await sh(again, 'cat log.txt')).stdout)).toBe('c\ns\ns\n');
    expect(states()).toEqual(['running']);
  });

  it('makes room by stopping the one that was idle the longest, and says so when all are in use', async () => {
    // Others may use the same engine meanwhile.
    const others = () => {
      const running = docker('ps', '--format', '{{.Label "drover.workspace"}}', '--filter', 'label=drover.inside');
      return running.split('\n').filter((workspace) => workspace && workspace !== rig.workspace).length;
    };
    const one = provider({ living: () => others() + 2, idleMinutes: 0 });
    const first = rig.owner(image);
    const second = another(first);
    const third = another(first);
    const oldest = await one.acquire(first);
    const busy = await one.acquire(second);
    await sh(oldest, 'true');
    const running = sh(busy, 'sleep 4; echo done');
    await one.acquire(third);
    expect(docker('inspect', '--format', '{{.State.Running}}', container(first.session))).toBe('false');
    expect(docker('inspect', '--format', '{{.State.Running}}', container(second.session))).toBe('true');
    expect(textOf((await running).stdout)).toBe('done\n');
    const narrow = provider({ living: 1, idleMinutes: 0 });
    await expect(narrow.acquire(another(first))).rejects.toThrow(/sandboxes are running and all are in use.*maxLiving/);
  });

  it('stops what a crash left running, once nobody has asked for it for as long', async () => {
    const owner = rig.owner(image);
    await rig.provider.acquire(owner);
    await rig.provider.dispose();
    const next = provider({ living: 0, idleMinutes: AT_ONCE });
    expect(await next.reap(rig.workspace, new Set([owner.session]))).toBe(0);
    await eventually(() => states()[0] === 'exited');
    const again = await next.acquire(owner);
    expect((await sh(again, 'true')).exitCode).toBe(0);
    expect(states()).toEqual(['running']);
  });

  it('cleans up what no session needs: containers, what they left, and images made for the folder', async () => {
    await rig.put('.devcontainer/Dockerfile', `FROM ${TINY}\nRUN echo built >/built.txt\n`);
    await rig.put('.devcontainer/devcontainer.json', '{ "build": { "dockerfile": "Dockerfile" } }');
    const images = () =>
      docker(
        'images',
        '--format',
        '{{.Repository}}',
        '--filter',
        `reference=vsc-${basename(rig.workspace).toLowerCase()}-*`,
      )
        .split('\n')
        .filter(Boolean);
    const built = rig.owner({ type: 'devcontainer' });
    await rig.provider.acquire(built);
    expect(images().length).toBeGreaterThan(0);
    const kept = { ...rig.owner(image), session: mint.session() };
    const stays = await rig.provider.acquire(kept);
    docker(
      'volume',
      'create',
      '--label',
      `drover.sandbox=${stays.id}`,
      '--label',
      'drover.host=elsewhere',
      `drover-${stays.id}`,
    );
    try {
      // One that a container uses is not taken away.
      expect(await rig.provider.cleanUp(rig.workspace, new Set([built.session, kept.session]), [])).toMatchObject({
        images: 0,
      });
      const cleaned = await rig.provider.cleanUp(rig.workspace, new Set([kept.session]), []);
      expect(cleaned.sandboxes).toBeGreaterThanOrEqual(1);
      expect(cleaned.images).toBeGreaterThanOrEqual(1);
      expect(images()).toEqual([]);
      expect(states()).toEqual(['running']);
      expect((await sh(stays, 'true')).exitCode).toBe(0);
      await rig.provider.cleanUp(rig.workspace, new Set(), []);
      expect(states()).toEqual([]);
      expect(docker('volume', 'ls', '--quiet', '--filter', `label=drover.sandbox=${stays.id}`)).toBe('');
      expect((await readdir(rig.workspace)).sort()).toEqual(['.devcontainer']);
    } finally {
      docker('volume', 'rm', '--force', `drover-${stays.id}`);
    }
  });

  it('removes at the start what is left of a folder that does not exist any more', async () => {
    const gone = await makeRig();
    await gone.provider.acquire(gone.owner(image));
    await gone.provider.dispose();
    await rm(gone.workspace, { recursive: true, force: true });
    try {
      await rig.provider.reap(rig.workspace, new Set());
      expect(docker('ps', '--all', '--quiet', '--filter', `label=drover.workspace=${gone.workspace}`)).toBe('');
    } finally {
      removeLabelled(`drover.workspace=${gone.workspace}`);
      await rm(gone.cache, { recursive: true, force: true });
    }
  });

  it('leaves alone what another machine made on the same engine', async () => {
    const elsewhere = join(rig.cache, 'not-here');
    const labels = ['--label', `drover.workspace=${elsewhere}`, '--label', 'drover.host=another-machine'];
    const id = docker('create', ...labels, '--label', `drover.sandbox=${mint.sandbox()}`, TINY, 'sh');
    try {
      await rig.provider.reap(rig.workspace, new Set());
      expect(docker('ps', '--all', '--quiet', '--no-trunc', '--filter', `id=${id}`)).toBe(id);
    } finally {
      docker('rm', '--force', id);
    }
  });
});
