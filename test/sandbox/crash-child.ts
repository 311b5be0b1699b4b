import { z } from 'zod';
import { EnvironmentConfig, SandboxLifetime } from '../../src/protocol/environment.ts';
import { ExecutionId, SessionId } from '../../src/protocol/ids.ts';
import { createSandboxProvider } from '../../src/sandbox/provider.ts';
import { createEgress } from '../../src/vault/proxy.ts';
import { environmentOf } from './rig.ts';

/*
 * A process of its own that starts a command in a sandbox, says so, and is then killed by the test.
 * Its one argument is JSON.
 */
const Input = z.object({
  session: SessionId,
  execution: ExecutionId,
  workspace: z.string(),
  cache: z.string(),
  environment: EnvironmentConfig,
  command: z.string(),
  lifetime: SandboxLifetime,
  /** It stays, as a server does. */
  stays: z.boolean(),
});
const input = Input.parse(JSON.parse(process.argv[2] ?? ''));

const provider = createSandboxProvider({
  nodePath: process.execPath,
  devcontainerCli: '',
  cacheFolder: input.cache,
  egress: createEgress(),
});
const sandbox = await provider.acquire({
  session: input.session,
  environment: { ...environmentOf(input.environment), lifetime: input.lifetime },
  workspaceFolder: input.workspace,
  record: async () => {},
});
const tell = (chunk: Uint8Array) => process.stdout.write(`${sandbox.id} ${new TextDecoder().decode(chunk)}`);
const request = { executionId: input.execution, argv: ['sh', '-c', input.command] };
if (input.stays) {
  const program = await sandbox.open(request);
  program.stdout.on('data', tell);
  await program.ended;
} else {
  await sandbox.run({ ...request, timeoutMs: 60_000, signal: new AbortController().signal, onOutput: tell });
}
