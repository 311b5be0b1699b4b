import * as vscode from 'vscode';
import type { App } from './app.ts';
import { needTrust } from './refusal.ts';

/** Says what would run the sandboxes of each environment of a folder, or why nothing can. */
export async function checkEngine(app: App): Promise<void> {
  const project = await app.projects.choose();
  if (!project) return;
  needTrust();
  const lines = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: 'Drover: looking for what can run a sandbox…' },
    async () => {
      const [catalog, engine] = await Promise.all([project.catalog(), project.engine()]);
      const environments = catalog.environments().filter((one) => one.archived_at === null);
      return Promise.all(
        environments.map(async (environment) => ({ environment, found: await engine.sandboxes.diagnose(environment) })),
      );
    },
  );
  for (const { environment, found } of lines) app.reporter.info(`${environment.name}: ${found.text}`);
  const good = lines.filter(({ found }) => found.ok);
  const text = (good.length > 0 ? good : lines).map(({ environment, found }) => `${environment.name}: ${found.text}`);
  const message = text.join(' · ') || 'No environment is defined for this folder.';
  const details = 'Details';
  const show = good.length > 0 ? vscode.window.showInformationMessage : vscode.window.showWarningMessage;
  if ((await show(message, details)) === details) app.reporter.showLog();
}
