import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureTinyImage } from '../../scripts/image.mjs';
import { mint, type SandboxId } from '../../src/protocol/ids.ts';
import { labelsFor } from '../../src/sandbox/docker/labels.ts';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import type { Sandbox, SandboxOwner } from '../../src/sandbox/sandbox.ts';
import { describeWith, docker, engineAvailable } from '../support/engine.ts';
import { eventually } from '../support/eventually.ts';
import { crashUnder } from './crash.ts';
import { makeImages, makeRig, type Rig, sh, TINY, textOf, types } from './rig.ts';

const image = { type: 'image' as const, image: TINY };

describeWith(await engineAvailable(), 'a sandbox for each call', () => {
  let rig: Rig;
  const containers = () =>
    docker('ps', '--all', '--quiet', '--no-trunc', '--filter', `label=drover.workspace=${rig.workspace}`)
      .split('\n')
      .filter(Boolean);
  const settled = (count: number) =>
    eventually(`${count} containers`, 15_000, async () => containers().length === count);
  const readyIds = () =>
    rig.events.flatMap((event) =>
      event.type === 'drover.sandbox_ready' && 'sandbox_id' in event ? event.sandbox_id : [],
    );
  const containerOf = (sandbox: Sandbox) =>
    docker('ps', '--quiet', '--no-trunc', '--filter', `label=drover.sandbox=${sandbox.id}`).trim();
  const owner = (more: Partial<SandboxOwner> = {}): SandboxOwner => {
    const of = rig.owner(image);
    return { ...of, environment: { ...of.environment, lifetime: 'call' }, ...more };
  };

  beforeAll(async () => {
    await makeImages(ensureTinyImage);
  });
  beforeEach(async () => {
    rig = await makeRig();
  });
  afterEach(async () => {
    await rig.clear();
  });

  it('keeps nothing but the workspace from one call to the next', async () => {
    const of = owner();
    const first = await rig.provider.acquire(of);
    await sh(first, 'echo kept >kept.txt; echo gone >/tmp/gone.txt; (sleep 60 &) ');
    rig.provider.release(of, first.id);
    const second = await rig.provider.acquire(of);
    expect(second.id).not.toBe(first.id);
    const seen = await sh(second, 'cat kept.txt; ls /tmp/gone.txt; ps 2>/dev/null | grep -c "[s]leep 60"');
    expect(textOf(seen.stdout)).toMatch(/^kept\n/);
    expect(textOf(seen.stdout)).not.toContain('gone.txt');
    rig.provider.release(of, second.id);
    await eventually('both to be gone', 15_000, async () => {
      const gone = rig.events.filter((event) => event.type === 'drover.sandbox_removed');
      return gone.length === 2;
    });
    await settled(1);
  });

  it('has one ready before the next call, and logs it before it is made', async () => {
    const of = owner();
    rig.provider.prepare(of);
    const first = await rig.provider.acquire(of);
    rig.provider.release(of, first.id);
    await eventually(
      'the spare',
      15_000,
      async () => types(rig.events).filter((t) => t === 'drover.sandbox_ready').length === 2,
    );
    const ready = readyIds();
    const second = await rig.provider.acquire(of);
    // Nothing had to be made for it.
    expect(ready).toContain(second.id);
    expect((await sh(second, 'true')).exitCode).toBe(0);
    rig.provider.release(of, second.id);
    rig.provider.release(of, second.id);
    await settled(1);
    await rig.provider.dispose();
    expect(containers()).toEqual([]);
  });

  it('gives each of the calls at the same time one of its own', async () => {
    const of = owner();
    const all = await Promise.all([1, 2, 3].map(() => rig.provider.acquire(of)));
    expect(new Set(all.map((sandbox) => sandbox.id)).size).toBe(3);
    const runs = await Promise.all(
      all.map((sandbox, n) => sh(sandbox, `echo ${n} >/tmp/mine; sleep 0.2; cat /tmp/mine`)),
    );
    expect(runs.map((run) => textOf(run.stdout))).toEqual(['0\n', '1\n', '2\n']);
    for (const { id } of all) rig.provider.release(of, id);
  });

  it('finds the result of a call whose harness died, and clears away what nobody waits for', async () => {
    const dying = owner();
    const act = mint.execution();
    const busy = await rig.provider.acquire(dying);
    rig.provider.prepare(dying);
    await eventually(
      'the spare',
      15_000,
      async () => types(rig.events).filter((t) => t === 'drover.sandbox_ready').length === 2,
    );
    expect(textOf((await sh(busy, 'echo once >>once.txt; echo said', { executionId: act })).stdout)).toBe('said\n');
    // The harness dies here: the result is nowhere but in the sandbox.
    const next = createSandboxProvider(rig.options);
    const open = new Set<SandboxId>([busy.id]);
    const heir = owner({ acting: () => open });
    const found = await next.attach(heir, busy.id);
    expect(found?.id).toBe(busy.id);
    const kept = await found?.lookup(act);
    expect(kept?.found === 'finished' && textOf(kept.result.stdout)).toBe('said\n');
    const fresh = await next.acquire(heir);
    expect(fresh.id).not.toBe(busy.id);
    // The spare of the one that died is gone, the one that was asked about is not; a new spare is made meanwhile.
    await settled(3);
    expect(containers()).toContain(containerOf(busy));
    open.clear();
    next.release(heir, busy.id);
    next.release(heir, fresh.id);
    await settled(1);
    await next.dispose();
    expect(containers()).toEqual([]);
  });

  it('finds a call whose process was killed under it, waits for it, and lets its sandbox go then', async () => {
    const {
      owner: of,
      id,
      executionId,
    } = await crashUnder(rig, image, 'echo begun; sleep 4; echo once >>once.txt', 'call');
    const open = new Set<SandboxId>([id]);
    const heir = { ...of, acting: () => open };
    const other = await rig.provider.acquire(heir);
    // What the engine had been told to make when the process died is there after the look for leftovers.
    const late = mint.sandbox();
    const labels = Object.entries(labelsFor({ ...of, lease: 1 }, late)).flatMap(([name, value]) => [
      '--label',
      `${name}=${value}`,
    ]);
    docker('create', ...labels, TINY, 'sh');
    const found = await rig.provider.attach(heir, id);
    const looked = await found?.lookup(executionId);
    // On a slow machine it may have ended by now: the one is as good as the other.
    const ended = looked?.found === 'finished' ? looked.result : undefined;
    const result = looked?.found === 'running' ? await looked.wait(AbortSignal.timeout(20_000)) : ended;
    expect(result && textOf(result.stdout)).toBe('begun\n');
    expect(textOf((await sh(other, 'cat once.txt')).stdout)).toBe('once\n');
    open.clear();
    rig.provider.release(heir, id);
    rig.provider.release(heir, other.id);
    const gone = async () =>
      [id, other.id, late].every((one) => docker('ps', '-aq', '--filter', `label=drover.sandbox=${one}`) === '');
    await eventually('all three to be removed', 30_000, gone);
    // The next call's stands by.
    await settled(1);
    // It is told once all of what was left is gone.
    await eventually('the word of it', 10_000, () =>
      rig.events.some((event) => event.type === 'drover.sandbox_removed' && JSON.stringify(event).includes(late)),
    );
  });

  it('can come from a devcontainer: its commands run for each, and nothing of one is left for the next', async () => {
    await rig.put('.devcontainer/Dockerfile', `FROM ${TINY}\nRUN echo built >/built.txt\n`);
    const config = {
      build: { dockerfile: 'Dockerfile' },
      onCreateCommand: 'echo made >>made.txt',
      postStartCommand: 'echo started >/tmp/started.txt',
      remoteEnv: { MINE: 'yes' },
    };
    await rig.put('.devcontainer/devcontainer.json', JSON.stringify(config));
    const of = owner();
    const devcontainer = { ...of, environment: { ...of.environment, config: { type: 'devcontainer' as const } } };
    const first = await rig.provider.acquire(devcontainer);
    const line = 'cat /built.txt /tmp/started.txt; echo $MINE; ls /tmp/mine.txt; echo >/tmp/mine.txt';
    expect(textOf((await sh(first, line)).stdout)).toBe('built\nstarted\nyes\n');
    rig.provider.release(devcontainer, first.id);
    const second = await rig.provider.acquire(devcontainer);
    expect(second.id).not.toBe(first.id);
    expect(textOf((await sh(second, line)).stdout)).toBe('built\nstarted\nyes\n');
    rig.provider.release(devcontainer, second.id);
    // The third stands by.
    await settled(1);
    expect(textOf((await sh(await rig.provider.acquire(devcontainer), 'cat made.txt')).stdout)).toMatch(
      /^(made\n){3,4}$/,
    );
    await rig.provider.remove(devcontainer, 'it was archived');
    expect(containers()).toEqual([]);
  });

  it('says that a call is lost whose sandbox died under it, and the next one has its own', async () => {
    const of = owner();
    const sandbox = await rig.provider.acquire(of);
    const running = sh(sandbox, 'sleep 30');
    await eventually('the command', 10_000, async () => docker('top', containerOf(sandbox)).includes('sleep 30'));
    docker('rm', '--force', containerOf(sandbox));
    await expect(running).rejects.toMatchObject({ name: 'SandboxLost' });
    rig.provider.release(of, sandbox.id);
    const next = await rig.provider.acquire(of);
    expect(textOf((await sh(next, 'echo alive')).stdout)).toBe('alive\n');
    rig.provider.release(of, next.id);
  });

  it('removes them all when the session is put away', async () => {
    const of = owner();
    const sandbox = await rig.provider.acquire(of);
    rig.provider.prepare(of);
    await rig.provider.remove(of, 'it was archived');
    expect(containers()).toEqual([]);
    const removed = rig.events.flatMap((event) =>
      'reason' in event && 'sandbox_id' in event ? [event.sandbox_id] : [],
    );
    expect(removed).toContain(sandbox.id);
  });
});
