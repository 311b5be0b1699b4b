import { setTimeout as sleep } from 'node:timers/promises';
import Dockerode from 'dockerode';
import { mint } from '../../src/protocol/ids.ts';
import type { SandboxOwner } from '../../src/sandbox/sandbox.ts';
import { figure, quantile } from './figure.ts';
import type { Bench } from './given.ts';
import { Rig } from './rig.ts';

const rounds = 15;
/** Between two calls a model is asked: what the quickest of them take for a short call, ms. */
const MODEL_MS = 600;
const COMMAND = ['sh', '-c', 'echo ran >>ran.txt; cat ran.txt | wc -l'];

/**
 * One action in a throw-away container, as the harness makes it, over a container made, started, waited for and removed
 * for it as `docker run --rm` does: the same image, mount and privileges, through the engine's own interface.
 */
export const callLifetime: Bench = async ({ have }, say) => {
  if (!have.engine || !have.image) return [];
  await using rig = await Rig.open();
  const config = { type: 'image' as const, image: have.image };
  const owner = await rig.owner(await rig.session(config));
  const of: SandboxOwner = { ...owner, environment: { ...owner.environment, lifetime: 'call' } };
  const docker = new Dockerode();
  const ours: number[] = [];
  const theirs: number[] = [];
  // The first of each warms up and is not counted.
  for (let n = 0; n <= rounds; n++) {
    const took = await timed(() => action(rig, of));
    await sleep(MODEL_MS);
    const baseline = await timed(() => runRm(docker, have.image ?? '', rig.folder));
    await sleep(MODEL_MS);
    if (n === 0) continue;
    ours.push(took);
    theirs.push(baseline);
  }
  const hurried: number[] = [];
  for (let n = 0; n < rounds; n++) hurried.push(await timed(() => action(rig, of)));
  say(`  with a model between two calls: ${shown(ours)}; run --rm: ${shown(theirs)} (median, worst)`);
  say(`  one call right after the other: ${shown(hurried)}`);
  await rig.engine.sandboxes.remove(of, 'measured');
  return [figure('sandbox.call_lifetime', 'ms', quantile(ours, 0.5), quantile(theirs, 0.5), 0.6)];
};

async function action(rig: Rig, owner: SandboxOwner): Promise<void> {
  const sandbox = await rig.engine.sandboxes.acquire(owner);
  const signal = AbortSignal.timeout(60_000);
  await sandbox.run({ executionId: mint.execution(), argv: COMMAND, timeoutMs: 30_000, signal });
  rig.engine.sandboxes.release(owner, sandbox.id);
}

async function runRm(docker: Dockerode, image: string, folder: string): Promise<void> {
  const container = await docker.createContainer({
    Image: image,
    Cmd: COMMAND,
    WorkingDir: '/workspace',
    HostConfig: {
      AutoRemove: true,
      Init: true,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      Mounts: [{ Type: 'bind', Source: folder, Target: '/workspace' }],
    },
  });
  const output = await container.attach({ stream: true, stdout: true, stderr: true });
  output.resume();
  const removed = container.wait({ condition: 'removed' });
  await container.start();
  await removed;
}

async function timed(act: () => Promise<void>): Promise<number> {
  const from = performance.now();
  await act();
  return performance.now() - from;
}

const shown = (samples: readonly number[]): string =>
  `${quantile(samples, 0.5).toFixed(0)} ms, ${quantile(samples, 1).toFixed(0)} ms`;
