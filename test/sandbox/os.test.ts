import { execFileSync } from 'node:child_process';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { mint } from '../../src/protocol/ids.ts';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { describeWith, osSandboxAvailable } from '../support/engine.ts';
import { attacks } from './attacks.ts';
import { crashUnder } from './crash.ts';
import { makeRig, type Rig, sh, textOf, types } from './rig.ts';
import { toolSuite } from './tool-suite.ts';

const available = await osSandboxAvailable();

describeWith(available, 'the operating system’s own sandbox', () => {
  let rig: Rig;
  let sandbox: Sandbox;
  beforeAll(async () => {
    rig = await makeRig({ env: { PATH: process.env.PATH, HOME: homedir(), SECRET_TOKEN: 'hunter2' } });
    sandbox = await rig.provider.acquire(rig.owner({ type: 'os' }));
  });
  afterAll(async () => {
    await rig?.clear();
  });

  it('is provisioned on demand and logged', () => {
    expect(types(rig.events).slice(0, 2)).toEqual(['drover.sandbox_provisioning', 'drover.sandbox_ready']);
    expect(rig.events[1]).toMatchObject({ kind: 'os', sandbox_id: sandbox.id });
  });

  it('writes to the workspace and nowhere else', async () => {
    const away = join(rig.cache, 'away.txt');
    const result = await sh(sandbox, `echo in >in.txt; echo out >${away}; echo out >~/drover-test-out.txt`);
    expect(await readFile(join(rig.workspace, 'in.txt'), 'utf8')).toBe('in\n');
    expect(textOf(result.stderr).match(/Read-only file system|Permission denied/g)).toHaveLength(2);
    expect(await readdir(rig.cache)).not.toContain('away.txt');
    expect(await readdir(homedir())).not.toContain('drover-test-out.txt');
  });

  it('write-protects what the host would run, whether it is there yet or not', async () => {
    execFileSync('git', ['-C', rig.workspace, 'init', '--quiet']);
    for (const path of ['.vscode/tasks.json', '.devcontainer/devcontainer.json', '.devcontainer.json'])
      expect([path, await attacks(sandbox, path)]).toEqual([path, '']);
    for (const path of ['.git/config', '.git/hooks/pre-commit'])
      expect([path, await attacks(sandbox, path)]).toEqual([path, '']);
  });

  it('can’t reach what says whose it is', async () => {
    const notes = join(rig.cache, 'os');
    const result = await sh(sandbox, `echo forged >${notes}/${sandbox.id}.json; echo forged >${notes}/other.json`);
    expect(textOf(result.stderr).match(/Read-only file system|Permission denied/g)).toHaveLength(2);
  });

  it('passes no secret of the environment on', async () => {
    expect(textOf((await sh(sandbox, 'env')).stdout)).not.toContain('hunter2');
  });

  it('reaches no server on this machine', async () => {
    const server = createServer((_, response) => response.end('reached'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const address = server.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      const ask = `exec 3<>/dev/tcp/127.0.0.1/${port} && echo connected`;
      const result = await sh(sandbox, '', { argv: ['bash', '-c', ask] });
      expect(textOf(result.stdout)).not.toContain('connected');
    } finally {
      server.close();
    }
  });

  it('can neither read nor write the sessions’ logs', async () => {
    await rig.put('.drover/sessions/log.jsonl', 'truth\n');
    const result = await sh(sandbox, 'cat .drover/sessions/log.jsonl; echo forged >.drover/sessions/log.jsonl');
    expect(textOf(result.stdout)).not.toContain('truth');
    expect(await readFile(join(rig.workspace, '.drover/sessions/log.jsonl'), 'utf8')).toBe('truth\n');
    await rm(join(rig.workspace, '.drover'), { recursive: true });
  });

  it('finds a finished command again, from another provider too', async () => {
    const executionId = mint.execution();
    await sh(sandbox, 'echo kept; exit 3', { executionId });
    const again = await createSandboxProvider(rig.options).attach(rig.owner({ type: 'os' }), sandbox.id);
    expect(await again?.lookup(executionId)).toMatchObject({ found: 'finished', result: { exitCode: 3 } });
    expect(await again?.lookup(mint.execution())).toEqual({ found: 'absent' });
  });

  it('attaches to a running command', async () => {
    const executionId = mint.execution();
    const first = sh(sandbox, 'echo one; sleep 0.5; echo two', { executionId });
    const found = await sandbox.lookup(executionId);
    if (found.found !== 'running') throw new Error(`found it ${found.found}`);
    expect(textOf((await found.wait(new AbortController().signal)).stdout)).toBe('one\ntwo\n');
    await first;
  });

  it('lets a command go on when this process is killed, and gives a new one the true result', async () => {
    const command = 'echo begun; sleep 2; echo ended; exit 9';
    const { owner, id, executionId } = await crashUnder(rig, { type: 'os' }, command);
    const again = await createSandboxProvider(rig.options).attach(owner, id);
    const found = await again?.lookup(executionId);
    if (found?.found !== 'running') throw new Error(`found it ${found?.found}`);
    const result = await found.wait(new AbortController().signal);
    expect(result).toMatchObject({ ended: 'exited', exitCode: 9 });
    expect(textOf(result.stdout)).toBe('begun\nended\n');
    expect(await again?.lookup(executionId)).toMatchObject({ found: 'finished', result: { exitCode: 9 } });
  });

  it('ends what a crash left running when the session is reaped', async () => {
    const command = 'echo begun; sleep 3; echo alive >still-alive.txt';
    const relays = process.platform === 'linux' ? [`${process.pid}.json`] : [];
    const { owner, id } = await crashUnder(rig, { type: 'os' }, command);
    const kept = new Set([rig.owner({ type: 'os' }).session]);
    expect(await createSandboxProvider(rig.options).reap(rig.workspace, kept)).toBeGreaterThan(0);
    await sleep(3500);
    expect(await readdir(rig.workspace)).not.toContain('still-alive.txt');
    // Of the crashed process's relay nothing is left; this process's own stays.
    expect(await readdir(join(rig.cache, 'os-bridges'))).toEqual(relays);
    expect(await createSandboxProvider(rig.options).attach(owner, id)).toBeNull();
  });

  it('reaps the folders of sessions that are not kept', async () => {
    const owner = { ...rig.owner({ type: 'os' }), session: mint.session() };
    await rig.provider.acquire(owner);
    const kept = new Set([rig.owner({ type: 'os' }).session]);
    await writeFile(join(rig.cache, 'os', 'stray'), 'not ours');
    expect(await createSandboxProvider(rig.options).reap(rig.workspace, kept)).toBe(1);
    expect((await sh(sandbox, 'true')).exitCode).toBe(0);
  });

  toolSuite(() => ({ rig, sandbox }));
});
