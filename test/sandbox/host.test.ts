import { mkdir, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mint } from '../../src/protocol/ids.ts';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import { eventually } from '../support/eventually.ts';
import { makeFolder } from '../support/temp.ts';
import { makeRig, type Rig, sh, textOf, types } from './rig.ts';

const host = { type: 'host' as const };

describe('an environment of type host', () => {
  let rig: Rig;
  beforeEach(async () => {
    rig = await makeRig({ env: { PATH: process.env.PATH ?? '', SECRET_TOKEN: 'hunter2' } });
  });
  afterEach(async () => {
    await rig.provider.remove(rig.owner(host), 'the test is over');
    await rig.clear();
  });

  it('runs on this machine, in the workspace folder, and says in the log that nothing holds it', async () => {
    const sandbox = await rig.provider.acquire(rig.owner(host));
    const result = await sh(sandbox, 'pwd; echo here >here.txt; echo "$SECRET_TOKEN$TERM"; cat', {
      stdin: new TextEncoder().encode('given\n'),
    });
    expect(textOf(result.stdout)).toBe(`${sandbox.workspace}\ndumb\ngiven\n`);
    expect(await readFile(join(rig.workspace, 'here.txt'), 'utf8')).toBe('here\n');
    expect(rig.events[1]).toMatchObject({ kind: 'host', detail: 'this machine, without a sandbox' });
    expect((await sh(sandbox, 'exit 3')).exitCode).toBe(3);
  });

  it('ends a whole command at its timeout and when it is cancelled', async () => {
    const sandbox = await rig.provider.acquire(rig.owner(host));
    const timed = await sh(sandbox, 'sleep 31.7 & sleep 31.7', { timeoutMs: 400 });
    expect(timed.ended).toBe('timed_out');
    const cancel = new AbortController();
    const running = sh(sandbox, 'echo begun >begun.txt; sleep 31.7 & sleep 31.7', { signal: cancel.signal });
    await eventually('the command', 5_000, async () => (await readdir(rig.workspace)).includes('begun.txt'));
    cancel.abort();
    expect((await running).ended).toBe('cancelled');
    expect(textOf((await sh(sandbox, 'ps -A -o args | grep -c "^sleep 31[.]7"')).stdout)).toBe('0\n');
  });

  it('finds a command again that its harness did not see end, and its result', async () => {
    const sandbox = await rig.provider.acquire(rig.owner(host));
    const [ended, running] = [mint.execution(), mint.execution()];
    await sh(sandbox, 'echo once', { executionId: ended });
    let heard = '';
    const first = sh(sandbox, 'echo begun; sleep 5; echo done', {
      executionId: running,
      onOutput: (chunk) => {
        heard += textOf(chunk);
      },
    });
    // One who looks for it before it has begun decides that it never will.
    await eventually('the command', 10_000, () => heard !== '');
    const heir = createSandboxProvider(rig.options);
    const again = await heir.attach(rig.owner(host), sandbox.id);
    const found = await again?.lookup(ended);
    expect(found?.found === 'finished' && textOf(found.result.stdout)).toBe('once\n');
    const still = await again?.lookup(running);
    const result = still?.found === 'running' ? await still.wait(AbortSignal.timeout(10_000)) : undefined;
    expect(result && textOf(result.stdout)).toBe('begun\ndone\n');
    expect((await again?.lookup(mint.execution()))?.found).toBe('absent');
    await first;
    await heir.dispose();
  });

  it('ends what still runs when it is removed', async () => {
    const sandbox = await rig.provider.acquire(rig.owner(host));
    const running = sh(sandbox, 'echo begun >begun.txt; sleep 32.9', { timeoutMs: 60_000 });
    running.catch(() => undefined);
    await eventually('the command', 5_000, async () => (await readdir(rig.workspace)).includes('begun.txt'));
    await rig.provider.remove(rig.owner(host), 'archived');
    await running.catch(() => undefined);
    const other = await rig.provider.acquire(rig.owner(host));
    expect(other.id).not.toBe(sandbox.id);
    expect(textOf((await sh(other, 'ps -A -o args | grep -c "^sleep 32[.]9"')).stdout)).toBe('0\n');
  });
});

describe('an environment without a sandbox that could hold it', () => {
  it('runs nothing: the sandbox of the operating system fails closed where its program is missing', async () => {
    const rig = await makeRig({ env: { PATH: process.env.PATH ?? '' } });
    const programs = await makeFolder('drover-path-');
    const path = process.env.PATH;
    try {
      // All programs but the one that makes the sandbox.
      await mkdir(programs, { recursive: true });
      for (const folder of (path ?? '').split(':')) {
        for (const name of await readdir(folder).catch(() => [])) {
          if (name !== 'bwrap') await symlink(join(folder, name), join(programs, name)).catch(() => undefined);
        }
      }
      process.env.PATH = programs;
      const failing = rig.provider.acquire(rig.owner({ type: 'os' }));
      await expect(failing).rejects.toThrow(
        /operating system's sandbox can't start \(.*bubblewrap.*install bubblewrap/,
      );
      expect(types(rig.events)).toEqual(['drover.sandbox_provisioning', 'drover.sandbox_failed']);
      expect(await readdir(rig.workspace)).toEqual([]);
    } finally {
      process.env.PATH = path;
      await rig.clear();
      await rm(programs, { recursive: true, force: true });
    }
  });
});
