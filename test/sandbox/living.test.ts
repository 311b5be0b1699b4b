import { execFileSync } from 'node:child_process';
import { homedir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ensureSampleImage } from '../../scripts/image.mjs';
import type { EnvironmentConfig } from '../../src/protocol/environment.ts';
import { mint } from '../../src/protocol/ids.ts';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import { ProcessGone, type Sandbox, SandboxUnavailable } from '../../src/sandbox/sandbox.ts';
import { describeWith, docker, engineAvailable, osSandboxAvailable } from '../support/engine.ts';
import { eventually } from '../support/eventually.ts';
import { running } from '../support/processes.ts';
import { crashUnder } from './crash.ts';
import { connectTo, testServer } from './mcp-client.ts';
import { makeImages, makeRig, type Rig, SAMPLE, sh, textOf } from './rig.ts';

const engine = await engineAvailable();
const osSandbox = await osSandboxAvailable();
const image = { type: 'image' as const, image: SAMPLE };
const ENV = { PATH: process.env.PATH, HOME: homedir(), SECRET_TOKEN: 'hunter2' };
/** Seconds: what the tests' programs wait for, told apart from what any other process waits for. */
const SECONDS = `471.${process.pid}`;
/** A program that no end of its input ends, nor a polite word, with a child that has left its process group. */
const STUBBORN = `trap "" TERM HUP; setsid sleep ${SECONDS} & echo up; while :; do sleep ${SECONDS}; done`;

/** What holds for a server in whatever sandbox. */
function servers(config: EnvironmentConfig, more?: { env: NodeJS.ProcessEnv }, images?: () => Promise<void>): void {
  let rig: Rig;
  let sandbox: Sandbox;
  /** How many of the processes that a test's program starts are there. */
  const waiting = async () => {
    if (sandbox.kind !== 'container') return running('sleep', SECONDS);
    const count = `n=0; for f in /proc/[0-9]*/cmdline; do case $(tr '\\0' ' ' <$f) in "sleep ${SECONDS} ") n=$((n + 1)) ;; esac; done 2>/dev/null; echo $n`;
    return Number(textOf((await sh(sandbox, count)).stdout));
  };

  beforeAll(async () => {
    await images?.();
    rig = await makeRig(more);
    sandbox = await rig.provider.acquire(rig.owner(config));
  });
  afterAll(async () => {
    await rig.provider.remove(rig.owner(config), 'the test is over');
    await rig.clear();
  });

  it('answers the SDK’s client, in the workspace, with the variables of a command and those it is given', async () => {
    const { client, transport, ask } = await connectTo(sandbox, { ...testServer(), env: { GREETING: 'hé llo' } });
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('environment');
    const seen = JSON.parse(await ask('environment'));
    expect(seen).toMatchObject({ cwd: sandbox.workspace, GREETING: 'hé llo', TERM: 'dumb' });
    expect(JSON.stringify(seen)).not.toContain('hunter2');
    if (sandbox.kind !== 'host') expect(seen.HTTPS_PROXY).toContain(`//${transport.executionId}:`);
    await ask('write', { path: 'made.txt' });
    expect(textOf((await sh(sandbox, 'cat made.txt')).stdout)).toBe('by the server\n');
    // Larger than any buffer on its way.
    expect((await ask('large', { bytes: 3_000_000 })).length).toBe(3_000_000);
    await client.close();
    expect(transport.whyClosed).toMatch(/^The MCP server “tester” was ended/);
  });

  it('ends with all it has started, also what left its process group, however stubborn it is', async () => {
    const { client, ask } = await connectTo(sandbox, testServer('stubborn'));
    await ask('children', { seconds: SECONDS });
    await eventually('its children', 10_000, async () => (await waiting()) === 2);
    await client.close();
    await eventually('their end', 10_000, async () => (await waiting()) === 0);
  });

  it('that ends by itself leaves nothing, and says how it ended', async () => {
    const { client, transport, ask } = await connectTo(sandbox);
    await ask('children', { seconds: SECONDS });
    const closed = new Promise<void>((resolve) => {
      client.onclose = resolve;
    });
    await expect(ask('exit', { code: 3 })).rejects.toThrow(/closed/);
    await closed;
    expect(transport.whyClosed).toMatch(/“tester” ended with exit code 3\. Its last words:\n[\s\S]*exiting as told/);
    await eventually('its children’s end', 10_000, async () => (await waiting()) === 0);
    await expect(ask('environment')).rejects.toThrow();
  });

  it('that can’t be started says why, in its own words', async () => {
    const missing = connectTo(sandbox, { type: 'stdio', name: 'none', command: 'no-such-program' });
    await expect(missing).rejects.toThrow();
    const failing = await sandbox.open({
      executionId: mint.execution(),
      argv: ['sh', '-c', 'echo broken >&2; exit 4'],
    });
    expect(await failing.ended).toEqual({ how: 'exited', exitCode: 4, reason: '' });
    expect(failing.stderr()).toBe('broken\n');
    await expect(failing.during(async () => 1)).rejects.toThrow(ProcessGone);
    const nowhere = await sandbox.open({ executionId: mint.execution(), argv: ['true'], cwd: '/no/such/folder' });
    expect((await nowhere.ended).exitCode).toBe(126);
  });

  it('that a crash left is ended when the sandbox is found again, and so are those of a window that closes', async () => {
    const { owner, id } = await crashUnder(rig, config, STUBBORN, 'session', true);
    const heir = createSandboxProvider(rig.options);
    try {
      const again = await heir.attach(owner, id);
      if (!again) throw new Error('The sandbox is gone.');
      const left = async () => running('sleep', SECONDS);
      await eventually('the end of what was left', 10_000, async () => (await left()) === 0);
      const program = await again.open({ executionId: mint.execution(), argv: ['sh', '-c', STUBBORN] });
      await eventually('another', 10_000, async () => (await left()) === 2);
      await heir.dispose();
      expect(await program.ended).toMatchObject({ how: 'stopped', reason: 'Drover was closed' });
      await eventually('its end', 10_000, async () => (await left()) === 0);
    } finally {
      await rig.provider.remove(owner, 'the test is over');
      await heir.dispose();
    }
  });
}

