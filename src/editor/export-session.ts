import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { ExportFailed } from '../log/export/format.ts';
import { redactedRecord } from '../log/export/redact.ts';
import { exportSession as writeExport } from '../log/export/write.ts';
import { messageOf } from '../protocol/errors.ts';
import type { LogRecord, Seq } from '../protocol/record.ts';
import { fold } from '../session/fold.ts';
import { page } from '../session/page/page.ts';
import { STYLE } from '../session/page/style.ts';
import { ImportedSession } from './imported-session.ts';
import type { LiveSession } from './live-session.ts';
import { Refusal } from './refusal.ts';

/** What is made, and how much of the session is in it. */
export interface ExportChoice {
  form: 'file' | 'page';
  redact: boolean;
}

export interface ExportedHead {
  seq: Seq;
  hash: string;
}

interface ChoiceRow extends vscode.QuickPickItem, ExportChoice {}

const REDACTED = 'without tool inputs and outputs';

const choices: ChoiceRow[] = [
  {
    label: '$(file) File, with everything',
    detail: 'The log as it is and all stored values. Drover can open it again.',
    form: 'file',
    redact: false,
  },
  {
    label: `$(file) File, ${REDACTED}`,
    detail: 'Each is replaced by its length and SHA-256. What people and agents said stays, and may quote them.',
    form: 'file',
    redact: true,
  },
  {
    label: '$(globe) Web page, with everything',
    detail: 'To read and to print, in any browser; it needs no scripts and loads nothing.',
    form: 'page',
    redact: false,
  },
  { label: `$(globe) Web page, ${REDACTED}`, detail: 'The same, without them.', form: 'page', redact: true },
];

/** Asks what to make and where, makes it, and says what the head of the session is. */
export async function exportSession(session: LiveSession): Promise<void> {
  if (session instanceof ImportedSession)
    throw new Refusal('This session is shown from an exported file; copy that file instead.');
  const choice = await vscode.window.showQuickPick(choices, { title: `Drover: export “${session.title}”` });
  if (!choice) return;
  const target = await vscode.window.showSaveDialog({
    title: 'Drover: Export Session',
    defaultUri: vscode.Uri.file(join(session.project.path, fileName(session.title, choice.form))),
    filters: choice.form === 'file' ? { 'Exported sessions': ['jsonl'] } : { 'Web pages': ['html'] },
  });
  if (!target) return;
  if (target.scheme !== 'file') throw new Refusal('Only a place on a disk of this machine can be exported to.');
  const location = vscode.ProgressLocation.Notification;
  const title = 'Drover: exporting the session';
  const { head, message } = await vscode.window.withProgress({ location, title }, () =>
    exportTo(session, choice, target.fsPath, new Date().toISOString()),
  );
  const open = choice.form === 'page' ? 'Open in Browser' : 'Copy Head';
  if ((await vscode.window.showInformationMessage(message, open)) !== open) return;
  if (choice.form === 'page') await vscode.env.openExternal(target);
  else await vscode.env.clipboard.writeText(JSON.stringify(head));
}

/** Makes the file or the page. Throws `ExportFailed`. */
export async function exportTo(
  session: LiveSession,
  { form, redact }: ExportChoice,
  path: string,
  at: string,
): Promise<{ head: ExportedHead; message: string }> {
  const { head, missing } =
    form === 'file' ? await toFile(session, path, redact, at) : await toPage(session, path, redact, at);
  const lost = missing === 0 ? '' : ` ${missing} stored values are damaged or gone and are not in it.`;
  const words = `“${session.title}” was exported to ${path}.${lost} Its last record is ${head.seq}, hash ${head.hash}: who knows this can tell whether the file is whole.`;
  return { head, message: words };
}

interface Made {
  head: ExportedHead;
  missing: number;
}

async function toFile(session: LiveSession, path: string, redact: boolean, at: string): Promise<Made> {
  const { head, missing } = await writeExport(session.project.store.root, session.id, path, { redact, at });
  return { head, missing: missing.length };
}

async function toPage(session: LiveSession, path: string, redact: boolean, at: string): Promise<Made> {
  const { records } = await session.project.store.read(session.id);
  const shown: LogRecord[] = redact ? records.map(redactedRecord) : records;
  const last = shown.at(-1);
  if (!last) throw new ExportFailed('Nothing was exported: no record in this session’s log is whole.');
  const notes: string[] = [];
  if (session.damage) notes.push(session.damage);
  if (redact) notes.push('Tool inputs and outputs were taken out; their length and SHA-256 stand in their place.');
  const styleSha256 = createHash('sha256').update(STYLE).digest('base64');
  try {
    await writeFile(path, page(fold(shown), { exportedAt: at, notes, styleSha256 }));
  } catch (error) {
    throw new ExportFailed(
      `The session could not be exported to ${path}: ${messageOf(error)}. Choose another place, and try again.`,
      { cause: error },
    );
  }
  return { head: { seq: last.seq, hash: last.hash }, missing: 0 };
}

function fileName(title: string, form: ExportChoice['form']): string {
  const name = title
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 60);
  return `${name || 'session'}.${form === 'file' ? 'drover.jsonl' : 'html'}`;
}
