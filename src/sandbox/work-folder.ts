import { join } from 'node:path';
import type { Environment } from '../protocol/environment.ts';
import type { SessionId } from '../protocol/ids.ts';

/**
 * The folder on the host that a session's calls see as their workspace: the workspace folder itself, or with
 * `workspace: isolated` the session's own copy. Absolute; whether it exists yet is not asked.
 */
export function workFolder(of: {
  session: SessionId;
  environment: Pick<Environment, 'workspace'>;
  workspaceFolder: string;
}): string {
  if (of.environment.workspace !== 'isolated') return of.workspaceFolder;
  return join(of.workspaceFolder, '.drover', 'work', of.session);
}
