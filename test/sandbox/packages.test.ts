import { execFileSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureSampleImage, ensureTinyImage } from '../../scripts/image.mjs';
import type { Packages } from '../../src/protocol/environment.ts';
import { createEgress } from '../../src/vault/proxy.ts';
import { describeWith, docker, engineAvailable } from '../support/engine.ts';
import { makeFolder } from '../support/temp.ts';
import { environmentOf, makeImages, makeRig, type Rig, SAMPLE, sh, TINY, textOf, types } from './rig.ts';

/** The sample's image with the npm of this machine and two packages in a folder: nothing is asked of any registry. */
const WITH_NPM = 'drover-test-npm:latest';

/** Where the stand-in registry listens. */
const REGISTRY = '127.7.7.8';
/** Entries are data for their manager, never words for a shell. */
const ODD = '/packages/bye $(touch ran); touch ran.tgz';

describeWith(await engineAvailable(), 'the packages of an environment', () => {
  let rig: Rig;
  const cached = () => docker('images', '--quiet', '--filter', 'label=drover.packages').split('\n').filter(Boolean);
  let before: string[];
  const image = (packages: Packages, name = WITH_NPM) => ({ type: 'image' as const, image: name, packages });

  beforeAll(async () => {
    await makeImages(ensureSampleImage, ensureTinyImage);
    before = cached();
    await addNpm();
  });
  afterAll(() => {
    for (const id of cached()) if (!before.includes(id)) docker('rmi', '--force', id);
    docker('rmi', '--force', WITH_NPM);
  });
  beforeEach(async () => {
    rig = await makeRig();
  });
  afterEach(async () => {
    await rig.clear();
  });

  it('are installed when the sandbox is made, once for all sessions, and can be used in it', async () => {
    const config = image({ npm: ['/packages/hello-1.0.0.tgz', ODD] });
    const count = cached().length;
    const sandbox = await rig.provider.acquire(rig.owner(config));
    expect(textOf((await sh(sandbox, 'say-hello; say-bye')).stdout)).toBe('hello from a package\nbye from a package\n');
    expect(rig.events[0]).toMatchObject({ recipe: `image ${WITH_NPM} with packages (npm 2)` });
    expect(rig.progress.join('\n')).toMatch(/Installing with npm: \/packages\/hello-1\.0\.0\.tgz/);
    expect(cached()).toHaveLength(count + 1);
    expect((await sh(sandbox, 'ls /ran /workspace/ran')).exitCode).not.toBe(0);
    // The workspace was not there to be written to, and what may be done inside is as little as ever.
    const status = textOf((await sh(sandbox, 'cat /proc/self/status')).stdout);
    expect(status).toMatch(/^CapEff:\t0000000000000000$/m);

    const other = await makeRig();
    try {
      const again = await other.provider.acquire(other.owner(config));
      expect(textOf((await sh(again, 'say-hello')).stdout)).toBe('hello from a package\n');
      expect(other.progress.join('\n')).not.toContain('Installing');
      expect(cached()).toHaveLength(count + 1);
    } finally {
      await other.clear();
    }
    expect(docker('ps', '--all', '--quiet', '--filter', 'name=drover-installing')).toBe('');
  });

  it('stay for the environments that name them when what is unused is removed, and go where none does', async () => {
    const config = image({ npm: ['/packages/hello-1.0.0.tgz'] });
    const own = (tag: string) => docker('images', '--quiet', tag);
    const owner = rig.owner(config);
    await rig.provider.acquire(owner);
    const container = docker('ps', '--quiet', '--filter', `label=drover.session=${owner.session}`);
    const name = docker('inspect', '--format', '{{.Config.Image}}', container);
    expect(name).toMatch(/^drover-packages:/);
    // A container uses it.
    await rig.provider.cleanUp(rig.workspace, new Set([owner.session]), []);
    expect(own(name)).not.toBe('');
    expect(await rig.provider.cleanUp(rig.workspace, new Set(), [owner.environment])).toMatchObject({
      sandboxes: 1,
      packages: 1,
    });
    expect(own(name)).not.toBe('');
    const cleaned = await rig.provider.cleanUp(rig.workspace, new Set(), [environmentOf(image({ npm: [ODD] }))]);
    expect(cleaned.images).toBeGreaterThanOrEqual(1);
    expect(own(name)).toBe('');
    expect(own(WITH_NPM)).not.toBe('');
  });

  it('that can not be installed are named with what their manager said, and nothing is left', async () => {
    const count = cached().length;
    const failing = rig.provider.acquire(
      rig.owner(image({ npm: ['/packages/hello-1.0.0.tgz', '/packages/none-1.0.0.tgz'] })),
    );
    await expect(failing).rejects.toThrow(
      /^npm could not install .*none-1\.0\.0\.tgz \(it ended with code \d+\).*"packages\.npm".*\n[\s\S]*ENOENT/,
    );
    expect(types(rig.events)).toEqual(['drover.sandbox_provisioning', 'drover.sandbox_failed']);
    expect(cached()).toHaveLength(count);
    expect(docker('ps', '--all', '--quiet', '--filter', 'name=drover-installing')).toBe('');
  });

  it('come from a registry through the way out alone, and only if the environment lets them', async () => {
    const { server, port, asked } = await registry();
    const egress = createEgress({ resolve: async () => [REGISTRY], privateRanges: [`${REGISTRY}/32`] });
    const far = await makeRig({ egress });
    const from = (allowed_hosts: string[]) => ({
      ...image({ npm: [`http://npm.test:${port}/far-1.0.0.tgz`] }),
      networking: { type: 'limited' as const, allowed_hosts },
    });
    try {
      await expect(far.provider.acquire(far.owner(from(['other.test'])))).rejects.toThrow(/^npm could not install/);
      expect(asked).toEqual([]);
      const sandbox = await far.provider.acquire(far.owner(from([`npm.test:${port}`])));
      expect(textOf((await sh(sandbox, 'say-far; env | grep -c far')).stdout)).toBe('far from a package\n0\n');
      expect(new Set(asked)).toEqual(new Set([`GET npm.test:${port} /far-1.0.0.tgz`]));
      // The way's own settings are those of the new sandbox, not those the packages were installed with.
      const { Config } = JSON.parse(docker('inspect', '--format', '{{json .}}', cached()[0] ?? ''));
      expect(JSON.stringify(Config.Env)).not.toMatch(/proxy/i);
      // Nor does it know whom the session trusted: that authority will be dead, and its next one another.
      const authority = textOf((await sh(sandbox, 'sed -n 2p /run/drover/ca.pem')).stdout).trim();
      expect(authority).toHaveLength(64);
      expect(filesOf(cached()[0] ?? '').includes(authority)).toBe(false);
      expect(filesOf(cached()[0] ?? '').includes('from a package')).toBe(true);
    } finally {
      server.close();
      server.closeAllConnections();
      await far.clear();
    }
  });

  it('of a manager that the image does not have fail in words, in the order of the managers', async () => {
    const failing = rig.provider.acquire(rig.owner(image({ pip: ['x'], npm: ['y'], gem: ['z'] }, TINY)));
    await expect(failing).rejects.toThrow(`The image ${TINY} has no gem, so nothing can be installed with gem`);
  });
});

