import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Docker from 'dockerode';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ensureTinyImage } from '../../scripts/image.mjs';
import { mint } from '../../src/protocol/ids.ts';
import type { ContainerSandbox } from '../../src/sandbox/docker/container-sandbox.ts';
import { SandboxLost } from '../../src/sandbox/sandbox.ts';
import { describeWith, engineAvailable } from '../support/engine.ts';
import { eventually } from '../support/eventually.ts';
import { makeFolder } from '../support/temp.ts';
import { type OwnContainer, ownContainer } from './own-container.ts';
import { relayTo } from './relay.ts';
import { makeImages, sh, TINY, textOf } from './rig.ts';
import { canMakeShellImage, makeShellImage } from './shell-image.ts';

const engine = await engineAvailable();
const MiB = 1024 * 1024;

/** The command lines of what runs in the container, and what state it is in. */
async function processes({ container }: OwnContainer): Promise<{ state: string; command: string }[]> {
  const { Processes } = await container.top({ ps_args: '-eo pid,stat,args' });
  return Processes.map(([, state = '', command = '']: string[]) => ({ state, command }));
}

/** Ends the processes of which this `sh` test is true; `$p` is their number and `$line` their command line. */
const killWhere = (which: string): string =>
  `for f in /proc/[0-9]*; do p=\${f#/proc/}; line=$(tr '\\0' ' ' <$f/cmdline); [ "$p" != 1 ] && [ "$p" != $$ ] && ${which} && kill -KILL $p; done 2>/dev/null; true`;

/** The first process of an exec is nobody's child inside. */
const RUNNER = `case $line in *serve*) read -r a b c parent d <$f/stat && [ $parent = 0 ] ;; *) false ;; esac`;
const READY = `case $line in *serve*) read -r a b c parent d <$f/stat && [ $parent != 0 ] ;; *) false ;; esac`;
const NOT_THE_CONTAINER = `case $line in *36''00*) false ;; *) true ;; esac`;

let own: OwnContainer | undefined;
afterEach(async () => {
  await own?.remove();
  own = undefined;
});

