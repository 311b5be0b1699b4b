import type { SandboxLifetime } from '../protocol/environment.ts';
import type { AnyTool } from './tool.ts';

const FRESH =
  'Runs a shell command in a fresh sandbox that ends with the call, with bash where it is installed. It starts in the workspace, and only what is written there stays: working directory, variables, background processes, installed programs and files elsewhere are gone afterwards. There is no terminal and no standard input. Output and exit code come back when the command has ended.';

/** A tool as it is where each call has a sandbox of its own: a shell keeps nothing from one call to the next. */
export function describedFor(tool: AnyTool, lifetime: SandboxLifetime): AnyTool {
  if (lifetime === 'session' || tool.spec.name !== 'bash') return tool;
  return { ...tool, spec: { ...tool.spec, description: FRESH } };
}
