import { readFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import * as vscode from 'vscode';
import { DroverError, messageOf } from '../protocol/errors.ts';
import type { EventId } from '../protocol/ids.ts';
import { editorDesk } from './desk.ts';
import type { DiffDocuments } from './diff-documents.ts';
import { type FileCall, fileCall } from './file-call.ts';
import { hostPath } from './host-path.ts';
import type { LiveSession } from './live-session.ts';
import { Refusal } from './refusal.ts';

/** Files that are larger, in bytes, are not compared: the editor would not show them as text either. */
const MAX_BYTES = 20 * 1024 * 1024;

/**
 * Opens VS Code's diff editor on a call that writes a file: before it ran, the file as it is and as it would be;
 * afterwards what the log knows. Throws `Refusal` with the reason where there is nothing to compare.
 */
export async function showDiff(documents: DiffDocuments, session: LiveSession, id: EventId): Promise<void> {
  const call = session.state?.calls.get(id);
  const change = call && fileCall(call);
  if (!call || !change) throw new Refusal('Only a call that edits or writes a file has a diff to show.');
  const path = hostPath(session.folder, change.path);
  if (!path) throw new Refusal(`${change.path} is not inside the workspace folder, so it can't be compared here.`);
  const current = await bytesOf(path);
  const sides = call.result?.outcome === 'ok' ? done(change, current) : await ahead(change, current, path);
  const file = vscode.Uri.file(path);
  const name = vscode.workspace.asRelativePath(file, false);
  const uri = (side: Side) => (side === 'file' ? file : documents.add(name, side.text));
  await vscode.commands.executeCommand('vscode.diff', uri(sides.left), uri(sides.right), `${name} (${sides.what})`, {
    preview: true,
  });
}

type Side = 'file' | { text: string };
interface Sides {
  left: Side;
  right: Side;
  /** Stands in the title after the file's name. */
  what: string;
}

async function ahead(change: FileCall, current: Uint8Array | null, path: string): Promise<Sides> {
  // What reads and writes files is loaded when there is something to compare.
  const { proposed } = await import('./proposed.ts');
  const next = proposed(change, current, editorDesk(dirname(path)).encoding(basename(path)));
  if ('problem' in next) throw new Refusal(next.problem);
  return { left: current === null ? { text: '' } : 'file', right: next, what: 'proposed by Drover' };
}

/** The log has what an edit replaced and what a write wrote, not the whole file before it. */
function done(change: FileCall, current: Uint8Array | null): Sides {
  if (change.tool === 'edit') {
    return { left: { text: change.oldText }, right: { text: change.newText }, what: 'the part edited by Drover' };
  }
  return {
    left: { text: change.content },
    right: current === null ? { text: '' } : 'file',
    what: 'written by Drover ↔ now',
  };
}

/** The file, or null if there is none. Throws where it is no text an editor can show. */
async function bytesOf(path: string): Promise<Uint8Array | null> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw new DroverError('tool', `${path} can't be read to compare it: ${messageOf(error)}`, { cause: error });
  }
  if (bytes.length > MAX_BYTES) throw new Refusal(`${path} is too large, so there is no diff to show.`);
  return bytes;
}
