import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureSampleImage, ensureSearchImage, ensureTinyImage } from '../../scripts/image.mjs';
import { mint } from '../../src/protocol/ids.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { describeWith, docker, engineAvailable } from '../support/engine.ts';
import { makeImages, makeRig, type Rig, SAMPLE, SEARCH, TINY } from './rig.ts';
import { canMakeShellImage, makeShellImage } from './shell-image.ts';
import { call, contextFor, said, toolbox } from './tool-rig.ts';
import { toolSuite } from './tool-suite.ts';

const engine = await engineAvailable();

function suiteOn(image: string): void {
  let rig: Rig;
  let sandbox: Sandbox;
  beforeAll(async () => {
    rig = await makeRig();
    sandbox = await rig.provider.acquire(rig.owner({ type: 'image', image }));
  });
  afterAll(async () => {
    await rig?.clear();
  });
  toolSuite(() => ({ rig, sandbox }));
}

describeWith(engine, 'tools in a container that has only bash and coreutils', () => {
  beforeAll(async () => {
    await makeImages(ensureTinyImage);
  });
  suiteOn(TINY);
});

const ripgrep = spawnSync('sh', ['-c', 'command -v rg'], { encoding: 'utf8' }).stdout.trim();

describe.skipIf(!engine.ok || !ripgrep)('tools in a container that has ripgrep', () => {
  beforeAll(async () => {
    await makeImages(ensureSearchImage);
  });
  suiteOn(SEARCH);
});

describe.skipIf(!engine.ok || !canMakeShellImage('busybox'))('tools in a container that has only busybox', () => {
  const image = `drover-busybox-test-${process.pid}:latest`;
  let remove: (() => void) | undefined;
  beforeAll(async () => {
    remove = await makeShellImage('busybox', image);
  });
  afterAll(() => remove?.());
  suiteOn(image);
});

describeWith(engine, 'tools and a sandbox that goes away', () => {
  let rig: Rig;
  beforeAll(async () => {
    await makeImages(ensureSampleImage);
    rig = await makeRig();
  });
  afterAll(async () => {
    await rig?.clear();
  });

  it('answers lost in words when the container dies under a call, and the next call gets a fresh one', async () => {
    const owner = rig.owner({ type: 'image', image: SAMPLE });
    const context = () => contextFor(() => rig.provider.acquire(owner), { onOutput: kill });
    let killed = false;
    function kill(): void {
      if (killed) return;
      killed = true;
      docker('kill', docker('ps', '--quiet', '--filter', `label=drover.session=${owner.session}`));
    }
    const outcome = await toolbox.execute('bash', { command: 'echo go; sleep 402' }, context());
    expect(outcome.kind).toBe('lost');
    expect(said(outcome)).toMatch(/was lost .*may or may not have happened/);
    const next = await toolbox.execute('bash', { command: 'echo back' }, context());
    expect(said(next)).toBe('back\n[Exit code 0.]');
    const edited = rig.events.map((event) => event.type);
    expect(edited).toContain('drover.sandbox_lost');
  });

  it('answers failed with the reason when no sandbox can be had', async () => {
    const deaf = await makeRig({ env: { DOCKER_HOST: 'unix:///nowhere/docker.sock' } });
    try {
      const owner = deaf.owner({ type: 'image', image: TINY });
      const outcome = await toolbox.execute(
        'read',
        { file_path: 'x' },
        contextFor(() => deaf.provider.acquire(owner)),
      );
      expect(outcome.kind).toBe('failed');
      expect(said(outcome)).toMatch(/No container engine answers/);
    } finally {
      await deaf.clear();
    }
  });

  it('has node, git and a user’s usual tools in the sample’s image', async () => {
    const sandbox = await rig.provider.acquire(rig.owner({ type: 'image', image: SAMPLE }));
    const commands = 'node --version; git --version; git init -q r && cd r && git status --short && git log; true';
    const outcome = await call(sandbox, 'bash', { command: commands }, { thread: mint.thread() });
    expect(said(outcome)).toMatch(/^v24\.\d+\.\d+\ngit version 2/);
  });
});
