import type { SandboxId, SessionId } from '../../protocol/ids.ts';

/** Labels on everything made in an engine: with the log they are the only memory of what exists. */
export const LABEL = {
  session: 'drover.session',
  sandbox: 'drover.sandbox',
  workspace: 'drover.workspace',
  /** The workspace folder's path inside. */
  inside: 'drover.inside',
} as const;

export function labelsFor(
  owner: { session: SessionId; workspaceFolder: string },
  sandbox: SandboxId,
): Record<string, string> {
  return {
    [LABEL.session]: owner.session,
    [LABEL.sandbox]: sandbox,
    [LABEL.workspace]: owner.workspaceFolder,
  };
}

/** An engine's `filters` for containers that carry all these labels. */
export const withLabels = (labels: Partial<Record<keyof typeof LABEL, string>>): { label: string[] } => ({
  label: Object.entries(labels).map(([name, value]) => `drover.${name}=${value}`),
});
