import { randomUUID } from 'node:crypto';
import { mint } from '../../protocol/ids.ts';
import { NO_TERMINAL } from '../no-terminal.ts';
import { SandboxLost } from '../sandbox.ts';
import type { ContainerSandbox } from './container-sandbox.ts';

/** ms. Start files that take longer wait for something that does not come, and every sandbox would wait with them. */
const PROBE_MS = 10_000;
const MAX_BYTES = 256 * 1024;

/** How the specification's values start the user's shell; the specification's own default comes first. */
const FLAGS: Readonly<Record<string, string>> = {
  loginInteractiveShell: '-lic',
  loginShell: '-lc',
  interactiveShell: '-ic',
};

/** What a shell keeps for itself. */
const OF_A_SHELL = new Set(['_', 'PWD', 'OLDPWD', 'SHLVL', 'PS1', 'PS2', 'LINES', 'COLUMNS']);

/** $1 the shell's flags, $2 a mark that no start file prints: the variables as they are, then as the user's shell has them. */
const PROBE = `
me=$(id -u) shell=
while IFS=: read -r _ _ uid _ _ _ theirs; do
  if [ "$uid" = "$me" ]; then shell=$theirs; break; fi
done </etc/passwd
[ -x "$shell" ] || shell=/bin/sh
cat /proc/self/environ
printf '%s\\0' "$2"
exec "$shell" "$1" "printf '%s\\\\0' $2; cat /proc/self/environ; printf '%s\\\\0' $2" 2>/dev/null
`;

export interface UserEnvRequest {
  sandbox: ContainerSandbox;
  /** `userEnvProbe` of the devcontainer.json; undefined = the default. */
  how: string | undefined;
  /** Variables that stay as the container has them. */
  ours: ReadonlySet<string>;
  onProgress: ((line: string) => void) | undefined;
}

/**
 * What the start files of the user's shell set beyond the container's own variables, as `userEnvProbe` of a
 * devcontainer.json asks. Empty if they can't be run to their end in 10 s, which is told. Throws `SandboxLost`.
 */
export async function userEnv({ sandbox, how, ours, onProgress }: UserEnvRequest): Promise<Record<string, string>> {
  const flags = FLAGS[how ?? 'loginInteractiveShell'];
  if (!flags) return {};
  const mark = randomUUID();
  try {
    const result = await sandbox.run({
      executionId: mint.execution(),
      argv: ['sh', '-c', PROBE, 'probe', flags, mark],
      timeoutMs: PROBE_MS,
      signal: AbortSignal.timeout(PROBE_MS * 2),
    });
    const text = Buffer.from(result.stdout.subarray(0, MAX_BYTES)).toString('utf8');
    // A start file may print something before, a logout file after.
    const [own, , shells, end] = text.split(`${mark}\0`);
    if (own === undefined || shells === undefined || end === undefined)
      throw new Error('they did not run to their end');
    return differences(variables(own), variables(shells), ours);
  } catch (error) {
    if (error instanceof SandboxLost) throw error;
    onProgress?.(
      'The start files of the shell inside (userEnvProbe) did not run to their end, so what they set is missing in commands; set "userEnvProbe" to "none", or mend them.',
    );
    return {};
  }
}

function differences(
  own: ReadonlyMap<string, string>,
  shells: ReadonlyMap<string, string>,
  ours: ReadonlySet<string>,
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of shells) {
    if (own.get(name) === value || OF_A_SHELL.has(name) || name in NO_TERMINAL || ours.has(name)) continue;
    found[name] = name === 'PATH' ? mergedPath(value, own.get(name) ?? '') : value;
  }
  return found;
}

/** Start files often set PATH from nothing: what the image has stays, in its order. */
function mergedPath(shells: string, own: string): string {
  const merged = shells.split(':');
  let at = 0;
  for (const folder of own.split(':')) {
    const there = merged.indexOf(folder);
    if (there === -1) merged.splice(at++, 0, folder);
    else at = Math.max(at, there + 1);
  }
  return merged.join(':');
}

const variables = (text: string): Map<string, string> =>
  new Map(
    text.split('\0').flatMap((entry): [string, string][] => {
      const at = entry.indexOf('=');
      return at > 0 ? [[entry.slice(0, at), entry.slice(at + 1)]] : [];
    }),
  );
