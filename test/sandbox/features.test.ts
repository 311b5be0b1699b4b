import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureTinyImage } from '../../scripts/image.mjs';
import { describeWith, docker, engineAvailable } from '../support/engine.ts';
import { makeFolder } from '../support/temp.ts';
import { makeImages, makeRig, type Rig, sh, TINY, textOf } from './rig.ts';

const devcontainer = { type: 'devcontainer' as const };
const sha256 = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

describeWith(await engineAvailable(), 'a feature from a registry', () => {
  let rig: Rig;
  let server: Server;
  let port: number;
  const put = (feature: string) =>
    rig.put('.devcontainer.json', JSON.stringify({ image: TINY, features: { [feature]: { whom: 'you' } } }));

  beforeAll(() => makeImages(ensureTinyImage));
  beforeEach(async () => {
    rig = await makeRig();
    server = await registry();
    port = (server.address() as AddressInfo).port;
  });
  afterEach(async () => {
    server.close();
    server.closeAllConnections();
    await rig.clear();
  });

  it('is fetched and installed, with its options and variables', async () => {
    await put(`localhost:${port}/drover/hello:1`);
    const sandbox = await rig.provider.acquire(rig.owner(devcontainer));
    const said = await sh(sandbox, 'cat /usr/local/hello.txt; echo $FROM_FEATURE');
    expect(textOf(said.stdout)).toBe('hello you\nyes\n');
  });

  it.each([
    ['that the registry does not have', () => `localhost:${port}/drover/none:1`],
    ['whose registry does not answer', () => 'localhost:1/drover/hello:1'],
  ])('%s is named, with the phase, and nothing is left', async (_which, feature) => {
    await put(feature());
    const failed = await rig.provider.acquire(rig.owner(devcontainer)).catch((error: Error) => error.message);
    expect(failed).toContain(`it failed while fetching the feature ${feature()} (`);
    expect(failed).toMatch(/ECONNREFUSED|Could not resolve Feature/);
    expect(docker('ps', '--all', '--quiet', '--filter', `label=drover.workspace=${rig.workspace}`)).toBe('');
  });
});

/** A registry with one feature, `drover/hello` 1.0.0, by the few questions of the distribution API that are asked. */
async function registry(): Promise<Server> {
  const folder = await makeFolder('drover-feature-');
  const about = {
    id: 'hello',
    version: '1.0.0',
    name: 'Hello',
    options: { whom: { type: 'string', default: 'nobody' } },
    containerEnv: { FROM_FEATURE: 'yes' },
  };
  await mkdir(join(folder, 'hello'));
  await writeFile(join(folder, 'hello/devcontainer-feature.json'), JSON.stringify(about));
  await writeFile(join(folder, 'hello/install.sh'), '#!/bin/sh\nset -e\necho "hello $WHOM" >/usr/local/hello.txt\n');
  await chmod(join(folder, 'hello/install.sh'), 0o755);
  const layer = execFileSync('tar', ['-C', join(folder, 'hello'), '-c', '.']);
  await rm(folder, { recursive: true, force: true });
  const config = Buffer.from('{}');
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: { mediaType: 'application/vnd.devcontainers', digest: sha256(config), size: config.length },
      layers: [{ mediaType: 'application/vnd.devcontainers.layer.v1+tar', digest: sha256(layer), size: layer.length }],
      annotations: { 'dev.containers.metadata': JSON.stringify(about) },
    }),
  );
  const answers: Readonly<Record<string, [type: string, body: Buffer]>> = {
    '/v2/drover/hello/manifests/1': ['application/vnd.oci.image.manifest.v1+json', manifest],
    '/v2/drover/hello/tags/list': ['application/json', Buffer.from('{"name":"drover/hello","tags":["1","1.0.0"]}')],
    [`/v2/drover/hello/blobs/${sha256(layer)}`]: ['application/octet-stream', layer],
  };
  const server = createServer((request, response) => {
    const [type, body] = answers[request.url ?? ''] ?? [];
    if (!type || !body) return void response.writeHead(404).end('{"errors":[{"code":"MANIFEST_UNKNOWN"}]}');
    response.writeHead(200, { 'content-type': type, 'docker-content-digest': sha256(body) }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
