import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Docker from 'dockerode';
import { ensureSearchImage } from '../../scripts/image.mjs';
import { demultiplexer } from '../../src/sandbox/docker/demultiplex.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { call, said } from '../sandbox/tool-rig.ts';
import { figure, quantile } from './figure.ts';
import type { Bench } from './given.ts';
import { Rig } from './rig.ts';

const FOLDERS = 60;
const FILES = 80;
const LINES = 120;
const ROUNDS = 15;
/** Stands once in every tenth file. */
const PATTERN = 'needle_\\d+';

/** The grep tool over ripgrep alone, started by an exec of the engine's in the same container, on the same files. */
export const sandboxGrep: Bench = async ({ have }, say) => {
  if (!have.engine) return [];
  const made = await ensureSearchImage({ log: say });
  if (!made.ok) {
    say(`  not measured: ${made.why}`);
    return [];
  }
  await using rig = await Rig.open();
  await fill(rig.folder);
  const { make, remove } = await rig.provisioner(await rig.session({ type: 'image', image: made.image }));
  const sandbox = await make();
  try {
    const docker = new Docker();
    const [info] = await docker.listContainers({ filters: { label: [`drover.sandbox=${sandbox.id}`] } });
    if (!info) throw new Error('The sandbox has no container.');
    const container = docker.getContainer(info.Id);
    const taken = { tool: [] as number[], bare: [] as number[] };
    // The first round warms both and is not counted.
    for (let n = 0; n <= ROUNDS; n++) {
      const tool = await timed(() => searched(sandbox));
      const bare = await timed(() => ripgrep(container, sandbox.workspace));
      if (tool.found !== bare.found) throw new Error(`The tool found ${tool.found} lines, ripgrep ${bare.found}.`);
      if (n === 0) continue;
      taken.tool.push(tool.ms);
      taken.bare.push(bare.ms);
    }
    for (const [name, samples] of Object.entries(taken))
      say(
        `  ${name.padEnd(5)} ms (0 50 95 %): ${[0, 0.5, 0.95].map((at) => quantile(samples, at).toFixed(1)).join('  ')}`,
      );
    return [figure('sandbox.grep', 'ms', quantile(taken.tool, 0.5), quantile(taken.bare, 0.5), 1.3)];
  } finally {
    await remove();
  }
};

async function fill(folder: string): Promise<void> {
  const line = 'const value = compute(input, options); // an ordinary line of a program\n';
  for (let f = 0; f < FOLDERS; f++) {
    const at = join(folder, `src/part${f % 8}/module${f}`);
    await mkdir(at, { recursive: true });
    for (let n = 0; n < FILES; n++)
      await writeFile(join(at, `file${n}.ts`), line.repeat(LINES) + (n % 10 === 0 ? `needle_${f}${n}\n` : ''));
  }
}

async function timed(act: () => Promise<number>): Promise<{ ms: number; found: number }> {
  const from = performance.now();
  const found = await act();
  return { ms: performance.now() - from, found };
}

async function searched(sandbox: Sandbox): Promise<number> {
  const outcome = await call(sandbox, 'grep', { pattern: PATTERN });
  if (outcome.kind !== 'ok') throw new Error(`grep gave ${outcome.kind}: ${said(outcome)}`);
  return said(outcome).trimEnd().split('\n').length;
}

async function ripgrep(container: Docker.Container, folder: string): Promise<number> {
  const exec = await container.exec({
    Cmd: ['rg', '--line-number', '--no-heading', '--with-filename', PATTERN, '.'],
    WorkingDir: folder,
    AttachStdout: true,
    AttachStderr: true,
  });
  const stream = await exec.start({ hijack: true, stdin: false });
  let lines = 0;
  const split = demultiplexer((_kind, chunk) => {
    for (const byte of chunk) if (byte === 0x0a) lines++;
  });
  stream.on('data', split);
  await new Promise<void>((resolve) => {
    for (const event of ['end', 'close', 'error']) stream.once(event, () => resolve());
  });
  const { ExitCode } = await exec.inspect();
  if (ExitCode !== 0) throw new Error(`rg gave ${ExitCode}`);
  return lines;
}
