import * as vscode from 'vscode';
import type { ToolCall } from '../session/state.ts';
import { unsavedIn } from './desk.ts';
import { changedFile } from './file-call.ts';
import { Refusal } from './refusal.ts';

/** Throws if the call would write a file that has unsaved changes in an editor here and the person does not save them. */
export async function unsaved(folder: string, call: Pick<ToolCall, 'name' | 'input'>): Promise<void> {
  const path = changedFile(folder, call);
  const open = path === undefined ? undefined : await unsavedIn(path);
  if (!open) return;
  const name = vscode.workspace.asRelativePath(open.uri);
  const picked = await vscode.window.showWarningMessage(
    `${name} has unsaved changes here, and the agent's ${call.name} would not see them. Save them first, or leave the call waiting.`,
    'Save',
    'Leave It Waiting',
  );
  if (picked === 'Save' && (await open.save())) return;
  throw new Refusal(`${name} has unsaved changes, so the ${call.name} was not allowed; it still waits for you.`);
}
