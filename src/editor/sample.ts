import { execFile } from 'node:child_process';
import { cp, mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as vscode from 'vscode';
import { DroverError, messageOf } from '../protocol/errors.ts';

const run = promisify(execFile);
/** A file only the bundled sample has. */
const MARK = '.drover-sample';

/** True if the folder is a copy of the bundled sample project. */
export async function isSample(folder: string): Promise<boolean> {
  return await there(join(folder, MARK));
}

/**
 * Copies the bundled sample to a folder of its own, makes it a git repository where there is git, and opens it in a
 * new window (in this one if nothing is open here). Each copy is new: what an earlier rehearsal did is left alone.
 */
export async function openSample(extension: vscode.Uri, storage: vscode.Uri): Promise<void> {
  const target = await freshFolder(storage.fsPath);
  try {
    await cp(vscode.Uri.joinPath(extension, 'sample').fsPath, target, { recursive: true });
  } catch (error) {
    throw new DroverError(
      'settings',
      `The sample project could not be copied to ${target}: ${messageOf(error)}. Make room or permit writing there, and try again.`,
      { cause: error },
    );
  }
  await initRepository(target);
  const newWindow = (vscode.workspace.workspaceFolders ?? []).length > 0;
  await vscode.commands.executeCommand('vscode.openFolder', vscode.Uri.file(target), { forceNewWindow: newWindow });
}

async function freshFolder(storage: string): Promise<string> {
  const base = join(storage, 'samples');
  await mkdir(base, { recursive: true });
  for (let number = 1; ; number += 1) {
    const folder = join(base, number === 1 ? 'sample' : `sample-${number}`);
    if (!(await there(folder))) return folder;
  }
}

/** No git is no harm: the rehearsal does without. */
async function initRepository(folder: string): Promise<void> {
  const git = (...args: string[]) =>
    run('git', ['-c', 'user.name=Drover', '-c', 'user.email=drover@localhost', '-c', 'commit.gpgsign=false', ...args], {
      cwd: folder,
      timeout: 20_000,
    });
  try {
    await git('init', '-q');
    await git('add', '-A');
    await git('commit', '-qm', 'The sample project');
  } catch {
    return;
  }
}

async function there(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch {
    return false;
  }
}
