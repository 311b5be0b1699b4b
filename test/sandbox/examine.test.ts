import { chmod } from 'node:fs/promises';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureTinyImage } from '../../scripts/image.mjs';
import { describeWith, docker, engineAvailable } from '../support/engine.ts';
import { environmentOf, makeImages, makeRig, type Rig, TINY } from './rig.ts';

const engine = await engineAvailable();

describeWith(engine, 'an examination of what serves an environment', () => {
  let rig: Rig;
  const examine = (config: Parameters<typeof environmentOf>[0]) =>
    rig.provider.examine({ environment: environmentOf(config), workspaceFolder: rig.workspace });
  const left = () => docker('ps', '--all', '--quiet', '--filter', `label=drover.workspace=${rig.workspace}`);

  beforeAll(async () => {
    await makeImages(ensureTinyImage);
  });
  beforeEach(async () => {
    rig = await makeRig();
  });
  afterEach(async () => {
    await rig.clear();
  });

  it('makes a real sandbox, looks around in it and leaves nothing behind', async () => {
    expect(rig.provider.serving()).toBeNull();
    const checks = await examine({ type: 'image', image: TINY });
    expect(checks.map(({ what, ok }) => [what, ok])).toEqual([
      ['engine', true],
      ['image', true],
      ['mounts', true],
      ['user', true],
      ['network', true],
    ]);
    const text = checks.map((check) => check.text).join('\n');
    expect(text).toMatch(/Docker \d+\.\d+.* at unix:\/\/.*\(from its usual place\)/);
    expect(text).toMatch(/The folder is at \/workspace and can be written; what the host runs is write-protected/);
    expect(text).toMatch(/No network of its own/);
    expect(left()).toBe('');
    expect(rig.events).toEqual([]);
    expect(rig.provider.serving()).toMatch(/^Docker .* \(from its usual place\)$/);
  });

  it('says that the folder can only be read, and who it belongs to', async () => {
    await chmod(rig.workspace, 0o555);
    try {
      const checks = await examine({ type: 'image', image: TINY });
      expect(checks.find(({ what }) => what === 'mounts')).toMatchObject({
        ok: false,
        text: expect.stringContaining('can only be read'),
      });
      expect(checks.find(({ what }) => what === 'user')?.text).toMatch(/run as 0:0; the folder belongs to 0:0/);
    } finally {
      await chmod(rig.workspace, 0o755);
    }
  });

  it('stops at what fails first, in the words a call would get', async () => {
    const checks = await examine({ type: 'image', image: 'localhost:1/drover/no-such-image' });
    expect(checks.map(({ what, ok }) => [what, ok])).toEqual([
      ['engine', true],
      ['image', false],
    ]);
    expect(checks[1]?.text).toMatch(/is not on this machine and could not be pulled/);
    const deaf = await makeRig({ env: { DOCKER_HOST: 'unix:///nowhere/docker.sock' } });
    try {
      const environment = environmentOf({ type: 'image', image: TINY });
      const none = await deaf.provider.examine({ environment, workspaceFolder: deaf.workspace });
      expect(none).toMatchObject([{ what: 'engine', ok: false, text: expect.stringContaining('does not answer') }]);
    } finally {
      await deaf.clear();
    }
  });
});