/** What holds whatever the shell inside is. */
function faultsWith(image: () => string): void {
  const start = async (host?: Docker.ContainerCreateOptions['HostConfig']): Promise<OwnContainer> => {
    own = await ownContainer(image(), host);
    return own;
  };
  const works = async (sandbox: ContainerSandbox) =>
    expect(textOf((await sh(sandbox, 'echo works')).stdout)).toBe('works\n');

  it('a call whose runner is killed is taken up over a fresh one, its output whole and told once', async () => {
    const { sandbox, lost } = await start();
    let heard = '';
    const running = sh(sandbox, 'echo one; sleep 2; echo two; exit 3', {
      onOutput: (chunk) => {
        heard += textOf(chunk);
      },
    });
    await eventually('its first output', 5000, () => heard === 'one\n');
    await sh(sandbox, killWhere(RUNNER));
    const result = await running;
    expect(result).toMatchObject({ ended: 'exited', exitCode: 3 });
    expect([textOf(result.stdout), heard]).toEqual(['one\ntwo\n', 'one\ntwo\n']);
    await works(sandbox);
    expect(lost).toEqual([]);
  });

  it('a command that kills everything is lost with what it printed, and the sandbox goes on', async () => {
    const { sandbox, lost } = await start();
    const result = await sh(sandbox, `echo before; sleep 0.3; ${killWhere(NOT_THE_CONTAINER)}; kill -KILL $$`);
    expect(result).toMatchObject({ ended: 'lost', exitCode: null });
    expect(textOf(result.stdout)).toBe('before\n');
    await works(sandbox);
    expect(lost).toEqual([]);
  });

  it('what stood ready for the next command is killed, and the next command runs', async () => {
    const { sandbox, container } = await start();
    await works(sandbox);
    // Long enough for it to stand ready.
    await sleep(300);
    const killing = await container.exec({ Cmd: ['sh', '-c', killWhere(READY)] });
    await (await killing.start({})).resume();
    await eventually('its end', 10_000, async () => (await killing.inspect()).Running === false);
    await works(sandbox);
    await works(sandbox);
  });

  it('after a restart of its container what had ended is found, and what had begun does not begin again', async () => {
    const { sandbox, container } = await start();
    const executionIds = [mint.execution(), mint.execution(), mint.execution()];
    for (const executionId of executionIds) {
      await sh(sandbox, 'echo x >>/tmp/times; cat /tmp/times', { executionId });
      // So that the next one finds all that can be ready for it.
      await sleep(300);
    }
    await container.restart({ t: 0 });
    for (const [at, executionId] of executionIds.entries()) {
      const found = await sandbox.lookup(executionId);
      expect(found.found === 'finished' && textOf(found.result.stdout)).toBe('x\n'.repeat(at + 1));
      const again = await sh(sandbox, 'echo x >>/tmp/times', { executionId });
      expect(textOf(again.stderr)).toMatch(/not begun/);
    }
    expect(textOf((await sh(sandbox, 'cat /tmp/times')).stdout)).toBe('x\n'.repeat(3));
  });

  it('a full disk fails the command that fills it, and the one that makes room runs', async () => {
    const { sandbox } = await start({ Tmpfs: { '/tmp': 'size=1m' } });
    const filling = await sh(sandbox, 'dd if=/dev/zero of=/tmp/full bs=65536 count=100 2>/dev/null');
    expect(filling).toMatchObject({ ended: 'exited', exitCode: 1 });
    const printed = await sh(sandbox, 'echo lost || exit 5');
    expect(printed.ended).toBe('exited');
    expect(printed.exitCode === 5 || textOf(printed.stdout) === 'lost\n').toBe(true);
    const big = await sh(sandbox, 'cat >/dev/null', { stdin: new Uint8Array(MiB) });
    expect(big.exitCode).not.toBe(0);
    expect(textOf(big.stderr)).toMatch(/not begun.*\/tmp is full/);
    expect((await sh(sandbox, 'rm /tmp/full')).exitCode).toBe(0);
    await works(sandbox);
  });

  it('a fork bomb ends with its time, and the sandbox goes on', async () => {
    const { sandbox, lost } = await start({ PidsLimit: 48 });
    await works(sandbox);
    const result = await sh(sandbox, 'b() { b | b & wait; }; b; sleep 30', { timeoutMs: 1500 });
    expect(['timed_out', 'exited', 'lost']).toContain(result.ended);
    await works(sandbox);
    expect(lost).toEqual([]);
  });

  it('children that nobody waits for hold nothing up and are not left behind', async () => {
    const made = await start();
    const { sandbox } = made;
    await sh(sandbox, 'i=0; while [ $i -lt 20 ]; do (sleep 0.1 &) ; i=$((i + 1)); done; sleep 0.3');
    for (let i = 0; i < 5; i++) await works(sandbox);
    const left = (await processes(made)).filter(({ state }) => state.startsWith('Z'));
    expect(left.length).toBeLessThan(3);
  });

  it('a background process that holds the output does not hold up the end, nor do its later words get lost', async () => {
    const { sandbox } = await start();
    const executionId = mint.execution();
    const result = await sh(sandbox, '(sleep 1; echo later) & echo now', { executionId });
    expect(textOf(result.stdout)).toBe('now\n');
    expect(result.durationMs).toBeLessThan(900);
    await sleep(1200);
    const found = await sandbox.lookup(executionId);
    expect(found.found === 'finished' && textOf(found.result.stdout)).toBe('now\nlater\n');
  });

  it('a command that reads gets an end of file at once, also in the background', async () => {
    const { sandbox } = await start();
    const result = await sh(sandbox, 'cat; (cat; echo cat ended) & wait; read x || echo end');
    expect(textOf(result.stdout)).toBe('cat ended\nend\n');
  });

  it('gives head and tail of 100 MB, counts the rest, and keeps what was binary', async () => {
    const { sandbox } = await start();
    const result = await sh(
      sandbox,
      'printf "\\001\\000first"; yes 0123456789 | head -c 100000000; printf "last\\377"',
      {
        maxBytes: 64 * 1024,
        timeoutMs: 60_000,
      },
    );
    expect(result.exitCode).toBe(0);
    const bytes = Buffer.from(result.stdout).toString('latin1');
    expect(bytes.slice(0, 7)).toBe('\x01\0first');
    expect(bytes.slice(-5)).toBe('last\xff');
    expect(result.stdout.byteLength + result.cutBytes).toBe(100_000_000 + 7 + 5);
  });

  it('commands can be interrupted: they do not inherit an ignored signal', async () => {
    const { sandbox } = await start();
    const result = await sh(sandbox, 'sh -c "kill -INT \\$\\$; echo survived"; echo $?');
    expect(textOf(result.stdout)).toBe('130\n');
  });

  it('calls of many threads run side by side, each with its own output', async () => {
    const { sandbox } = await start();
    const from = performance.now();
    const numbers = Array.from({ length: 8 }, (_, i) => i);
    const results = await Promise.all(
      numbers.map((i) => sh(sandbox, `echo ${i}; sleep 1; head -c 300000 /dev/zero | tr '\\0' ${i}; echo ${i} >&2`)),
    );
    expect(performance.now() - from).toBeLessThan(6000);
    for (const [i, result] of results.entries()) {
      expect(textOf(result.stderr)).toBe(`${i}\n`);
      expect(new Set(result.stdout.subarray(2))).toEqual(new Set([48 + i]));
    }
  });

  it('a runner nobody is connected to any more ends, but not before its commands, and holds them to their time', async () => {
    const made = await start();
    const { sandbox, again } = made;
    const ids = [mint.execution(), mint.execution()] as const;
    const left = [
      sh(sandbox, 'sleep 2; echo ended', { executionId: ids[0] }),
      sh(sandbox, 'trap "" TERM; echo on; sleep 60; sleep 60', { executionId: ids[1], timeoutMs: 1000 }),
    ].map((call) => call.catch(() => undefined));
    await sleep(500);
    // What a killed process leaves: a connection that ends.
    sandbox.close();
    const other = again();
    const found = await Promise.all(ids.map((id) => other.lookup(id)));
    expect(found.map((one) => one.found)).toEqual(['running', 'running']);
    const [first, second] = found;
    if (first?.found !== 'running' || second?.found !== 'running') throw new Error('not running');
    const signal = new AbortController().signal;
    expect(textOf((await first.wait(signal)).stdout)).toBe('ended\n');
    expect(await second.wait(signal)).toMatchObject({ ended: 'timed_out', exitCode: null });
    await Promise.all(left);
    other.close();
    await eventually('the runners to end', 8000, async () =>
      (await processes(made)).every(({ command }) => !command.includes('serve')),
    );
  });

  it('a server takes with it what it has started, whether it is stopped or a next one finds it; a cut connection ends it', async () => {
    const made = await start();
    const { sandbox, again } = made;
    const program = (name: string) =>
      `trap "" TERM HUP; (trap "" HUP; exec sleep 481) & ${name === 'one' ? 'timeout 0 sleep 481 &' : ''} echo up; read x; echo "heard $x"; while :; do sleep 481; done`;
    const openOne = async (name: string) => {
      const living = await sandbox.open({ executionId: mint.execution(), argv: ['sh', '-c', program(name)] });
      let heard = '';
      living.stdout.on('data', (chunk: Buffer) => {
        heard += chunk.toString();
      });
      living.stdin.write('hello\n');
      await eventually('its answer', 5000, () => heard === 'up\nheard hello\n');
      return living;
    };
    const waiting = async () => (await processes(made)).filter(({ command }) => command === 'sleep 481').length;
    const one = await openOne('one');
    await eventually('what it starts', 5000, async () => (await waiting()) === 3);
    await one.stop();
    expect(one.end).toEqual({ how: 'stopped', exitCode: null, reason: 'it was stopped' });
    expect(await waiting()).toBe(0);
    const two = await openOne('two');
    await again().endLeft();
    expect((await two.ended).how).toBe('exited');
    expect(await waiting()).toBe(0);
    const three = await openOne('one');
    sandbox.close();
    expect(await three.ended).toMatchObject({ how: 'stopped' });
    await again().endLeft();
    expect(await waiting()).toBe(0);
  });

  it('reads the beginning of a plain file over the connection, and nothing else', async () => {
    const { sandbox } = await start();
    await sh(
      sandbox,
      'mkdir "a b"; printf "h\\303\\251\\000llo" >"a b/f é.txt"; ln -s /etc/passwd link; ln -s /etc out; : >empty; mkfifo pipe',
    );
    const { signal } = new AbortController();
    const peek = (path: string, bytes = 100) => sandbox.peek(`/workspace/${path}`, bytes, signal);
    const whole = await peek('a b/f é.txt');
    expect(whole && [whole.realPath, textOf(whole.bytes), whole.more]).toEqual(['a b/f é.txt', 'hé\0llo', false]);
    expect(await peek('empty')).toMatchObject({ realPath: 'empty', more: false });
    const part = await peek('a b/f é.txt', 3);
    expect(part && [textOf(part.bytes), part.more]).toEqual(['hé', true]);
    for (const path of ['link', 'out/passwd', 'missing', 'a b', 'pipe', 'no\nname', '../etc/passwd', 'empty/x'])
      expect(await peek(path)).toBeNull();
    await works(sandbox);
  });
}

