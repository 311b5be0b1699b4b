import { Socket } from 'node:net';
import { type Duplex, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import type { ExecutionId } from '../../protocol/ids.ts';
import { Living } from '../living.ts';
import type { ProcessEnd } from '../sandbox.ts';
import { statusOf } from './client.ts';
import { demultiplexer } from './demultiplex.ts';

/** An engine notices late that a program has ended: it is asked so often, so many ms apart. */
const ASKED = 20;
const ASK_MS = 100;

export interface LivingExecOptions {
  executionId: ExecutionId;
  container: Docker.Container;
  exec: Docker.Exec;
  stream: Duplex;
  kill(): Promise<void>;
}

/** A program in a container that stays: an attached exec of its own. */
export function livingExec({ executionId, container, exec, stream, kill }: LivingExecOptions): Living {
  const stdin = new Writable({
    write: (chunk, _encoding, done) => void stream.write(chunk, done),
    final: (done) => void stream.end(done),
    destroy: (error, done) => {
      stream.destroy();
      done(error);
    },
  });
  const living = new Living({ executionId, stdin, kill });
  stream.on(
    'data',
    demultiplexer((kind, chunk) => {
      if (living.heard(kind, chunk) || stream.isPaused()) return;
      stream.pause();
      living.drained(() => stream.resume());
    }),
  );
  stream.on('error', () => stream.destroy());
  let over = false;
  const end = () => {
    if (over) return;
    over = true;
    void endOf(exec, container, kill).then((one) => living.finish(one));
  };
  for (const event of ['end', 'close', 'error']) stream.once(event, end);
  if (stream instanceof Socket) stream.unref();
  return living;
}

/** A stream that ends says nothing of why. The sandbox's loss is told by whoever needs it next, not here. */
async function endOf(exec: Docker.Exec, container: Docker.Container, kill: () => Promise<void>): Promise<ProcessEnd> {
  const lost = (reason: string): ProcessEnd => ({ how: 'lost', exitCode: null, reason });
  try {
    for (let asked = 0; asked < ASKED; asked++) {
      const { State } = await container.inspect();
      if (!State.Running) return lost(`its container ended with code ${State.ExitCode}`);
      const { Running, ExitCode } = await exec.inspect();
      if (!Running && ExitCode !== null) return await settled(container, ExitCode);
      await sleep(ASK_MS, undefined, { ref: false });
    }
  } catch (error) {
    return lost(statusOf(error) === 404 ? 'its container was removed' : 'the container engine stopped answering');
  }
  await kill().catch(() => undefined);
  return lost('the connection to it broke off');
}

/** A container that is being killed ends its programs first. */
async function settled(container: Docker.Container, exitCode: number): Promise<ProcessEnd> {
  if (exitCode !== 128 + 9) return { how: 'exited', exitCode, reason: '' };
  await sleep(ASK_MS, undefined, { ref: false });
  const { State } = await container.inspect();
  if (State.Running) return { how: 'exited', exitCode, reason: '' };
  const reason = State.OOMKilled
    ? 'its container ran out of memory'
    : `its container ended with code ${State.ExitCode}`;
  return { how: 'lost', exitCode: null, reason };
}
