import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ensureTinyImage } from '../../scripts/image.mjs';
import { mint } from '../../src/protocol/ids.ts';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import { type Sandbox, SandboxLost } from '../../src/sandbox/sandbox.ts';
import { describeWith, docker, engineAvailable } from '../support/engine.ts';
import { crashUnder } from './crash.ts';
import { makeImages, makeRig, type Rig, sh, TINY, textOf } from './rig.ts';

const engine = await engineAvailable();
const image = { type: 'image' as const, image: TINY };

describeWith(engine, 'a command in a container', () => {
  let rig: Rig;
  let sandbox: Sandbox;
  const containerId = () =>
    docker('ps', '--all', '--quiet', '--no-trunc', '--filter', `label=drover.sandbox=${sandbox.id}`);
  /** What runs in the container, by command line. */
  const processes = async () => textOf((await sh(sandbox, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')).stdout);

  beforeAll(async () => {
    await makeImages(ensureTinyImage);
    rig = await makeRig();
    sandbox = await rig.provider.acquire(rig.owner(image));
  });
  afterAll(async () => {
    await rig.clear();
  });

  it('keeps output, errors and exit code apart', async () => {
    const result = await sh(sandbox, 'echo out; echo err >&2; exit 7');
    expect(result).toMatchObject({ ended: 'exited', exitCode: 7, cutBytes: 0 });
    expect([textOf(result.stdout), textOf(result.stderr)]).toEqual(['out\n', 'err\n']);
    expect(result.durationMs).toBeLessThan(2000);
  });

  it('passes arguments as they are, input, environment and working directory', async () => {
    const result = await sandbox.run({
      executionId: mint.execution(),
      argv: ['sh', '-c', 'printf "%s|" "$@"; cat; echo "$GREETING"; pwd', 'sh', 'a b', '$(x)', "'", '*', ''],
      stdin: new TextEncoder().encode('from stdin\n'),
      env: { GREETING: 'hé llo', 'with-dash': "it's" },
      cwd: '/tmp',
      timeoutMs: 10_000,
      signal: new AbortController().signal,
    });
    expect(textOf(result.stdout)).toBe("a b|$(x)|'|*||from stdin\nhé llo\n/tmp\n");
    const odd = await sh(sandbox, 'env', { env: { 'with-dash': "it's", UID: '7' } });
    expect(textOf(odd.stdout)).toMatch(/^with-dash=it's$/m);
  });

  it('runs a script of ours with its arguments and variables in a shell that is there already', async () => {
    const argv = ['sh', '-c', 'echo "$GREETING $1 $#"; cat; exit 4', 'name', 'a b', ''];
    const more = { argv, inShell: true, env: { GREETING: 'hello' }, stdin: new TextEncoder().encode('given') };
    const result = await sh(sandbox, '', more);
    expect([textOf(result.stdout), result.exitCode]).toEqual(['hello a b 2\ngiven', 4]);
    expect(textOf((await sh(sandbox, 'echo "[$GREETING]"')).stdout)).toBe('[]\n');
  });

  it('has an empty standard input and no terminal', async () => {
    const result = await sh(sandbox, 'read x || echo empty; [ -t 0 ] || [ -t 1 ] || echo no terminal');
    expect(textOf(result.stdout)).toBe('empty\nno terminal\n');
  });

  it('reports a signal as 128 + n, a missing program as 127, a missing folder as 126', async () => {
    expect((await sh(sandbox, 'kill -KILL $$')).exitCode).toBe(137);
    const missing = { argv: ['no-such-program'] };
    expect((await sh(sandbox, '', missing)).exitCode).toBe(127);
    expect((await sh(sandbox, 'true', { cwd: '/no/such/folder' })).exitCode).toBe(126);
  });

  it('streams output while the command runs', async () => {
    const seen: { text: string; at: number }[] = [];
    const from = performance.now();
    await sh(sandbox, 'echo one; sleep 1; echo two', {
      onOutput: (chunk) => seen.push({ text: textOf(chunk), at: performance.now() - from }),
    });
    expect(seen.map((piece) => piece.text).join('')).toBe('one\ntwo\n');
    expect(seen[0]?.at).toBeLessThan(800);
  });

  it('ends when the command ends, though it left a server in the background', async () => {
    const result = await sh(sandbox, 'sleep 300 & echo $! >/tmp/server.pid; echo started');
    expect(textOf(result.stdout)).toBe('started\n');
    expect(await processes()).toContain('sleep 300');
    await sh(sandbox, 'kill $(cat /tmp/server.pid)');
  });

  it('says lost of a command that kills whoever waits for it, with what it printed, and goes on', async () => {
    const result = await sh(sandbox, 'echo before; kill -KILL $PPID; sleep 0.3; echo after');
    expect(result).toMatchObject({ ended: 'lost', exitCode: null });
    expect(textOf(result.stdout)).toBe('before\nafter\n');
    expect((await sh(sandbox, 'true')).exitCode).toBe(0);
  });

  it('kills the whole process group on timeout, stubborn grandchildren too', async () => {
    const result = await sh(sandbox, '(trap "" TERM; sleep 301; sleep 302) & sleep 303', { timeoutMs: 500 });
    expect(result).toMatchObject({ ended: 'timed_out', exitCode: null });
    await sleep(300);
    expect(await processes()).not.toMatch(/sleep 30[123]/);
  });

  it('keeps what was printed before a timeout', async () => {
    const result = await sh(sandbox, 'echo before; sleep 304', { timeoutMs: 500 });
    expect(textOf(result.stdout)).toBe('before\n');
  });

  it('kills the whole process group on abort', async () => {
    const controller = new AbortController();
    const running = sh(sandbox, 'echo go; (sleep 305 &) ; sleep 306', {
      signal: controller.signal,
      onOutput: () => controller.abort(),
    });
    expect(await running).toMatchObject({ ended: 'cancelled', exitCode: null });
    await sleep(300);
    expect(await processes()).not.toMatch(/sleep 30[56]/);
  });

  it('does not even start what was aborted before', async () => {
    const executionId = mint.execution();
    const result = await sh(sandbox, 'touch started', { executionId, signal: AbortSignal.abort() });
    expect(result.ended).toBe('cancelled');
    expect(await sandbox.lookup(executionId)).toEqual({ found: 'absent' });
  });

  it('keeps head and tail of 50 MB of output, and counts the rest', async () => {
    const before = process.memoryUsage().rss;
    const result = await sh(sandbox, 'echo first; yes 0123456789 | head -c 50000000; echo; echo last', {
      maxBytes: 64 * 1024,
    });
    expect(result.exitCode).toBe(0);
    const text = textOf(result.stdout);
    expect(text.startsWith('first\n')).toBe(true);
    expect(text.endsWith('last\n')).toBe(true);
    expect(result.stdout.byteLength).toBeLessThanOrEqual(64 * 1024);
    expect(result.stdout.byteLength + result.cutBytes).toBe(50_000_000 + 'first\n'.length + '\nlast\n'.length);
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
  });

  it('gives binary output back byte for byte', async () => {
    const bytes = new Uint8Array(100_000).map((_, i) => (i * 7919) % 256);
    const result = await sh(sandbox, 'cat', { stdin: bytes });
    expect(Buffer.compare(result.stdout, bytes)).toBe(0);
  });

  it('takes a megabyte of standard input', async () => {
    const result = await sh(sandbox, 'wc -c', { stdin: new Uint8Array(1_000_000) });
    expect(textOf(result.stdout).trim()).toBe('1000000');
  });

  it('runs many commands at once', async () => {
    const results = await Promise.all(Array.from({ length: 12 }, (_, i) => sh(sandbox, `echo ${i}; sleep 0.2`)));
    expect(results.map((result) => textOf(result.stdout))).toEqual(Array.from({ length: 12 }, (_, i) => `${i}\n`));
  });

  it('finds a finished command by its execution id, and no other', async () => {
    const executionId = mint.execution();
    await sh(sandbox, 'echo kept; exit 5', { executionId });
    const found = await sandbox.lookup(executionId);
    expect(found).toMatchObject({ found: 'finished', result: { ended: 'exited', exitCode: 5 } });
    expect(found.found === 'finished' && textOf(found.result.stdout)).toBe('kept\n');
    expect(await sandbox.lookup(mint.execution())).toEqual({ found: 'absent' });
  });

  it('attaches to a running command and brings all of its output', async () => {
    const executionId = mint.execution();
    const first = sh(sandbox, 'echo one; sleep 1; echo two', { executionId });
    await sleep(400);
    const found = await sandbox.lookup(executionId);
    if (found.found !== 'running') throw new Error(`found it ${found.found}`);
    const attached = await found.wait(new AbortController().signal);
    expect(textOf(attached.stdout)).toBe('one\ntwo\n');
    expect(textOf((await first).stdout)).toBe('one\ntwo\n');
  });

  it('goes on when this process is killed, and a new one gets the true result', { timeout: 60_000 }, async () => {
    const { owner, id, executionId } = await crashUnder(
      rig,
      image,
      'echo begun; sleep 3; echo done >proof.txt; echo ended; exit 9',
    );
    const provider = createSandboxProvider(rig.options);
    const again = await provider.attach(owner, id);
    const found = await again?.lookup(executionId);
    if (found?.found !== 'running') throw new Error(`found it ${found?.found}`);
    const result = await found.wait(new AbortController().signal);
    expect(result).toMatchObject({ ended: 'exited', exitCode: 9 });
    expect(textOf(result.stdout)).toBe('begun\nended\n');
    const later = await again?.lookup(executionId);
    expect(later).toMatchObject({ found: 'finished', result: { exitCode: 9 } });
    expect(textOf((await sh(sandbox, 'cat proof.txt')).stdout)).toBe('done\n');
    await provider.remove(owner, 'done');
  });

  it('enforces a timeout though the process that asked for it is dead', { timeout: 60_000 }, async () => {
    const executionId = mint.execution();
    const controller = new AbortController();
    // Nobody listens any more: only the runner inside is left to end it.
    void sh(sandbox, 'sleep 307', { executionId, timeoutMs: 4000, signal: controller.signal }).catch(() => {});
    await sleep(500);
    const other = await createSandboxProvider(rig.options).attach(rig.owner(image), sandbox.id);
    const found = await other?.lookup(executionId);
    if (found?.found !== 'running') throw new Error(`found it ${found?.found}`);
    expect(await found.wait(new AbortController().signal)).toMatchObject({ ended: 'timed_out', exitCode: null });
  });

  it('throws SandboxLost under a command whose container is killed or removed', async () => {
    for (const end of [
      ['kill', 'its container ended with code 137'],
      ['rm --force', 'its container was removed'],
    ] as const) {
      const owner = { ...rig.owner(image), session: mint.session() };
      const victim = await rig.provider.acquire(owner);
      const id = docker('ps', '--quiet', '--no-trunc', '--filter', `label=drover.sandbox=${victim.id}`);
      const running = sh(victim, 'echo go; sleep 308', {
        onOutput: () => docker(...end[0].split(' '), id),
      });
      await expect(running).rejects.toThrow(SandboxLost);
      await expect(sh(victim, 'true')).rejects.toThrow(end[1]);
    }
    expect(containerId()).not.toBe('');
  });
});
