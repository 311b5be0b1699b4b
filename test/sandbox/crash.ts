import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { EnvironmentConfig, SandboxLifetime } from '../../src/protocol/environment.ts';
import { type ExecutionId, mint, SandboxId } from '../../src/protocol/ids.ts';
import type { SandboxOwner } from '../../src/sandbox/sandbox.ts';
import type { Rig } from './rig.ts';

const CHILD = fileURLToPath(new URL('./crash-child.ts', import.meta.url));

/**
 * Starts a command in a sandbox from a process of its own, and kills that process once the command has printed
 * something. What it leaves is what a crash leaves. `stays`: it is opened, as a server is.
 */
export async function crashUnder(
  rig: Rig,
  environment: EnvironmentConfig,
  command: string,
  lifetime: SandboxLifetime = 'session',
  stays = false,
): Promise<{ owner: SandboxOwner; id: SandboxId; executionId: ExecutionId }> {
  const session = mint.session();
  const executionId = mint.execution();
  const input = {
    session,
    execution: executionId,
    workspace: rig.workspace,
    cache: rig.cache,
    environment,
    command,
    lifetime,
    stays,
  };
  const child = spawn(process.execPath, [CHILD, JSON.stringify(input)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [first] = await once(child.stdout.setEncoding('utf8'), 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
  const id = SandboxId.parse(String(first).split(' ')[0]);
  const owner = rig.owner(environment);
  return { owner: { ...owner, session, environment: { ...owner.environment, lifetime } }, id, executionId };
}
