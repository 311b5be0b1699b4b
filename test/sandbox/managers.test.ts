import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureSecurityImage } from '../../scripts/image.mjs';
import type { Packages } from '../../src/protocol/environment.ts';
import { createEgress } from '../../src/vault/proxy.ts';
import { type Available, describeWith, docker, engineAvailable } from '../support/engine.ts';
import { tcpRelay } from '../support/tcp-relay.ts';
import {
  canMakeManagers,
  HOST_NAMES,
  MANAGERS,
  makeManagersImage,
  openRegistries,
  type Registries,
} from './registries.ts';
import { makeImages, makeRig, type Rig, sh, textOf } from './rig.ts';

/** Where the stand-in registries listen. */
const REGISTRIES = '127.7.7.10';
/** Has npm. */
const SECURITY = 'drover-security:latest';

const engine = await engineAvailable();
const parts: Available = engine.ok
  ? { ok: canMakeManagers(), why: 'an image with package managers is made with mmdebstrap, by root' }
  : engine;

describeWith(parts, 'real package managers', () => {
  let registries: Registries;
  let rig: Rig;
  let before: string[];
  const cached = () => docker('images', '--quiet', '--filter', 'label=drover.packages').split('\n').filter(Boolean);
  const image = (packages: Packages, name = MANAGERS) => ({ type: 'image' as const, image: name, packages });

  beforeAll(async () => {
    before = cached();
    makeManagersImage();
    await makeImages(ensureSecurityImage);
    registries = await openRegistries(REGISTRIES);
  }, 600_000);
  afterAll(async () => {
    await registries?.close();
    for (const id of cached()) if (!before.includes(id)) docker('rmi', '--force', id);
  });
  const egress = () =>
    createEgress({
      resolve: async () => [REGISTRIES],
      privateRanges: [`${REGISTRIES}/32`],
      extraCertificates: () => [registries.certificate],
    });
  beforeEach(async () => {
    rig = await makeRig({ egress: egress() });
    registries.asked.length = 0;
  });
  afterEach(async () => {
    await rig.clear();
  });

  it('install the versions that are named, each from its own registry, in a network that allows no more', async () => {
    const packages = { pip: ['drover-demo==1.1'], gem: ['drover-demo:1.1'], apt: ['drover-demo=1.1'] };
    const sandbox = await rig.provider.acquire(rig.owner(image(packages)));
    const said = await sh(sandbox, 'say-apt; say-gem; python3 -c "import drover_demo"');
    expect(textOf(said.stdout)).toBe('apt 1.1\ngem 1.1\npip 1.1\n');
    const hosts = [HOST_NAMES.apt, HOST_NAMES.pipFiles, HOST_NAMES.gem, HOST_NAMES.pip];
    expect([...new Set(registries.asked.map((one) => one.split(' ')[0]))].sort()).toEqual(hosts);
    // What only the installing needed is not left behind.
    expect(textOf((await sh(sandbox, 'ls /var/lib/apt/lists')).stdout)).toBe('');
  });

  it('install with npm, which trusts what the host trusts', async () => {
    const sandbox = await rig.provider.acquire(rig.owner(image({ npm: ['drover-demo@1.1'] }, SECURITY)));
    expect(textOf((await sh(sandbox, 'say-npm')).stdout)).toBe('npm 1.1.0\n');
  });

  it('install on an engine on another machine, and what was put inside to get out is not in the image', async () => {
    const relay = await tcpRelay('/var/run/docker.sock', '127.0.0.2');
    const far = await makeRig({ egress: egress(), env: { ...process.env, DOCKER_HOST: relay.host } });
    const owner = far.owner(image({ pip: ['drover-demo==1.2'] }));
    try {
      const sandbox = await far.provider.acquire(owner);
      expect(textOf((await sh(sandbox, 'python3 -c "import drover_demo"')).stdout)).toBe('pip 1.2\n');
      const container = docker('ps', '--quiet', '--filter', `label=drover.sandbox=${sandbox.id}`);
      const name = docker('inspect', '--format', '{{.Config.Image}}', container);
      expect(docker('run', '--rm', '--network', 'none', '--entrypoint', 'ls', name, '-A', '/run/')).not.toMatch(
        /drover/,
      );
    } finally {
      await far.provider.remove(owner, 'done');
      await far.clear();
      await relay.close();
    }
  });

  it.each([
    ['apt', 'drover-none', /Unable to locate package drover-none/],
    ['apt', 'drover-demo=1.3', /Version '1\.3' for 'drover-demo' was not found/],
    ['gem', 'drover-demo:1.3', /Could not find a valid gem 'drover-demo' \(= 1\.3\)/],
    ['pip', 'drover-demo==1.3', /No matching distribution found for drover-demo==1\.3/],
    ['npm', 'drover-demo@1.3', /No matching version found for drover-demo@1\.3/],
  ] as const)('say what is not to be had: %s, %s', async (manager, entry, words) => {
    const config = image({ [manager]: [entry] }, manager === 'npm' ? SECURITY : MANAGERS);
    const failed = await rig.provider.acquire(rig.owner(config)).catch((error: Error) => error.message);
    expect(failed).toContain(`${manager} could not install ${entry} (it ended with code `);
    expect(failed).toContain(`correct "packages.${manager}" or the network of the environment`);
    expect(failed).toMatch(words);
  });
});
