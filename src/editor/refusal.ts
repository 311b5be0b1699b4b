import * as vscode from 'vscode';
import { DroverError } from '../protocol/errors.ts';

/** Why a command can't be done here, in one sentence, with the ways out as buttons. */
export class Refusal extends DroverError {
  readonly ways: readonly Way[];

  constructor(message: string, ways: readonly Way[] = []) {
    super('settings', message);
    this.ways = ways;
  }
}

/** A button and the command behind it. */
export interface Way {
  title: string;
  command: string;
  args?: unknown[];
}

/** Shows the refusal and, when a way out is chosen, takes it. */
export async function showRefusal(refusal: Refusal): Promise<void> {
  const picked = await vscode.window.showWarningMessage(refusal.message, ...refusal.ways.map((way) => way.title));
  const way = refusal.ways.find((one) => one.title === picked);
  if (way) await vscode.commands.executeCommand(way.command, ...(way.args ?? []));
}

export const noFolder = (): Refusal =>
  new Refusal('Drover works on a folder and none is open, so there is nothing to run on; open one first.', [
    { title: 'Open Folder', command: 'vscode.openFolder' },
    { title: 'Open the Sample', command: 'drover.openSample' },
  ]);

export const noDisk = (): Refusal =>
  new Refusal(
    'Drover runs commands on files and keeps its log beside them, but this folder is not on a disk; open one that is.',
    [{ title: 'Open Folder', command: 'vscode.openFolder' }],
  );

/** Throws unless the person has said that they trust what is in the folder. */
export function needTrust(): void {
  if (vscode.workspace.isTrusted) return;
  throw new Refusal(
    'This folder is open in Restricted Mode, so Drover runs nothing in it; trust the folder to go on, or just read the sessions that are here.',
    [{ title: 'Manage Trust', command: 'workbench.trust.manage' }],
  );
}
