import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureSampleImage, ensureTinyImage } from '../../scripts/image.mjs';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import { createEgress } from '../../src/vault/proxy.ts';
import { type Available, describeWith, docker, engineAvailable, removeLabelled } from '../support/engine.ts';
import { tcpRelay } from '../support/tcp-relay.ts';
import { makeImages, makeRig, type Rig, SAMPLE, sh, TINY, textOf } from './rig.ts';

/** Where the stand-in for a public host listens. */
const HOST = '127.7.7.13';
const runs = (program: string, ...args: string[]) => spawnSync(program, args, { timeout: 20_000 }).status === 0;

const engine = await engineAvailable();
const parts: Available = engine.ok
  ? {
      ok: runs('docker', 'compose', 'version') || runs('docker-compose', 'version'),
      why: 'neither docker compose nor docker-compose is installed',
    }
  : engine;

describeWith(parts, 'Compose services on an engine on another machine', () => {
  let relay: Awaited<ReturnType<typeof tcpRelay>>;
  let server: Server;
  let rig: Rig;

  beforeAll(() => makeImages(ensureTinyImage, ensureSampleImage));
  beforeEach(async () => {
    relay = await tcpRelay('/var/run/docker.sock', '127.0.0.2');
    server = createServer((request, response) => void response.end(`answer ${request.url}`));
    await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
    const egress = createEgress({ resolve: async () => [HOST], privateRanges: [`${HOST}/32`] });
    rig = await makeRig({ egress, env: { ...process.env, DOCKER_HOST: relay.host } });
  });
  afterEach(async () => {
    await rig.provider.dispose();
    removeLabelled(`drover.workspace=${rig.workspace}`);
    const volumes = docker('volume', 'ls', '--quiet', '--filter', `label=drover.workspace=${rig.workspace}`);
    if (volumes) docker('volume', 'rm', '--force', ...volumes.split('\n'));
    await rig.clear();
    await relay.close();
    server.close();
    server.closeAllConnections();
  });

  it('have a copy that is kept alike both ways, a way out, and each other; all of it goes in the end', async () => {
    const { port } = server.address() as AddressInfo;
    const ask = (path: string) =>
      `node -e 'fetch("http://web.test:${port}/${path}").then(async (r) => console.log(await r.text()), (e) => console.log("failed", e.cause?.message))'`;
    await rig.put('a.txt', 'a\n');
    await rig.put('seed.sql', 'x\n');
    await rig.put(
      '.devcontainer/compose.yml',
      `
services:
  app:
    image: ${SAMPLE}
    command: sleep infinity
    volumes: ['..:/work', 'data:/data']
    depends_on: [db]
  db:
    image: ${TINY}
    command: sleep infinity
    volumes: ['../seed.sql:/seed.sql']
volumes: { data: {} }
`,
    );
    const config = { dockerComposeFile: 'compose.yml', service: 'app', workspaceFolder: '/work' };
    await rig.put(
      '.devcontainer/devcontainer.json',
      JSON.stringify({ ...config, postCreateCommand: `${ask('early')} >made.txt` }),
    );
    const networking = { type: 'limited' as const, allowed_hosts: [`web.test:${port}`] };
    const bare = rig.owner({ type: 'devcontainer' });
    const owner = {
      ...bare,
      environment: { ...bare.environment, config: { type: 'devcontainer' as const, networking } },
    };
    const sandbox = await rig.provider.acquire(owner);
    expect(sandbox.workspace).toBe('/work');
    expect(rig.progress.join('\n')).toMatch(/the volume \S+seed\.sql\S* of db \(the engine does not see this folder\)/);
    const run = async (line: string, of = sandbox) => textOf((await sh(of, line)).stdout);
    expect(await run(`cat a.txt made.txt; echo b >b.txt; echo evil >.devcontainer/compose.yml; ${ask('late')}`)).toBe(
      'a\nanswer /early\nanswer /late\n',
    );
    expect(await readFile(join(rig.workspace, 'b.txt'), 'utf8')).toBe('b\n');
    expect(await readFile(join(rig.workspace, 'made.txt'), 'utf8')).toBe('answer /early\n');
    expect(await readFile(join(rig.workspace, '.devcontainer/compose.yml'), 'utf8')).toContain('depends_on');
    await rig.put('a.txt', 'by hand\n');
    expect(await run('cat a.txt; (exec 3<>/dev/tcp/db/1) 2>&1 | grep -q refused && echo refused')).toBe(
      'by hand\nrefused\n',
    );
    const next = createSandboxProvider(rig.options);
    const again = await next.acquire(owner);
    expect(again.id).toBe(sandbox.id);
    expect(await run(`cat a.txt; ${ask('again')}`, again)).toBe('by hand\nanswer /again\n');
    await next.dispose();
    await rig.provider.remove(owner, 'done');
    for (const kind of [
      ['ps', '--all'],
      ['network', 'ls'],
      ['volume', 'ls'],
    ])
      expect(docker(...kind, '--quiet', '--filter', `label=drover.sandbox=${sandbox.id}`)).toBe('');
  }, 180_000);
});
