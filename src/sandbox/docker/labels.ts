import { hostname } from 'node:os';
import type { SandboxId, SessionId } from '../../protocol/ids.ts';

/** Labels on everything made in an engine: with the log they are the only memory of what exists. */
export const LABEL = {
  session: 'drover.session',
  sandbox: 'drover.sandbox',
  workspace: 'drover.workspace',
  /** Name of the machine that has the workspace folder: others may use the same engine. */
  host: 'drover.host',
  /** Fence of the lease under which it was made. */
  lease: 'drover.lease',
  /** The workspace folder's path inside. */
  inside: 'drover.inside',
  /** Of an image: it is another one with the packages of an environment, kept so that they are installed once. */
  packages: 'drover.packages',
} as const;

export function labelsFor(
  owner: { session: SessionId; workspaceFolder: string; lease?: number },
  sandbox: SandboxId,
): Record<string, string> {
  return {
    [LABEL.session]: owner.session,
    [LABEL.sandbox]: sandbox,
    [LABEL.workspace]: owner.workspaceFolder,
    [LABEL.host]: hostname(),
    ...(owner.lease === undefined ? {} : { [LABEL.lease]: String(owner.lease) }),
  };
}

/** An engine's `filters` for containers that carry all these labels. */
export const withLabels = (labels: Partial<Record<keyof typeof LABEL, string>>): { label: string[] } => ({
  label: Object.entries(labels).map(([name, value]) => `drover.${name}=${value}`),
});
