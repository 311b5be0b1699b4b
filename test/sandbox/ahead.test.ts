import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureTinyImage } from '../../scripts/image.mjs';
import { describeWith, docker, engineAvailable } from '../support/engine.ts';
import { eventually } from '../support/eventually.ts';
import { makeImages, makeRig, type Rig, sh, TINY, textOf, types } from './rig.ts';

const image = { type: 'image' as const, image: TINY };

describeWith(await engineAvailable(), 'a sandbox made ahead of its call', () => {
  let rig: Rig;

  beforeAll(async () => {
    await makeImages(ensureTinyImage);
  });
  beforeEach(async () => {
    rig = await makeRig();
  });
  afterEach(async () => {
    await rig.clear();
  });

  it('is the one the call gets, made once however often it was asked for', async () => {
    const owner = rig.owner(image);
    rig.provider.prepare(owner);
    rig.provider.prepare(owner);
    const sandbox = await rig.provider.acquire(owner);
    rig.provider.prepare(owner);
    expect(textOf((await sh(sandbox, 'echo ran')).stdout)).toBe('ran\n');
    expect(types(rig.events)).toEqual(['drover.sandbox_provisioning', 'drover.sandbox_ready']);
  });

  it('that could not be made fails the call with the same words, without a second attempt', async () => {
    const owner = rig.owner({ type: 'devcontainer' });
    rig.provider.prepare(owner);
    await eventually('the failure', 10_000, async () => types(rig.events).includes('drover.sandbox_failed'));
    rig.provider.prepare(owner);
    await expect(rig.provider.acquire(owner)).rejects.toThrow(/has no devcontainer\.json/);
    expect(types(rig.events)).toEqual(['drover.sandbox_provisioning', 'drover.sandbox_failed']);
    // Whoever comes after that call gets a new attempt: the reason may be gone by now.
    await rig.put('.devcontainer.json', JSON.stringify({ image: TINY }));
    expect((await rig.provider.acquire(owner)).kind).toBe('container');
  });

  it('is made anew where the one before was lost meanwhile', async () => {
    const owner = rig.owner(image);
    const first = await rig.provider.acquire(owner);
    docker(
      'rm',
      '--force',
      ...docker('ps', '--quiet', '--filter', `label=drover.sandbox=${first.id}`).trim().split('\n'),
    );
    await expect(sh(first, 'true')).rejects.toThrow();
    rig.provider.prepare(owner);
    const second = await rig.provider.acquire(owner);
    expect(second.id).not.toBe(first.id);
    expect(types(rig.events).filter((type) => type === 'drover.sandbox_provisioning')).toHaveLength(2);
  });
});
