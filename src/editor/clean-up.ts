import * as vscode from 'vscode';
import type { App } from './app.ts';
import { needTrust } from './refusal.ts';

/** Removes what no session of a folder needs any more, and says how much that was. */
export async function cleanUp(app: App): Promise<void> {
  const project = await app.projects.choose();
  if (!project) return;
  needTrust();
  await app.sessions.ready;
  const { sandboxes, images, others } = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: 'Drover: removing what no session needs…' },
    async () => (await project.engine()).sandboxes.cleanUp(project.path, app.engines.wanted(project)),
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
}

const count = (number: number, one: string, many: string): string =>
  number === 0 ? '' : `${number} ${number === 1 ? one : many}`;
