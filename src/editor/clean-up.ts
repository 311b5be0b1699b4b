import * as vscode from 'vscode';
import type { Environment } from '../protocol/environment.ts';
import type { App } from './app.ts';
import type { Project } from './project.ts';
import { needTrust } from './refusal.ts';

/** Removes what no session of a folder needs any more, says how much that was, and offers to go on to what may be needed. */
export async function cleanUp(app: App): Promise<void> {
  const project = await app.projects.choose();
  if (!project) return;
  needTrust();
  await app.sessions.ready;
  const environments = (await project.catalog()).environments().filter((one) => one.archived_at === null);
  const packages = await remove(app, project, environments);
  if (packages === 0) return;
  const go = 'Remove Them Too';
  const kept = `The packages of ${count(packages, 'environment', 'environments')} stay installed for the next sandbox.`;
  if ((await vscode.window.showInformationMessage(kept, go)) === go) await remove(app, project, []);
}

/** Returns how many images with packages were kept. */
async function remove(app: App, project: Project, environments: readonly Environment[]): Promise<number> {
  const { sandboxes, images, others, packages } = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: 'Drover: removing what no session needs…' },
    async () => (await project.engine()).sandboxes.cleanUp(project.path, app.engines.wanted(project), environments),
  );
  const parts = [
    count(sandboxes, 'sandbox', 'sandboxes'),
    count(images, 'image', 'images'),
    count(others, 'network or volume', 'networks and volumes'),
  ];
  const removed = parts.filter((part) => part !== '').join(', ');
  void vscode.window.showInformationMessage(
    removed ? `Drover removed ${removed}. Sessions that are at work keep theirs.` : 'Drover found nothing to remove.',
  );
  return packages;
}

const count = (number: number, one: string, many: string): string =>
  number === 0 ? '' : `${number} ${number === 1 ? one : many}`;
