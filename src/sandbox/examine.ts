import { messageOf } from '../protocol/errors.ts';
import { mint } from '../protocol/ids.ts';
import type { Hands } from './hands.ts';
import type { Check, Sandbox, SandboxOwner } from './sandbox.ts';

const RUN_MS = 20_000;

/*
 * Asks one sandbox about itself. Only sh and coreutils: one question a line, answered as `name value`.
 * The probe file is made and removed; a guarded place is only tried.
 */
const QUESTIONS = `
echo "user $(id -u):$(id -g)"
echo "owner $(stat -c %u:%g "$1" 2>/dev/null)"
f=$1/.drover-probe-$$
if (: >"$f") 2>/dev/null; then rm -f "$f"; echo "writable yes"; else echo "writable no"; fi
if (: >"$1/.vscode/.drover-probe") 2>/dev/null; then rm -f "$1/.vscode/.drover-probe"; echo "guarded no"; else echo "guarded yes"; fi
echo "links $(cd /sys/class/net 2>/dev/null && echo *)"
echo "proxy \${HTTPS_PROXY:-\${https_proxy:-none}}"
`;

/**
 * Makes a sandbox as a call would get it, looks around in it and removes it. One check after the other; what depends on
 * a failed one is left out. Never throws.
 */
export async function examine(hands: Hands, owner: Omit<SandboxOwner, 'session' | 'record'>): Promise<Check[]> {
  const checks: Check[] = [];
  const ask = async (what: Check['what'], about: () => Promise<string>): Promise<boolean> => {
    try {
      checks.push({ what, ok: true, text: await about() });
      return true;
    } catch (error) {
      checks.push({ what, ok: false, text: messageOf(error) });
      return false;
    }
  };
  if (!(await ask('engine', () => hands.diagnose(owner.environment)))) return checks;
  // Belongs to no session: nothing of it is logged, and if it were left over it would be reaped.
  const whole: SandboxOwner = { ...owner, session: mint.session(), record: async () => {} };
  const id = mint.sandbox();
  try {
    let sandbox: Sandbox | undefined;
    const from = performance.now();
    const made = await ask('image', async () => {
      const { sandbox: one, detail } = await hands.make(whole, id);
      sandbox = one;
      return `${hands.recipe(owner.environment)}: ${detail}, ready after ${Math.round(performance.now() - from)} ms.`;
    });
    if (made && sandbox) checks.push(...(await lookAround(sandbox)));
  } finally {
    await hands.discard(whole.session, id);
  }
  return checks;
}

async function lookAround(sandbox: Sandbox): Promise<Check[]> {
  let answers: Map<string, string>;
  try {
    answers = await answersOf(sandbox);
  } catch (error) {
    return [{ what: 'mounts', ok: false, text: messageOf(error) }];
  }
  const answer = (name: string) => answers.get(name) || 'unknown';
  const writable = answer('writable') === 'yes';
  const guarded = answer('guarded') === 'yes';
  const links = answer('links')
    .split(' ')
    .filter((link) => link !== 'lo');
  const proxy = answer('proxy');
  return [
    {
      what: 'mounts',
      ok: writable && guarded,
      text: `The folder is at ${sandbox.workspace} and ${writable ? 'can be written' : 'can only be read: tools that write will fail'}; what the host runs ${guarded ? 'is write-protected' : 'is NOT write-protected'}.`,
    },
    {
      what: 'user',
      ok: writable,
      text: `Commands run as ${answer('user')}; the folder belongs to ${answer('owner')} there. Drover never changes an owner.`,
    },
    {
      what: 'network',
      ok: true,
      text: `${links.length === 0 || links[0] === 'unknown' ? 'No network of its own' : `Interfaces: ${links.join(', ')}`}; ${proxy === 'none' ? 'no way out' : `the way out is the proxy at ${proxy.replace(/\/\/[^@/]*@/, '//')}`}.`,
    },
  ];
}

async function answersOf(sandbox: Sandbox): Promise<Map<string, string>> {
  const result = await sandbox.run({
    executionId: mint.execution(),
    argv: ['sh', '-c', QUESTIONS, 'examine', sandbox.workspace],
    timeoutMs: RUN_MS,
    signal: AbortSignal.timeout(RUN_MS * 2),
  });
  const lines = new TextDecoder().decode(result.stdout).split('\n');
  return new Map(
    lines.map((line): [string, string] => {
      const at = line.indexOf(' ');
      return at === -1 ? [line, ''] : [line.slice(0, at), line.slice(at + 1).trim()];
    }),
  );
}
