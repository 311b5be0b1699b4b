import * as vscode from 'vscode';
import { ImportedSession } from './imported-session.ts';
import type { Panels } from './panels.ts';
import { Refusal } from './refusal.ts';

/** Shows an exported session in a panel, read-only. Asks for the file if none is named. */
export async function openExportedSession(panels: Panels, named: unknown): Promise<void> {
  const uri = named instanceof vscode.Uri ? named : await ask();
  if (!uri) return;
  if (uri.scheme !== 'file') throw new Refusal('This file is not on a disk of this machine; save it there first.');
  const title = 'Drover: checking the exported session';
  const location = vscode.ProgressLocation.Notification;
  const session = await vscode.window.withProgress({ location, title }, () => ImportedSession.from(uri.fsPath));
  // What does not hold stands at the top of the panel.
  panels.open(session);
}

async function ask(): Promise<vscode.Uri | undefined> {
  const picked = await vscode.window.showOpenDialog({
    title: 'Drover: Open Exported Session',
    openLabel: 'Open',
    filters: { 'Exported sessions': ['jsonl'], 'All files': ['*'] },
  });
  return picked?.[0];
}
