import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Docker from 'dockerode';
import { mint } from '../../src/protocol/ids.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { createToolbox } from '../../src/tools/toolbox.ts';
import { figure, quantile } from './figure.ts';
import type { Bench } from './given.ts';
import { Rig } from './rig.ts';

const rounds = 60;

/**
 * A command, and a file read, through the connection that a warm sandbox keeps, over an exec of the engine's for the
 * command: what a sandbox without such a connection has to do for every call.
 */
export const sandboxExec: Bench = async ({ have }, say) => {
  if (!have.engine || !have.image) return [];
  await using rig = await Rig.open();
  await writeFile(join(rig.folder, 'four.txt'), `${'x'.repeat(63)}\n`.repeat(64));
  const { make, remove } = await rig.provisioner(await rig.session({ type: 'image', image: have.image }));
  const sandbox = await make();
  try {
    const docker = new Docker();
    const filters = { label: [`drover.sandbox=${sandbox.id}`] };
    const [info] = await docker.listContainers({ filters });
    if (!info) throw new Error('The sandbox has no container.');
    const container = docker.getContainer(info.Id);
    const taken = { run: [] as number[], read: [] as number[], exec: [] as number[] };
    for (let n = 0; n < rounds; n++) {
      taken.run.push(await timed(() => runTrue(sandbox)));
      taken.read.push(await timed(() => readFile(sandbox)));
      taken.exec.push(await timed(() => execTrue(container)));
    }
    for (const [name, samples] of Object.entries(taken))
      say(
        `  ${name.padEnd(5)} ms (0 50 95 %): ${[0, 0.5, 0.95].map((at) => quantile(samples, at).toFixed(1)).join('  ')}`,
      );
    const baseline = quantile(taken.exec, 0.5);
    return [
      figure('sandbox.exec.true', 'ms', quantile(taken.run, 0.5), baseline, 0.06),
      figure('sandbox.exec.read', 'ms', quantile(taken.read, 0.5), baseline, 0.06),
    ];
  } finally {
    await remove();
  }
};

/** After a pause, as a model makes one between its calls: what the last one left to be done is done by then. */
async function timed(act: () => Promise<void>): Promise<number> {
  await sleep(50);
  const from = performance.now();
  await act();
  return performance.now() - from;
}

async function runTrue(sandbox: Sandbox): Promise<void> {
  const result = await sandbox.run({
    executionId: mint.execution(),
    argv: ['true'],
    timeoutMs: 20_000,
    signal: new AbortController().signal,
  });
  if (result.exitCode !== 0) throw new Error(`true gave ${result.exitCode}`);
}

const toolbox = createToolbox({ agent: { name: 'Bench', model: 'none' }, roster: [], depth: 0 });

async function readFile(sandbox: Sandbox): Promise<void> {
  const outcome = await toolbox.execute(
    'read',
    { file_path: 'four.txt' },
    {
      executionId: mint.execution(),
      thread: mint.thread(),
      signal: new AbortController().signal,
      sandbox: async () => sandbox,
      onOutput: () => {},
      readLog: async () => [],
      seen: () => undefined,
    },
  );
  if (outcome.kind !== 'ok') throw new Error(`read gave ${outcome.kind}`);
}

async function execTrue(container: Docker.Container): Promise<void> {
  const exec = await container.exec({ Cmd: ['true'], AttachStdout: true, AttachStderr: true });
  const stream = await exec.start({ hijack: true, stdin: false });
  await new Promise<void>((resolve) => {
    for (const event of ['end', 'close', 'error']) stream.once(event, () => resolve());
    stream.resume();
  });
  const { ExitCode } = await exec.inspect();
  if (ExitCode !== 0) throw new Error(`true gave ${ExitCode}`);
}
