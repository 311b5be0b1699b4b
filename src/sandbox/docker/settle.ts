import type Docker from 'dockerode';
import { z } from 'zod';
import { mint, type SandboxId } from '../../protocol/ids.ts';
import { SandboxLost, SandboxUnavailable } from '../sandbox.ts';
import { ContainerSandbox } from './container-sandbox.ts';
import { type Promised, weakness } from './hardening.ts';
import { LABEL } from './labels.ts';
import { userEnv } from './user-env.ts';

/** Written inside at the end of provisioning: a container without it was left half-made by a crash. */
const READY = '/tmp/.drover/ready';
const PROBE_MS = 20_000;

/*
 * Says whether the user may write to the workspace, without ever changing it: an empty file is made and removed.
 * A home folder is made where there is none, or half of all programs fail.
 * Of the mark of a finished provisioning: $2 leaves it there, $3 asks for it first. All further ones are paths in the
 * workspace whose content must not be seen.
 */
const PROBE = `
[ -d "$1" ] || { echo missing; exit 0; }
[ -z "$3" ] || [ -f "$3" ] || { echo half-made; exit 0; }
[ -d "$HOME" ] || mkdir -p "$HOME" 2>/dev/null
f=$1/.drover-probe-$$
if (: >"$f") 2>/dev/null; then rm -f "$f"; can=writable; else can=readonly; fi
echo "$can $(id -u):$(id -g) $(stat -c %u:%g "$1" 2>/dev/null)"
w=$1 r=$2
shift 3
for h; do [ -z "$(ls -A "$w/$h" 2>/dev/null)" ] || echo "shows $h"; done
[ -z "$r" ] || { mkdir -p "\${r%/*}" && : >"$r"; } 2>/dev/null
`;

export interface SettleOptions {
  id: SandboxId;
  container: Docker.Container;
  onLost: (reason: string) => Promise<void>;
  onProgress?: ((line: string) => void) | undefined;
  /** It was just made. Otherwise it was found, and must have been made to the end. */
  markReady: boolean;
  /** What it has to hold. The place of the workspace inside is in its labels. */
  promised: Omit<Promised, 'target'>;
  /** Variables that no start file of a shell inside may change. */
  ours: ReadonlySet<string>;
  /** Who works in it, if the maker knows better than the labels. */
  user?: string;
}

/**
 * Turns a started container into a sandbox: checks that it keeps what a sandbox promises, finds the user that can
 * write to the workspace, and marks it ready. Throws `SandboxUnavailable`.
 */
export async function settle(options: SettleOptions): Promise<ContainerSandbox> {
  const info = await options.container.inspect();
  const workspace = info.Config.Labels[LABEL.inside] ?? info.Config.WorkingDir;
  const weak = weakness(info, { ...options.promised, target: workspace });
  if (weak)
    throw new SandboxUnavailable(
      'container',
      `The container is not used as a sandbox because ${weak}; take that out of devcontainer.json or of the features it uses.`,
    );
  const metadata = devcontainerMetadata(info.Config.Labels['devcontainer.metadata']);
  const user = options.user ?? metadata.user;
  const env = remoteEnv(metadata.remoteEnv, info.Config.Env);
  const make = (more: { user?: string; env?: Record<string, string> }) =>
    new ContainerSandbox({
      id: options.id,
      container: options.container,
      workspace,
      env: { ...env, ...more.env },
      onLost: options.onLost,
      ...(more.user ? { user: more.user } : {}),
    });

  /** Of a devcontainer, with what its user's shell sets. */
  const finished = async (sandbox: ContainerSandbox, as: { user?: string; env?: Record<string, string> }) => {
    if (!info.Config.Labels['devcontainer.metadata']) return sandbox;
    const ours = new Set([...options.ours, ...Object.keys({ ...env, ...as.env })]);
    const found = await userEnv({ sandbox, how: metadata.userEnvProbe, ours, onProgress: options.onProgress });
    if (Object.keys(found).length === 0) return sandbox;
    sandbox.close();
    return make({ ...as, env: { ...found, ...as.env } });
  };

  const asUser = user ? { user } : {};
  const first = make(asUser);
  const marks = options.markReady ? [READY, ''] : ['', READY];
  const hidden = options.promised.guarded.filter(({ how }) => how === 'hidden').map(({ path }) => path);
  const answer = await probe(first, marks, hidden);
  const writable = answer.startsWith('writable ');
  const [, inside, owner] = /^\S+ (\d+):\d+ (\d+:\d+)$/.exec(answer) ?? [];
  if (writable && !(user === undefined && leavesRootsFiles(inside, owner))) return await finished(first, asUser);
  if (owner) {
    // The workspace is its owner's on the host; nobody else may write to it once root's privileges are dropped.
    const asOwner = { user: owner, env: { HOME: '/tmp/.drover-home' } };
    const second = make(asOwner);
    if ((await probe(second, marks, hidden)).startsWith('writable ')) {
      options.onProgress?.(`Working as user ${owner}, who owns the workspace folder`);
      first.close();
      return await finished(second, asOwner);
    }
    second.close();
  }
  if (writable) return await finished(first, asUser);
  options.onProgress?.(
    `The workspace folder can only be read in the sandbox (${answer}): tools that write to it will fail. Drover never changes its owner; make it writable for the user inside.`,
  );
  return await finished(first, asUser);
}