describeWith(engine, 'a server in a container', () => {
  servers(image, undefined, () => makeImages(ensureSampleImage));

  describe('whose sandbox', () => {
    let rig: Rig;
    beforeEach(async () => {
      rig = await makeRig({ limits: () => ({ living: 0, idleMinutes: 0 }) });
    });
    afterEach(async () => {
      await rig.clear();
    });
    const containerOf = (sandbox: Sandbox) =>
      docker('ps', '--all', '--quiet', '--no-trunc', '--filter', `label=drover.sandbox=${sandbox.id}`);

    it('is killed or removed ends with a clear word, and a fresh sandbox gets a fresh one', async () => {
      for (const [act, why] of [
        [['kill'], 'its container ended with code 137'],
        [['rm', '--force'], 'its container was removed'],
      ] as const) {
        const sandbox = await rig.provider.acquire(rig.owner(image));
        const { client, transport, ask } = await connectTo(sandbox);
        const waits = ask('wait');
        const lost = expect(waits).rejects.toThrow(/closed/);
        await ask('environment');
        docker(...act, containerOf(sandbox));
        await lost;
        expect(transport.whyClosed).toBe(`The MCP server “tester” is gone: ${why}.`);
        await client.close();
        // Whoever needs the sandbox next finds it gone.
        await sh(sandbox, 'true').catch(() => undefined);
      }
      const fresh = await connectTo(await rig.provider.acquire(rig.owner(image)));
      expect(await fresh.ask('environment')).toContain('PATH');
      await fresh.client.close();
    });

    it('nobody uses ends with it, but not while it is asked for something; it can be opened again', async () => {
      let idleMinutes = 0;
      const provider = createSandboxProvider({
        ...rig.options,
        limits: () => ({ living: 0, idleMinutes }),
        idleCheckMs: 50,
      });
      try {
        const sandbox = await provider.acquire(rig.owner(image));
        const { transport, ask, client } = await connectTo(sandbox);
        const waits = ask('wait').catch(() => undefined);
        idleMinutes = 0.0001;
        await sleep(1000);
        expect(transport.whyClosed).toBeUndefined();
        idleMinutes = 0;
        await client.close();
        await waits;
        const next = await connectTo(sandbox);
        await next.ask('environment');
        const closed = new Promise<void>((resolve) => {
          next.client.onclose = resolve;
        });
        idleMinutes = 0.0001;
        await closed;
        expect(next.transport.whyClosed).toMatch(/was ended: its sandbox was stopped because nobody used it\.$/);
        await expect(next.ask('environment')).rejects.toThrow();
        idleMinutes = 0;
        const again = await connectTo(sandbox);
        expect(await again.ask('environment')).toContain('PATH');
        await again.client.close();
      } finally {
        await provider.dispose();
      }
    });

    it('is not guarded any more does nothing, and ends when it is asked', async () => {
      execFileSync('git', ['-C', rig.workspace, 'init', '--quiet']);
      const sandbox = await rig.provider.acquire(rig.owner(image));
      const { transport, ask } = await connectTo(sandbox);
      await ask('environment');
      // Another file in the place of the one that was mounted over.
      execFileSync('git', ['-C', rig.workspace, 'config', 'user.name', 'Somebody Else']);
      await expect(ask('write', { path: '.git/config' })).rejects.toThrow(/sandbox had to be started again/);
      expect(transport.whyClosed).toMatch(/sandbox had to be started again/);
      const again = await connectTo(sandbox);
      await expect(again.ask('write', { path: '.git/config' })).rejects.toThrow();
      expect(execFileSync('git', ['-C', rig.workspace, 'config', 'user.name'], { encoding: 'utf8' })).toBe(
        'Somebody Else\n',
      );
      await again.client.close();
    });

    it('lives for one call can’t be opened', async () => {
      const owner = rig.owner(image);
      const of = { ...owner, environment: { ...owner.environment, lifetime: 'call' as const } };
      const sandbox = await rig.provider.acquire(of);
      const opening = connectTo(sandbox);
      await expect(opening).rejects.toThrow(SandboxUnavailable);
      await expect(opening).rejects.toThrow(/whose sandboxes live for one call/);
      rig.provider.release(of, sandbox.id);
      await rig.provider.remove(of, 'done');
    });
  });
});

