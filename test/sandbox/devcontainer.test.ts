import { chmod, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ensureSampleImage, ensureTinyImage } from '../../scripts/image.mjs';
import { configurations } from '../../src/sandbox/docker/devcontainer-config.ts';
import { describeWith, docker, engineAvailable } from '../support/engine.ts';
import { connectTo } from './mcp-client.ts';
import { makeImages, makeRig, type Rig, SAMPLE, sh, TINY, textOf } from './rig.ts';

const engine = await engineAvailable();
const devcontainer = { type: 'devcontainer' as const };
const FILE = '.devcontainer/devcontainer.json';

describeWith(engine, 'a devcontainer', () => {
  let rig: Rig;
  const put = (config: Record<string, unknown>, file = FILE) => rig.put(file, JSON.stringify(config));
  const left = () => docker('ps', '--all', '--quiet', '--filter', `label=drover.workspace=${rig.workspace}`);

  beforeAll(async () => {
    await makeImages(ensureTinyImage, ensureSampleImage);
  });
  beforeEach(async () => {
    rig = await makeRig();
  });
  afterEach(async () => {
    await rig.clear();
  });

  it('runs all of its lifecycle commands in order, fills in variables, and has its mounts', async () => {
    await mkdir(join(rig.workspace, 'data'));
    await put({
      image: TINY,
      onCreateCommand: 'echo onCreate >>order.txt',
      updateContentCommand: ['sh', '-c', 'echo updateContent >>order.txt'],
      postCreateCommand: { one: 'echo postCreate >>order.txt' },
      postStartCommand: 'echo postStart >>order.txt',
      postAttachCommand: 'echo postAttach >>order.txt',
      containerEnv: { WHERE: `\${containerWorkspaceFolder}`, BASE: `\${localWorkspaceFolderBasename}` },
      remoteEnv: { MINE: `\${containerEnv:WHERE}/x` },
      mounts: [
        `source=\${localWorkspaceFolder}/data,target=/data,type=bind`,
        { type: 'volume', source: `drover-test-\${devcontainerId}`, target: '/vol' },
      ],
    });
    const sandbox = await rig.provider.acquire(rig.owner(devcontainer));
    const line = 'cat order.txt; echo "$WHERE $BASE $MINE"; echo d >/data/d.txt; [ -d /vol ] && cat data/d.txt';
    const base = rig.workspace.split('/').at(-1);
    const where = `/workspaces/${base}`;
    expect(textOf((await sh(sandbox, line)).stdout)).toBe(
      `onCreate\nupdateContent\npostCreate\npostStart\npostAttach\n${where} ${base} ${where}/x\nd\n`,
    );
    const volume = docker('volume', 'ls', '--quiet', '--filter', 'name=drover-test-').split('\n').filter(Boolean);
    await rig.provider.remove(rig.owner(devcontainer), 'done');
    if (volume.length > 0) docker('volume', 'rm', '--force', ...volume);
  });

  it('runs a server as its user, in its folder, with its variables', async () => {
    await chmod(rig.workspace, 0o777);
    await put({ image: SAMPLE, remoteUser: 'dev', remoteEnv: { SHADE: 'dark' }, workspaceFolder: '/code' });
    const { client, ask } = await connectTo(await rig.provider.acquire(rig.owner(devcontainer)));
    const seen = JSON.parse(await ask('environment'));
    expect(seen).toMatchObject({ SHADE: 'dark', cwd: '/code', user: 1000 });
    await ask('write', { path: 'made.txt' });
    expect(await readFile(join(rig.workspace, 'made.txt'), 'utf8')).toBe('by the server\n');
    await client.close();
  });

  it('has in every command what the start files of its user’s shell set, but for what is fixed', async () => {
    const files = [
      'echo said at login',
      'export FROM_LOGIN="two words" MINE=theirs HTTPS_PROXY=http://evil.test:1 PAGER=less',
      'export MULTI="a\nb"; PATH=/opt/mine:/usr/bin:/bin',
    ];
    const config = {
      image: TINY,
      containerEnv: { GIVEN: 'yes' },
      remoteEnv: { MINE: 'ours' },
      onCreateCommand: `printf '%s\\n' ${files.map((line) => `'${line}'`).join(' ')} >"$HOME/.profile"; cp "$HOME/.profile" "$HOME/.bash_profile"`,
    };
    await put(config);
    const line =
      'echo "$FROM_LOGIN,$MINE,$GIVEN,$PAGER,$PATH"; printf "%s\n" "$MULTI"; echo "$HTTPS_PROXY" | grep -c evil';
    const seen = textOf((await sh(await rig.provider.acquire(rig.owner(devcontainer)), line)).stdout);
    expect(seen).toMatch(/^two words,ours,yes,cat,\S*\/opt\/mine:\S*\na\nb\n0\n$/);
    // What the image has in its PATH stays in it.
    expect(seen).toContain('/usr/local/bin');
    await rig.provider.remove(rig.owner(devcontainer), 'done');

    await put({ ...config, userEnvProbe: 'none' });
    const without = await sh(await rig.provider.acquire(rig.owner(devcontainer)), 'echo "$FROM_LOGIN,$MINE"');
    expect(textOf(without.stdout)).toBe(',ours\n');
  });

  it('goes without start files that do not come to their end, and says so', async () => {
    await put({
      image: TINY,
      onCreateCommand: 'echo "export EARLY=1; exit 3" | tee "$HOME/.profile" >"$HOME/.bash_profile"',
    });
    const sandbox = await rig.provider.acquire(rig.owner(devcontainer));
    expect(textOf((await sh(sandbox, 'echo "[$EARLY]"')).stdout)).toBe('[]\n');
    expect(rig.progress.join('\n')).toMatch(/start files of the shell inside .* "userEnvProbe" to "none"/);
  });

  it('gets the features that are in its folder', async () => {
    const feature = '.devcontainer/hello';
    await rig.put(
      `${feature}/devcontainer-feature.json`,
      JSON.stringify({ id: 'hello', version: '1.0.0', name: 'Hello', containerEnv: { FROM_FEATURE: 'yes' } }),
    );
    await rig.put(`${feature}/install.sh`, '#!/bin/sh\nset -e\necho "hello $WHOM" >/usr/local/hello.txt\n');
    await chmod(join(rig.workspace, feature, 'install.sh'), 0o755);
    await put({ image: SAMPLE, features: { './hello': { whom: 'you' } } });
    const sandbox = await rig.provider.acquire(rig.owner(devcontainer));
    const result = await sh(sandbox, 'cat /usr/local/hello.txt; echo $FROM_FEATURE');
    expect(textOf(result.stdout)).toBe('hello you\nyes\n');
  });

  it.each([
    ['building the image', { build: { dockerfile: 'Dockerfile' } }, /step-that-fails/],
    ['building the image', { image: TINY, features: { './broken': {} } }, /feature-that-fails/],
    ['running onCreateCommand', { image: TINY, onCreateCommand: 'echo last words; exit 3' }, /last words/],
    ['running postStartCommand', { image: TINY, postStartCommand: 'echo last words; exit 3' }, /last words/],
  ])('that fails while %s says so, with the last lines', async (phase, config, words) => {
    await rig.put('.devcontainer/Dockerfile', `FROM ${TINY}\nRUN echo step-that-fails && false\n`);
    await rig.put(
      '.devcontainer/broken/devcontainer-feature.json',
      '{ "id": "broken", "version": "1.0.0", "name": "B" }',
    );
    await rig.put('.devcontainer/broken/install.sh', '#!/bin/sh\necho feature-that-fails\nexit 3\n');
    await put(config);
    const failing = rig.provider.acquire(rig.owner(devcontainer));
    await expect(failing).rejects.toThrow(`it failed while ${phase}`);
    await expect(failing).rejects.toThrow(words);
    expect(left()).toBe('');
    // A step of a build that failed stands in a container without a name or label.
    const steps = rig.progress.flatMap((line) => /Running in ([0-9a-f]{12})/.exec(line)?.[1] ?? []);
    const there = docker('ps', '--all', '--format', '{{.ID}}').split('\n');
    expect(steps.filter((id) => there.includes(id))).toEqual([]);
    const told = rig.events.filter(({ type }) => type === 'drover.sandbox_progress');
    expect(JSON.stringify(told)).toMatch(words);
  });

  it('is chosen by its path where the folder has several', async () => {
    await put({ name: 'One', image: TINY, containerEnv: { WHICH: 'one' } }, '.devcontainer/one/devcontainer.json');
    await put({ name: 'Two', image: TINY, containerEnv: { WHICH: 'two' } }, '.devcontainer/two/devcontainer.json');
    expect(configurations(rig.workspace)).toEqual([
      '.devcontainer/one/devcontainer.json',
      '.devcontainer/two/devcontainer.json',
    ]);
    await expect(rig.provider.acquire(rig.owner(devcontainer))).rejects.toThrow(/2 devcontainer\.json files/);
    const path = '.devcontainer/two/devcontainer.json';
    const sandbox = await rig.provider.acquire(rig.owner({ ...devcontainer, path }));
    expect(textOf((await sh(sandbox, 'echo $WHICH')).stdout)).toBe('two\n');
    await put({ image: TINY });
    expect(configurations(rig.workspace)).toEqual([]);
  });

  it('lives on when its image is gone, and the next one says that it is', async () => {
    const name = `drover-gone-${Date.now()}:latest`;
    docker('tag', TINY, name);
    const image = { type: 'image' as const, image: `localhost:1/x/${name}` };
    docker('tag', TINY, image.image);
    const sandbox = await rig.provider.acquire(rig.owner(image));
    docker('rmi', name, image.image);
    expect((await sh(sandbox, 'true')).exitCode).toBe(0);
    await rig.provider.remove(rig.owner(image), 'done');
    await expect(rig.provider.acquire(rig.owner(image))).rejects.toThrow(
      /is not on this machine and could not be pulled/,
    );
    expect(left()).toBe('');
  });
});
