import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../../protocol/errors.ts';
import { SandboxUnavailable } from '../sandbox.ts';
import { ComposeFile, hardenComposeFile } from './compose-harden.ts';
import { type Hardened, type HardenInput, harden, isInside, mountableIn, usualTarget } from './devcontainer-harden.ts';

const run = promisify(execFile);
/** ms. Compose only reads and prints here. */
const CONFIG_MS = 60_000;

export interface ComposeWhere {
  /** What Compose and the devcontainer tool are started with. */
  env: NodeJS.ProcessEnv;
  /** A folder of this provisioning alone. */
  temporary: string;
}

/**
 * A devcontainer.json that uses Docker Compose: the Compose files are read as Compose itself reads them, and one file
 * of ours takes their place, closed off as `hardenComposeFile` says. Throws `SandboxUnavailable`.
 */
export async function hardenCompose(input: HardenInput, { env, temporary }: ComposeWhere): Promise<Hardened> {
  const { config, file, folder, guarded, elsewhere, planAt } = input;
  const files = [config.dockerComposeFile ?? []].flat().map((name) => resolve(dirname(file), name));
  for (const one of files) await checkSource(one, folder);
  const [first = file] = files;
  const text = await composeConfig(files, dirname(first), env);
  const { parse } = await import('yaml');
  const parsed = ComposeFile.safeParse(parse(text));
  const service = typeof config.service === 'string' ? config.service : undefined;
  if (!parsed.success || !service)
    throw new SandboxUnavailable(
      'container',
      service
        ? `The Compose file of devcontainer.json is not as expected (${parsed.error?.issues[0]?.message}); correct it and try again.`
        : 'devcontainer.json names a Compose file but no "service" to work in; add one and try again.',
    );
  const compose = hardenComposeFile({
    ...{ file: parsed.data, service, folder, planAt },
    mountable: elsewhere ? () => false : mountableIn(folder, guarded),
    usualTarget: config.workspaceFolder ?? usualTarget(folder),
  });
  const ours = join(temporary, 'compose.json');
  await writeFile(ours, JSON.stringify(compose.file));
  // Of the devcontainer.json's own part the rest is closed off as for any other; the mounts are in the Compose file.
  const { workspaceMount: _, runArgs: __, ...rest } = config;
  const hardened = harden({ ...input, config: rest, planAt: () => ({ ...planAt(compose.target), mounts: [] }) });
  const { runArgs: ___, workspaceMount: ____, ...kept } = hardened.config;
  return {
    config: { ...kept, dockerComposeFile: ours, service, workspaceFolder: config.workspaceFolder ?? compose.target },
    target: compose.target,
    leftOut: [...hardened.leftOut, ...compose.leftOut],
  };
}

/** Compose reads other files of the host if a file tells it to, and what they hold would be inside. */
async function checkSource(file: string, folder: string): Promise<void> {
  const shown = relative(folder, file);
  const refuse = (what: string): SandboxUnavailable =>
    new SandboxUnavailable('container', `${shown} ${what}, so it is not used; move what it needs into the folder.`);
  if (!isInside(folder, file)) throw refuse('lies outside this folder');
  let source: unknown;
  try {
    const { parse } = await import('yaml');
    source = parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw new SandboxUnavailable('container', `${shown} can't be read: ${messageOf(error)}`, { cause: error });
  }
  const inside = (path: string) => !path.includes('$') && isInside(folder, resolve(dirname(file), path));
  walk(source, (key, value) => {
    if (key === 'include' || (key === 'extends' && typeof value === 'object')) throw refuse(`uses "${key}"`);
    if (!['env_file', 'file', 'label_file'].includes(key)) return;
    for (const path of [value].flat()) {
      const named = typeof path === 'object' && path !== null && 'path' in path ? path.path : path;
      if (typeof named === 'string' && !inside(named)) throw refuse(`reads ${named}, which lies outside this folder`);
    }
  });
}

function walk(value: unknown, visit: (key: string, value: unknown) => void): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    visit(key, inner);
    walk(inner, visit);
  }
}

async function composeConfig(files: string[], cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const names = files.flatMap((file) => ['-f', file]);
  const [program, ...before] = await composeProgram(env);
  try {
    const { stdout } = await run(program, [...before, ...names, 'config'], {
      env,
      cwd,
      timeout: CONFIG_MS,
      maxBuffer: 8 << 20,
    });
    return stdout;
  } catch (error) {
    const said =
      error instanceof Error && 'stderr' in error ? String(error.stderr).trim().split('\n').slice(-3).join(' ') : '';
    throw new SandboxUnavailable(
      'container',
      `The Compose file of devcontainer.json could not be read (${said || messageOf(error)}); correct it and try again.`,
      { cause: error },
    );
  }
}

/** The plugin if there is one, else the older program of its own: as the devcontainer tool chooses. */
async function composeProgram(env: NodeJS.ProcessEnv): Promise<[string, ...string[]]> {
  for (const [program, ...before] of [['docker', 'compose'], ['docker-compose']] as const) {
    try {
      await run(program, [...before, 'version', '--short'], { env, timeout: CONFIG_MS });
      return [program, ...before];
    } catch {
      // Not installed, or too old to say its version.
    }
  }
  throw new SandboxUnavailable(
    'engine',
    'This devcontainer.json uses Docker Compose, and neither "docker compose" nor "docker-compose" is installed; install one of them, or use a devcontainer.json with an image or a Dockerfile.',
  );
}
