import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { text } from '../../src/protocol/content.ts';
import type { EnvironmentConfig } from '../../src/protocol/environment.ts';
import { draft } from '../../src/protocol/record.ts';
import { figure, quantile } from './figure.ts';
import type { Bench } from './given.ts';
import { FIRST_TOKEN_MS, Rig, type Turn } from './rig.ts';

const rounds = 7;
/** How long the model takes to write the call, ms, and in how many pieces. */
const WRITING_MS = 1500;
const PIECES = 30;
/** The rehearsal streams an input in pieces of 7 to 22 characters, 14 on average. */
const COMMAND = `: ${'x'.repeat(PIECES * 14)}`;

/**
 * What a session's first call waits for its sandbox, once the model has written it: made from the moment the model
 * began to name the tool, over made when the call was complete.
 */
export const sandboxReady: Bench = async ({ have }, say) => {
  if (!have.engine || !have.image) return [];
  const delays = { firstTokenMs: FIRST_TOKEN_MS, perChunkMs: WRITING_MS / PIECES };
  await using rig = await Rig.open({ delays, scenario: 'call' });
  await using late = await Rig.open({ delays, scenario: 'call' });
  // The other design, on the same engine and model: nothing is made before the call is there.
  late.engine.sandboxes.prepare = () => {};
  let ours = 0;
  let theirs = 0;
  for (const [name, config] of environments(have.image)) {
    const ahead: number[] = [];
    const plain: number[] = [];
    await Promise.all([devcontainer(rig.folder, have.image), devcontainer(late.folder, have.image)]);
    for (let n = 0; n < rounds; n++) {
      ahead.push(await waited(rig, await rig.session(config)));
      plain.push(await waited(late, await late.session(config)));
    }
    say(`  ${name}: ahead ${shown(ahead)}, after the call ${shown(plain)} (median, worst)`);
    ours += quantile(ahead, 0.5);
    theirs += quantile(plain, 0.5);
  }
  return [figure('sandbox.ready', 'ms', ours, theirs, 0.3)];
};

const shown = (samples: readonly number[]): string =>
  `${quantile(samples, 0.5).toFixed(0)} ms, ${quantile(samples, 1).toFixed(0)} ms`;

const environments = (image: string): [name: string, EnvironmentConfig][] => [
  ['plain image', { type: 'image', image }],
  ['devcontainer', { type: 'devcontainer' }],
];

async function devcontainer(folder: string, image: string): Promise<void> {
  const path = join(folder, '.devcontainer/devcontainer.json');
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, JSON.stringify({ image }));
}

/** From the complete call's being in the log to its start, ms; the sandbox is removed afterwards. */
async function waited(rig: Rig, turn: Turn): Promise<number> {
  const writer = await rig.store.acquire(turn.session, 'a message was sent');
  const seen = new Map<string, number>();
  const listening = writer.onAppend((records) => {
    for (const { event } of records) if (!seen.has(event.type)) seen.set(event.type, performance.now());
  });
  try {
    const content = [text(JSON.stringify({ command: COMMAND }))];
    await writer.append([draft('user.message', { content }, { thread: turn.primary, queued: true })]);
    await rig.engine.harness.wake(turn.session, 'a message was sent');
  } finally {
    listening.dispose();
  }
  const { remove } = await rig.provisioner(turn);
  await remove();
  const [asked, started] = [seen.get('agent.tool_use'), seen.get('drover.tool_started')];
  if (asked === undefined || started === undefined) throw new Error('The call did not run.');
  return started - asked;
}
