import { execFileSync } from 'node:child_process';
import { chmod, lstat, mkdir, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureSampleImage, ensureTinyImage } from '../../scripts/image.mjs';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { createEgress } from '../../src/vault/proxy.ts';
import { describeWith, docker, engineAvailable, removeDevcontainerImages, removeLabelled } from '../support/engine.ts';
import { tcpRelay } from '../support/tcp-relay.ts';
import { connectTo } from './mcp-client.ts';
import { environmentOf, makeImages, makeRig, type Rig, SAMPLE, sh, TINY, textOf, types } from './rig.ts';

const engine = await engineAvailable();
/** Where the stand-in host listens. */
const HOST = '127.7.7.9';
const image = { type: 'image' as const, image: TINY };

describeWith(engine, 'an engine on another machine', () => {
  let relay: Awaited<ReturnType<typeof tcpRelay>>;
  let rig: Rig;
  const here = (path: string) => readFile(join(rig.workspace, path), 'utf8');
  const ok = async (sandbox: Sandbox, line: string) => {
    const result = await sh(sandbox, line);
    expect([line, result.exitCode, textOf(result.stderr)]).toEqual([line, 0, '']);
    return textOf(result.stdout);
  };
  const said = () => rig.progress.join('\n');

  beforeAll(async () => {
    await makeImages(ensureTinyImage, ensureSampleImage);
    // Loopback, but by an address that is not taken for this machine.
    relay = await tcpRelay('/var/run/docker.sock', '127.0.0.2');
  });
  afterAll(async () => {
    await relay.close();
  });
  beforeEach(async () => {
    rig = await makeRig({ env: { ...process.env, DOCKER_HOST: relay.host } });
    await mkdir(join(rig.workspace, 'src'));
    await rig.put('a.txt', 'a\n');
    await rig.put('src/b.txt', 'b\n');
    await rig.put('.drover/sessions/x/log.jsonl', 'truth\n');
  });
  afterEach(async () => {
    await rig.provider.remove({ session: rig.owner(image).session, record: async () => {} }, 'the test is over');
    removeLabelled(`drover.workspace=${rig.workspace}`);
    removeDevcontainerImages(basename(rig.workspace));
    await rig.clear();
  });

  it('gets a copy that none of this machine’s files are mounted into', async () => {
    await chmod(join(rig.workspace, 'src/b.txt'), 0o755);
    await symlink('src/b.txt', join(rig.workspace, 'link'));
    const sandbox = await rig.provider.acquire(rig.owner(image));
    const listing = await ok(sandbox, 'pwd; ls -A; cat a.txt link; [ -x src/b.txt ] && readlink link');
    expect(listing).toBe('/workspace\na.txt\nlink\nsrc\na\nb\nsrc/b.txt\n');
    const id = docker('ps', '--quiet', '--filter', `label=drover.workspace=${rig.workspace}`);
    const mounts: { Type: string }[] = JSON.parse(docker('inspect', '--format', '{{json .Mounts}}', id));
    expect(mounts.map(({ Type }) => Type)).toEqual(['volume']);
    expect(types(rig.events)).toEqual(['drover.sandbox_provisioning', 'drover.sandbox_ready']);
    expect(await rig.provider.diagnose(environmentOf(image))).toMatchObject({
      text: expect.stringContaining('on another machine'),
    });
    await rig.provider.remove(rig.owner(image), 'done');
    expect(docker('volume', 'ls', '--quiet', '--filter', `label=drover.sandbox=${sandbox.id}`)).toBe('');
    expect((await readdir(rig.workspace)).sort()).toEqual(['.drover', 'a.txt', 'link', 'src']);
  });

  it('is left with no connection when the window closes', async () => {
    const own = await tcpRelay('/var/run/docker.sock', '127.0.0.2');
    const other = await makeRig({ env: { ...process.env, DOCKER_HOST: own.host } });
    try {
      await ok(await other.provider.acquire(other.owner(image)), 'true');
      expect(own.open).toBeGreaterThan(0);
      await other.provider.dispose();
      await expect.poll(() => own.open, { timeout: 15_000 }).toBe(0);
    } finally {
      await rig.provider.remove({ session: other.owner(image).session, record: async () => {} }, 'the test is over');
      await other.clear();
      await own.close();
    }
  });

  it('has a server that sees the person’s newer files, and what it writes comes back before its answer', async () => {
    const of = rig.owner({ type: 'image', image: SAMPLE });
    const { client, ask } = await connectTo(await rig.provider.acquire(of));
    await rig.put('newer.txt', 'newer\n');
    expect(await ask('read', { path: 'newer.txt' })).toBe('newer\n');
    await ask('write', { path: 'src/made.txt' });
    expect(await here('src/made.txt')).toBe('by the server\n');
    await client.close();
  });

  it('brings back what a call wrote, changed, made executable, linked and removed', async () => {
    await rig.put('old/gone.txt', 'x\n');
    const sandbox = await rig.provider.acquire(rig.owner(image));
    await ok(
      sandbox,
      'echo more >>a.txt; mkdir -p new/deep; echo n >new/deep/n.txt; chmod 755 new/deep/n.txt; ln -s ../a.txt new/l; rm -r old; rm src/b.txt',
    );
    expect(await here('a.txt')).toBe('a\nmore\n');
    expect(await here('new/deep/n.txt')).toBe('n\n');
    expect((await stat(join(rig.workspace, 'new/deep/n.txt'))).mode & 0o777).toBe(0o755);
    expect(await readlink(join(rig.workspace, 'new/l'))).toBe('../a.txt');
    expect((await readdir(rig.workspace)).sort()).toEqual(['.drover', 'a.txt', 'new', 'src']);
    expect(await readdir(join(rig.workspace, 'src'))).toEqual([]);
    // Many files come as one archive.
    await ok(sandbox, 'i=0; while [ $i -lt 90 ]; do echo $i >new/$i; i=$((i+1)); done; ln new/7 new/seven');
    expect(await here('new/89')).toBe('89\n');
    expect(await here('new/seven')).toBe('7\n');
    // The same size within the same second is still another content.
    await ok(sandbox, 'echo 88 >new/89');
    expect(await here('new/89')).toBe('88\n');
  });

  it('sees what the person changed, made and removed before the next call', async () => {
    const sandbox = await rig.provider.acquire(rig.owner(image));
    await ok(sandbox, 'true');
    await rig.put('a.txt', 'by hand\n');
    await rig.put('hand/made.txt', 'm\n');
    await rm(join(rig.workspace, 'src'), { recursive: true });
    expect(await ok(sandbox, 'cat a.txt hand/made.txt; ls')).toBe('by hand\nm\na.txt\nhand\n');
    expect(await here('a.txt')).toBe('by hand\n');
  });

  it('keeps the person’s change where both changed a file, and says so', async () => {
    const sandbox = await rig.provider.acquire(rig.owner(image));
    const running = sh(sandbox, 'echo from inside >a.txt; echo other >c.txt; sleep 2');
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await rig.put('a.txt', 'by hand, meanwhile\n');
    expect((await running).exitCode).toBe(0);
    expect(await here('a.txt')).toBe('by hand, meanwhile\n');
    expect(await here('c.txt')).toBe('other\n');
    expect(said()).toMatch(/a\.txt was changed both here and in the sandbox; what is here was kept/);
    expect(await ok(sandbox, 'cat a.txt')).toBe('by hand, meanwhile\n');
  });

  it('brings back nothing that the host would run, and writes through no link', async () => {
    execFileSync('git', ['-C', rig.workspace, 'init', '--quiet']);
    const outside = join(rig.cache, 'outside');
    await mkdir(outside, { recursive: true });
    await writeFile(join(outside, 'victim.txt'), 'untouched\n');
    await symlink(outside, join(rig.workspace, 'out'));
    const config = await here('.git/config');
    const sandbox = await rig.provider.acquire(rig.owner(image));
    await ok(
      sandbox,
      `echo evil >.git/config; echo evil >.git/hooks/pre-commit; echo fine >.git/description
       mkdir -p .vscode .devcontainer .drover/sessions deep/.git/hooks; echo evil >.vscode/tasks.json
       echo evil >.devcontainer/devcontainer.json; echo evil >.devcontainer.json; echo evil >.drover/catalog.json
       echo evil >deep/.git/config; echo evil >deep/.git/hooks/x; echo 'gitdir: ../evil' >src/.git
       rm out; mkdir out; echo evil >out/victim.txt; ln -s ${outside} way; echo good >good.txt`,
    );
    expect(await here('.git/config')).toBe(config);
    expect(await here('.git/description')).toBe('fine\n');
    expect(await here('good.txt')).toBe('good\n');
    expect(await readFile(join(outside, 'victim.txt'), 'utf8')).toBe('untouched\n');
    for (const path of [
      '.git/hooks/pre-commit',
      '.vscode',
      '.devcontainer',
      '.devcontainer.json',
      '.drover/catalog.json',
    ])
      await expect(lstat(join(rig.workspace, path))).rejects.toThrow(/ENOENT/);
    for (const path of ['deep/.git/config', 'deep/.git/hooks/x', 'src/.git'])
      await expect(lstat(join(rig.workspace, path))).rejects.toThrow(/ENOENT/);
    expect(await here('.drover/sessions/x/log.jsonl')).toBe('truth\n');
    expect(said()).toMatch(/\.git\/config was changed in the sandbox and not brought back/);
    // A link that was made inside is a link here, and nothing goes through it.
    expect(await readlink(join(rig.workspace, 'way'))).toBe(outside);
    await sh(sandbox, 'rm way; mkdir way; echo evil >way/victim.txt');
    expect(await readFile(join(outside, 'victim.txt'), 'utf8')).toBe('untouched\n');
  });

  it('goes on with the same copy in another process, and brings back what it missed', async () => {
    const owner = rig.owner(image);
    const sandbox = await rig.provider.acquire(owner);
    await ok(sandbox, 'true');
    const id = docker('ps', '--quiet', '--filter', `label=drover.workspace=${rig.workspace}`);
    docker('exec', id, 'sh', '-c', 'echo unseen >/workspace/unseen.txt');
    const other = createSandboxProvider(rig.options);
    try {
      const again = await other.acquire(owner);
      expect(again.id).toBe(sandbox.id);
      await ok(again, 'true');
      expect(await here('unseen.txt')).toBe('unseen\n');
    } finally {
      await other.dispose();
    }
  });

  it('has a way out through the proxy alone, though nothing of this machine is mounted', async () => {
    const server = createServer((request, response) => response.end(`${request.method} ${request.url}`));
    await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
    const { port } = server.address() as AddressInfo;
    const egress = createEgress({ resolve: async () => [HOST], privateRanges: [`${HOST}/32`] });
    const far = await makeRig({ egress, env: { ...process.env, DOCKER_HOST: relay.host } });
    const networking = { type: 'limited' as const, allowed_hosts: [`web.test:${port}`] };
    const ask = (url: string) =>
      `node -e 'fetch("${url}").then(async (r) => console.log(r.status, await r.text())).catch((e) => console.log("failed", e.cause?.message ?? e.message))'`;
    const owner = far.owner({ type: 'image', image: SAMPLE, networking });
    try {
      const sandbox = await far.provider.acquire(owner);
      expect(await ok(sandbox, 'ls /sys/class/net; ls /run/drover')).toBe('lo\nca-bundle.pem\nca.pem\nrelay\n');
      expect(await ok(sandbox, 'cat "$SSL_CERT_FILE" | grep -c BEGIN | grep -v "^0"')).toMatch(/^\d+/);
      expect(await ok(sandbox, ask(`http://web.test:${port}/far`))).toBe('200 GET /far\n');
      expect(await ok(sandbox, ask(`http://other.test:${port}/`))).toMatch(/^failed/);
      expect(
        await ok(sandbox, `env -u HTTP_PROXY -u http_proxy -u NODE_USE_ENV_PROXY ${ask(`http://${HOST}:${port}/`)}`),
      ).toMatch(/^failed/);
      await expect
        .poll(() => far.events.filter(({ type }) => type === 'drover.egress'), { timeout: 5_000 })
        .toMatchObject([
          { host: 'web.test', verdict: 'allowed', execution_id: expect.stringMatching(/^exec_/) },
          { host: 'other.test', verdict: 'refused', reason: 'not_listed' },
        ]);
      // Nobody inside can put another relay in its place.
      expect((await sh(sandbox, ': >/run/drover/relay')).exitCode).not.toBe(0);
      const next = createSandboxProvider(far.options);
      try {
        const again = await next.acquire(owner);
        expect(again.id).toBe(sandbox.id);
        expect(await ok(again, ask(`http://web.test:${port}/again`))).toBe('200 GET /again\n');
      } finally {
        await next.dispose();
      }
    } finally {
      server.close();
      server.closeAllConnections();
      await far.provider.remove({ session: owner.session, record: async () => {} }, 'the test is over');
      removeLabelled(`drover.workspace=${far.workspace}`);
      await far.clear();
    }
  });

  it('serves a devcontainer, whose commands find the files, also if another window cleans up while it is built', async () => {
    const config = { build: { dockerfile: 'Dockerfile' }, postCreateCommand: 'cat a.txt >made.txt' };
    await rig.put('.devcontainer/devcontainer.json', JSON.stringify(config));
    await rig.put('.devcontainer/Dockerfile', `FROM ${SAMPLE}\nRUN echo ${rig.workspace}; sleep 3\n`);
    const other = await makeRig();
    let cleaned: Promise<unknown> | undefined;
    const owner = rig.owner({ type: 'devcontainer' });
    const onProgress = (line: string) => {
      if (line.includes('sleep 3')) cleaned ??= other.provider.reap(other.workspace, new Set());
    };
    const sandbox = await rig.provider.acquire({ ...owner, onProgress });
    expect(await cleaned).toBeDefined();
    await other.clear();
    expect(await ok(sandbox, 'cat made.txt; echo w >w.txt')).toBe('a\n');
    expect(await here('made.txt')).toBe('a\n');
    expect(await here('w.txt')).toBe('w\n');
  });
});