/** All files of an image, in one piece. */
function filesOf(image: string): Buffer {
  const container = docker('create', image, 'true').trim();
  try {
    return execFileSync('docker', ['export', container], { maxBuffer: 2 ** 30 });
  } finally {
    docker('rm', '--force', container);
  }
}

/** A registry of the test's own, with one package: what it was asked for, in order. */
async function registry(): Promise<{ server: Server; port: number; asked: string[] }> {
  const folder = await makeFolder('drover-registry-');
  await pack(folder, 'far');
  const tarball = await readFile(join(folder, 'out/far-1.0.0.tgz'));
  await rm(folder, { recursive: true, force: true });
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.headers.host} ${request.url}`);
    response.end(tarball);
  });
  await new Promise<void>((resolve) => server.listen(0, REGISTRY, resolve));
  return { server, port: (server.address() as AddressInfo).port, asked };
}

async function addNpm(): Promise<void> {
  const folder = await makeFolder('drover-npm-');
  try {
    for (const word of ['hello', 'bye']) await pack(folder, word);
    await rename(join(folder, 'out/bye-1.0.0.tgz'), join(folder, 'out', basename(ODD)));
    const npm = dirname(
      dirname(realpathSync(execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim())),
    );
    const container = docker('create', SAMPLE, 'true').trim();
    try {
      execFileSync('docker', ['cp', npm, `${container}:/npm`], { stdio: 'ignore' });
      execFileSync('docker', ['cp', join(folder, 'out'), `${container}:/packages`], { stdio: 'ignore' });
      await writeFile(join(folder, 'npm'), '#!/bin/sh\nexec node /npm/bin/npm-cli.js "$@"\n', {
        mode: 0o755,
      });
      execFileSync('docker', ['cp', join(folder, 'npm'), `${container}:/usr/local/bin/npm`], { stdio: 'ignore' });
      docker('commit', container, WITH_NPM);
    } finally {
      docker('rm', '--force', container);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function pack(folder: string, word: string): Promise<void> {
  const root = join(folder, word);
  await mkdir(root, { recursive: true });
  await mkdir(join(folder, 'out'), { recursive: true });
  const manifest = { name: word, version: '1.0.0', bin: { [`say-${word}`]: 'say.js' } };
  await writeFile(join(root, 'package.json'), JSON.stringify(manifest));
  await writeFile(join(root, 'say.js'), `#!/usr/bin/env node\nconsole.log('${word} from a package');\n`, {
    mode: 0o755,
  });
  execFileSync('npm', ['pack', '--silent', '--offline', '--pack-destination', join(folder, 'out')], {
    cwd: root,
    stdio: 'ignore',
  });
}