/**
 * A folder that everybody may write to: as root of an engine that maps no users, files would be made that the person who
 * owns it could not remove.
 */
const leavesRootsFiles = (inside: string | undefined, owner: string | undefined): boolean =>
  process.platform === 'linux' &&
  inside === '0' &&
  process.getuid?.() !== 0 &&
  owner?.split(':')[0] === String(process.getuid?.());

async function probe(sandbox: ContainerSandbox, marks: string[], hidden: string[]): Promise<string> {
  try {
    const result = await sandbox.run({
      executionId: mint.execution(),
      argv: ['sh', '-c', PROBE, 'probe', sandbox.workspace, ...marks, ...hidden],
      cwd: '/',
      timeoutMs: PROBE_MS,
      signal: AbortSignal.timeout(PROBE_MS * 2),
    });
    const text = Buffer.from(result.stdout).toString('utf8').trim();
    if (text === 'missing')
      throw new SandboxUnavailable(
        'container',
        `The workspace is not at ${sandbox.workspace} inside the container; check workspaceFolder and workspaceMount in devcontainer.json.`,
      );
    if (text === 'half-made')
      throw new SandboxUnavailable('container', 'The container was left half-made by a crash, so it is not used.');
    const [answer = '', shown] = text.split('\n');
    if (shown)
      throw new SandboxUnavailable(
        'container',
        `The container is not used as a sandbox because it ${shown}, which no sandbox may see; use another engine, or an environment with "workspace": "isolated".`,
      );
    return answer;
  } catch (error) {
    if (!(error instanceof SandboxLost)) throw error;
    throw new SandboxUnavailable(
      'container',
      `The container started but could not run a command: it needs sh and coreutils (${error.message})`,
      { cause: error },
    );
  }
}

const Metadata = z.array(
  z.object({
    remoteUser: z.string().optional(),
    containerUser: z.string().optional(),
    remoteEnv: z.record(z.string(), z.string().nullable()).optional(),
    userEnvProbe: z.string().optional(),
  }),
);

/** What features and devcontainer.json say about the user and the environment; later entries win. */
function devcontainerMetadata(label: string | undefined): {
  user?: string;
  remoteEnv: Record<string, string | null>;
  userEnvProbe?: string;
} {
  if (!label) return { remoteEnv: {} };
  const entries = Metadata.safeParse(JSON.parse(label)).data ?? [];
  const user = entries.findLast((entry) => entry.remoteUser)?.remoteUser;
  const containerUser = entries.findLast((entry) => entry.containerUser)?.containerUser;
  const remoteEnv = Object.assign({}, ...entries.map((entry) => entry.remoteEnv ?? {}));
  const chosen = user ?? containerUser;
  const userEnvProbe = entries.findLast((entry) => entry.userEnvProbe)?.userEnvProbe;
  return { ...(chosen ? { user: chosen } : {}), remoteEnv, ...(userEnvProbe ? { userEnvProbe } : {}) };
}

/** `${containerEnv:NAME}` is filled from the container's own environment; a null value unsets. */
function remoteEnv(values: Record<string, string | null>, containerEnv: readonly string[]): Record<string, string> {
  const own = new Map(
    containerEnv.map((entry): [string, string] => {
      const at = entry.indexOf('=');
      return [entry.slice(0, at), entry.slice(at + 1)];
    }),
  );
  const filled: Record<string, string> = {};
  for (const [name, value] of Object.entries(values)) {
    filled[name] = (value ?? '').replaceAll(/\$\{containerEnv:([^}:]+)(?::([^}]*))?\}/g, (_, variable, fallback) =>
      String(own.get(String(variable)) ?? fallback ?? ''),
    );
  }
  return filled;
}