describeWith(engine, 'faults under bash', () => {
  beforeAll(async () => {
    await makeImages(ensureTinyImage);
  });
  faultsWith(() => TINY);

  it('a call in a paused container is lost when its time is over, and goes on if the pause ends before', async () => {
    own = await ownContainer(TINY);
    const { sandbox, container, lost } = own;
    const short = await sh(sandbox, 'echo ready');
    expect(short.exitCode).toBe(0);
    const through = sh(sandbox, 'sleep 0.5; echo through');
    await sleep(200);
    await container.pause();
    await sleep(1000);
    await container.unpause();
    expect(textOf((await through).stdout)).toBe('through\n');
    const late = sh(sandbox, 'sleep 30', { timeoutMs: 1000 });
    await sleep(200);
    await container.pause();
    await expect(late).rejects.toThrow(/was lost \(.*paused/);
    await expect(late).rejects.toBeInstanceOf(SandboxLost);
    expect(lost).toHaveLength(1);
  });

  it('a command that takes more memory than there is fails alone', async () => {
    own = await ownContainer(TINY, { Memory: 48 * MiB, MemorySwap: 48 * MiB });
    const { sandbox, lost } = own;
    const result = await sh(sandbox, 'x=$(head -c 200000000 /dev/zero | tr "\\0" x); echo "$x" | wc -c');
    expect(result.ended).toBe('exited');
    expect(result.exitCode).not.toBe(0);
    expect(textOf((await sh(sandbox, 'echo works')).stdout)).toBe('works\n');
    expect(lost).toEqual([]);
  });

  it('a connection to the engine that breaks off under a call is made anew, and the call goes on', async () => {
    const folder = await makeFolder('drover-relay-');
    const relay = await relayTo('/var/run/docker.sock', join(folder, 'engine.sock'));
    try {
      own = await ownContainer(TINY, {}, new Docker({ socketPath: relay.path }));
      const { sandbox, lost } = own;
      let heard = '';
      const running = sh(sandbox, 'echo one; sleep 1; echo two', {
        onOutput: (chunk) => {
          heard += textOf(chunk);
        },
      });
      await eventually('its first output', 5000, () => heard === 'one\n');
      relay.cut();
      expect(textOf((await running).stdout)).toBe('one\ntwo\n');
      expect([heard, lost]).toEqual(['one\ntwo\n', []]);
      const server = await sandbox.open({
        executionId: mint.execution(),
        argv: ['sh', '-c', 'trap "" TERM; sleep 491'],
      });
      relay.cut();
      expect(await server.ended).toEqual({ how: 'lost', exitCode: null, reason: 'the connection to it broke off' });
      expect((await processes(own)).filter(({ command }) => command === 'sleep 491')).toEqual([]);
      await own.remove();
    } finally {
      own = undefined;
      relay.close();
      await rm(folder, { recursive: true });
    }
  });
});

for (const shell of ['dash', 'busybox'] as const) {
  describe.skipIf(!engine.ok || !canMakeShellImage(shell))(`faults under ${shell}`, () => {
    const image = `drover-${shell}-faults-${process.pid}:latest`;
    let remove: (() => void) | undefined;
    beforeAll(async () => {
      remove = await makeShellImage(shell, image);
    });
    afterAll(() => remove?.());
    faultsWith(() => image);
  });
}
