import { spawnSync } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureTinyImage } from '../../scripts/image.mjs';
import { mint } from '../../src/protocol/ids.ts';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import { type Available, describeWith, docker, engineAvailable } from '../support/engine.ts';
import { makeImages, makeRig, type Rig, sh, TINY, textOf } from './rig.ts';

const engine = await engineAvailable();
/** ms. Compose is a program of its own that the devcontainer tool starts many times. */
const SLOW_MS = 180_000;
const devcontainer = { type: 'devcontainer' as const };

/** The plugin or the older program; the devcontainer tool takes either. */
function composeAvailable(): Available {
  const found = [
    ['docker', 'compose', 'version'],
    ['docker-compose', 'version'],
  ].some(([program = '', ...args]) => spawnSync(program, args, { timeout: 20_000 }).status === 0);
  return engine.ok ? { ok: found, why: 'neither docker compose nor docker-compose is installed' } : engine;
}

describeWith(composeAvailable(), 'a devcontainer of Compose services', () => {
  let rig: Rig;
  const put = async (compose: string, more: Record<string, unknown> = {}) => {
    await rig.put('.devcontainer/compose.yml', compose);
    const config = { dockerComposeFile: 'compose.yml', service: 'app', workspaceFolder: '/work', ...more };
    await rig.put('.devcontainer/devcontainer.json', JSON.stringify(config));
  };
  const labelled = (kind: 'ps' | 'network' | 'volume', sandbox: string) => {
    const filter = ['--quiet', '--filter', `label=drover.sandbox=${sandbox}`];
    return docker(...(kind === 'ps' ? ['ps', '--all'] : [kind, 'ls']), ...filter)
      .split('\n')
      .filter(Boolean);
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

  it(
    'runs in its service, beside the others, and takes all of them away in the end',
    async () => {
      await put(
        `
services:
  app:
    build: { context: ., dockerfile: Dockerfile }
    command: sleep infinity
    environment: { COLOUR: blue, PRICE: "5$$" }
    volumes: ['..:/work:cached', 'data:/data']
    depends_on: [db]
  db:
    image: ${TINY}
    command: sh -c "echo db-is-up >/tmp/up; sleep infinity"
volumes: { data: {} }
`,
        { postCreateCommand: 'echo made >made.txt', remoteEnv: { SHADE: 'dark' } },
      );
      await rig.put('.devcontainer/Dockerfile', `FROM ${TINY}\nRUN echo built >/built.txt\n`);
      const owner = rig.owner(devcontainer);
      const sandbox = await rig.provider.acquire(owner);
      expect(sandbox.workspace).toBe('/work');
      const seen = await sh(
        sandbox,
        'cat made.txt /built.txt; echo "$COLOUR $SHADE $PRICE"; echo evil >.vscode/tasks.json',
      );
      expect(textOf(seen.stdout)).toBe('made\nbuilt\nblue dark 5$\n');
      expect(seen.exitCode).not.toBe(0);
      const argv = ['sh', '-c', 'pwd; echo "$COLOUR $SHADE"; read line; echo "heard $line"'];
      const server = await sandbox.open({ executionId: mint.execution(), argv });
      server.stdin.write('hello\n');
      expect(await text(server.stdout)).toBe('/work\nblue dark\nheard hello\n');
      const status = textOf((await sh(sandbox, 'cat /proc/self/status')).stdout);
      expect(status).toMatch(/^CapBnd:\t0000000000000000$/m);
      expect(status).toMatch(/^NoNewPrivs:\t1$/m);
      expect(labelled('ps', sandbox.id)).toHaveLength(2);
      // The services know one another by name.
      const connect = await sh(sandbox, 'bash -c "exec 3<>/dev/tcp/db/1"');
      expect(textOf(connect.stderr)).toMatch(/Connection refused/);
      const again = createSandboxProvider(rig.options);
      expect((await again.acquire(owner)).id).toBe(sandbox.id);
      await again.dispose();
      const project = `drover-${sandbox.id.toLowerCase().replaceAll('_', '-')}`;
      expect(docker('images', '--quiet', '--filter', `reference=${project}*`)).not.toBe('');
      await rig.provider.remove(owner, 'done');
      for (const kind of ['ps', 'network', 'volume'] as const) expect(labelled(kind, sandbox.id)).toEqual([]);
      expect(docker('images', '--quiet', '--filter', `reference=${project}*`)).toBe('');
    },
    SLOW_MS,
  );

  it(
    'loses every way out that its services ask for, and says so',
    async () => {
      await put(`
services:
  app:
    image: ${TINY}
    command: sleep infinity
    privileged: true
    network_mode: host
    volumes: ['..:/work', '/:/host', '../.git:/again']
  helper:
    image: ${TINY}
    command: sleep infinity
    cap_add: [SYS_ADMIN]
    pid: host
    devices: ['/dev/null:/dev/x']
    volumes: ['/var/run/docker.sock:/var/run/docker.sock', '..:/all']
`);
      const sandbox = await rig.provider.acquire(rig.owner(devcontainer));
      expect((await sh(sandbox, 'ls /host /again')).exitCode).not.toBe(0);
      const said = rig.progress.find((line) => line.startsWith('Left out')) ?? '';
      for (const part of [
        'privileged of the service app',
        'network_mode',
        'cap_add',
        'pid of',
        'devices',
        'docker.sock',
      ])
        expect(said).toContain(part);
      for (const id of labelled('ps', sandbox.id)) {
        const info = JSON.parse(docker('inspect', '--format', '{{json .HostConfig}}', id));
        expect(info).toMatchObject({ Privileged: false, CapAdd: null, PidMode: '' });
        const mounts = JSON.parse(docker('inspect', '--format', '{{json .Mounts}}', id));
        for (const { Type, Source, RW } of mounts) if (Type === 'bind' && RW) expect(Source).toContain(rig.workspace);
      }
      const network = JSON.parse(docker('network', 'inspect', labelled('network', sandbox.id)[0] ?? ''))[0];
      expect(network).toMatchObject({ Internal: true });
    },
    SLOW_MS,
  );

  it(
    'outlives the network of its services under a call, and is made anew by who finds it cut off from them',
    async () => {
      await put(`
services:
  app:
    image: ${TINY}
    command: sleep infinity
    volumes: ['..:/work']
    depends_on: [db]
  db:
    image: ${TINY}
    command: sleep infinity
`);
      const owner = rig.owner(devcontainer);
      const sandbox = await rig.provider.acquire(owner);
      const reach = 'timeout 2 bash -c "exec 3<>/dev/tcp/db/1" 2>&1 || echo unreachable';
      expect(textOf((await sh(sandbox, reach)).stdout)).toMatch(/Connection refused/);
      const running = sh(sandbox, `echo before; until [ -f gone ]; do sleep 0.1; done; ${reach}; echo after; exit 3`);
      const [network = ''] = labelled('network', sandbox.id);
      for (const id of labelled('ps', sandbox.id)) docker('network', 'disconnect', '--force', network, id);
      docker('network', 'rm', network);
      await rig.put('gone', '');
      // The command goes on and says itself what it can't reach.
      const result = await running;
      expect([result.ended, result.exitCode]).toEqual(['exited', 3]);
      expect(textOf(result.stdout)).toMatch(/^before\n[\s\S]*unreachable\nafter\n$/);
      expect(textOf(result.stdout)).not.toMatch(/Connection refused/);
      const next = await sh(sandbox, `echo works; ${reach}`);
      expect(textOf(next.stdout)).toMatch(/^works\n[\s\S]*unreachable\n$/);

      const other = createSandboxProvider(rig.options);
      try {
        expect(await other.attach(owner, sandbox.id)).toBeNull();
        const fresh = await other.acquire(owner);
        expect(fresh.id).not.toBe(sandbox.id);
        expect(textOf((await sh(fresh, reach)).stdout)).toMatch(/Connection refused/);
        expect(labelled('ps', sandbox.id)).toEqual([]);
        await other.remove(owner, 'done');
      } finally {
        await other.dispose();
      }
    },
    SLOW_MS,
  );

  it.each([
    ['env_file: /etc/environment', /reads \/etc\/environment/],
    ['extends: { file: ../../other.yml, service: x }', /uses "extends"/],
    ['build: { context: ../.. }', /lies outside this folder/],
  ])('reads no file of the host outside the folder: %s', async (line, words) => {
    await put(`services:\n  app:\n    image: ${TINY}\n    ${line}\n`);
    await expect(rig.provider.acquire(rig.owner(devcontainer))).rejects.toThrow(words);
  });

  it('says which service is missing', async () => {
    await put(`services:\n  other:\n    image: ${TINY}\n`);
    await expect(rig.provider.acquire(rig.owner(devcontainer))).rejects.toThrow(/service "app".*it has other/);
  });
});
