import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import * as vscode from 'vscode';
import type { Desk } from '../tools/desk.ts';

/** What this window's editors know of the files of a workspace folder, for the tools that read and write them. */
export function editorDesk(folder: string): Desk {
  return {
    unsaved: async (path) => (await unsavedIn(join(folder, path))) !== undefined,
    encoding(path) {
      const uri = vscode.Uri.file(join(folder, path));
      const open = vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString());
      return open?.encoding ?? vscode.workspace.getConfiguration('files', uri).get<string>('encoding');
    },
  };
}

interface Unsaved {
  uri: vscode.Uri;
  save(): Thenable<boolean>;
}

/** The document with unsaved changes that would be saved over this file, by whatever name it was opened. */
export async function unsavedIn(path: string): Promise<Unsaved | undefined> {
  const dirty = [...vscode.workspace.textDocuments, ...vscode.workspace.notebookDocuments].filter(
    (one) => one.isDirty && one.uri.scheme === 'file',
  );
  if (dirty.length === 0) return undefined;
  const wanted = await realFile(path);
  const real = await Promise.all(dirty.map((one) => realFile(one.uri.fsPath)));
  return dirty.find((_, i) => real[i] === wanted);
}

/** A path without links; of a file that is not there, its folder's. */
async function realFile(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    const folder = await realpath(dirname(path)).catch(() => dirname(path));
    return join(folder, basename(path));
  }
}
