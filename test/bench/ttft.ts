import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import { z } from 'zod';
import type { EnvironmentConfig } from '../../src/protocol/environment.ts';
import { figure, quantile } from './figure.ts';
import type { Bench } from './given.ts';
import { Rig } from './rig.ts';

const sessions = 6;
const turns = 12;

/** What Drover adds to the time to the first text: log, fold, policy and view, over the same request made bare. */
export const noTools: Bench = async (_given, say) => {
  await using rig = await Rig.open();
  const bare = new Anthropic({ apiKey: 'bench', baseURL: rig.server.url });
  const ours: number[] = [];
  const theirs: number[] = [];
  // The first session warms both up and is not counted.
  for (let n = 0; n <= sessions; n++) {
    const turn = await rig.session({ type: 'os' });
    for (let m = 0; m < turns; m++) {
      const took = await rig.firstText(turn, `Say ${m}.`);
      const baseline = await firstTextBare(bare, lastRequest(rig));
      if (n === 0) continue;
      ours.push(took);
      theirs.push(baseline);
    }
  }
  say(distribution('Drover  ', ours));
  say(distribution('bare SDK', theirs));
  return [
    figure('ttft.no_tools.p50', 'ms', quantile(ours, 0.5), quantile(theirs, 0.5), 1.03),
    figure('ttft.no_tools.p95', 'ms', quantile(ours, 0.95), quantile(theirs, 0.95), 1.06),
  ];
};

const Request = z.looseObject({ model: z.string(), max_tokens: z.number(), messages: z.array(z.any()) });

/** The body of the last request that the model server got, to be made again. */
function lastRequest(rig: Rig): Anthropic.MessageStreamParams {
  const sent = rig.server.requests.findLast(({ method, path }) => method === 'POST' && path === '/v1/messages');
  const { stream: _, ...body } = Request.parse(sent?.body);
  return body;
}

async function firstTextBare(client: Anthropic, body: Anthropic.MessageStreamParams): Promise<number> {
  const started = performance.now();
  const stream = client.messages.stream(body);
  const seen = await new Promise<number>((resolve, reject) => {
    stream.once('text', () => resolve(performance.now()));
    stream.once('error', reject);
  });
  await stream.done();
  return seen - started;
}

const perEnvironment = 7;

/**
 * A sandbox made when a call first needs it, over one made before the model is asked: what a person waits for the first
 * text in a new session, over a mix of environments.
 */
export const onDemandVsCoupled: Bench = async ({ have }, say) => {
  if (!have.engine || !have.image) return [];
  const onDemand: number[] = [];
  const coupled: number[] = [];
  await using rig = await Rig.open();
  for (const [name, config] of await environments(rig.folder, have.image)) {
    const here: { onDemand: number[]; coupled: number[] } = { onDemand: [], coupled: [] };
    for (let n = 0; n < perEnvironment; n++) {
      here.onDemand.push(await rig.firstText(await rig.session(config), 'Say it.'));
      here.coupled.push(await firstTextCoupled(rig, config));
    }
    say(`  ${name}`);
    say(distribution('  on demand', here.onDemand));
    say(distribution('  coupled  ', here.coupled));
    onDemand.push(...here.onDemand);
    coupled.push(...here.coupled);
  }
  say('  all');
  say(distribution('  on demand', onDemand));
  say(distribution('  coupled  ', coupled));
  return [
    figure('ttft.on_demand_vs_coupled.p50', 'ms', quantile(onDemand, 0.5), quantile(coupled, 0.5), 0.4),
    figure('ttft.on_demand_vs_coupled.p95', 'ms', quantile(onDemand, 0.95), quantile(coupled, 0.95), 0.1),
  ];
};

/** The other design: the container first, then the same turn. */
async function firstTextCoupled(rig: Rig, config: EnvironmentConfig): Promise<number> {
  const turn = await rig.session(config);
  const { make, remove } = await rig.provisioner(turn);
  const started = performance.now();
  await make();
  const provisioned = performance.now() - started;
  const first = await rig.firstText(turn, 'Say it.');
  await remove();
  return provisioned + first;
}

/** A plain image, a devcontainer with a Dockerfile, and one whose postCreate takes as long as a small install does. */
async function environments(folder: string, image: string): Promise<[name: string, EnvironmentConfig][]> {
  const files: Record<string, string> = {
    '.devcontainer/built/Dockerfile': `FROM ${image}\nRUN mkdir -p /opt/tools && echo built > /opt/tools/mark\n`,
    '.devcontainer/built/devcontainer.json': JSON.stringify({ build: { dockerfile: 'Dockerfile' } }),
    '.devcontainer/slow/devcontainer.json': JSON.stringify({ image, postCreateCommand: 'sleep 4' }),
  };
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
  return [
    ['plain image', { type: 'image', image }],
    ['devcontainer with a Dockerfile', { type: 'devcontainer', path: '.devcontainer/built/devcontainer.json' }],
    ['devcontainer with a slow postCreate', { type: 'devcontainer', path: '.devcontainer/slow/devcontainer.json' }],
  ];
}

function distribution(name: string, samples: readonly number[]): string {
  const at = [0, 0.25, 0.5, 0.75, 0.95, 1].map((share) => quantile(samples, share).toFixed(1).padStart(8));
  return `  ${name}  min…max ms (0 25 50 75 95 100 %): ${at.join('')}   n=${samples.length}`;
}