describeWith(osSandbox, 'a server in the operating system’s own sandbox', () => {
  servers({ type: 'os' }, { env: ENV });

  it('ends when it is asked and what its mounts covered is another file by now', async () => {
    const rig = await makeRig({ env: ENV });
    try {
      execFileSync('git', ['-C', rig.workspace, 'init', '--quiet']);
      const sandbox = await rig.provider.acquire(rig.owner({ type: 'os' }));
      const { transport, ask } = await connectTo(sandbox);
      await ask('write', { path: 'fine.txt' });
      execFileSync('git', ['-C', rig.workspace, 'config', 'user.name', 'Somebody Else']);
      await expect(ask('write', { path: '.git/config' })).rejects.toThrow(/write-protected has changed/);
      expect(transport.whyClosed).toMatch(/was ended: what is write-protected has changed\.$/);
      const again = await connectTo(sandbox);
      await expect(again.ask('write', { path: '.git/config' })).rejects.toThrow();
      expect(execFileSync('git', ['-C', rig.workspace, 'config', 'user.name']).toString()).toBe('Somebody Else\n');
    } finally {
      await rig.provider.remove(rig.owner({ type: 'os' }), 'the test is over');
      await rig.clear();
    }
  });
});

describe('a server in an environment of type host', () => {
  servers({ type: 'host' }, { env: ENV });
});
