import * as vscode from 'vscode';
import { verifyReport } from '../log/verify-report.ts';
import type { Disposable } from '../protocol/disposable.ts';
import { messageOf } from '../protocol/errors.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { LiveSession } from './live-session.ts';
import type { Sessions } from './sessions.ts';

const SCHEME = 'drover-log-check';

/**
 * Reports on sessions' logs as read-only documents. A report is made when its document is opened, from the disk, and
 * anew each time it is asked for: the document's address is all there is to it, so it comes back after a reload.
 */
export class LogChecks implements vscode.TextDocumentContentProvider, Disposable {
  readonly #sessions: Sessions;
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#changed.event;
  /** Last: what is registered must be whole. */
  readonly #registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

  constructor(sessions: Sessions) {
    this.#sessions = sessions;
  }

  /** Checks the session's log and shows the report. */
  async show(session: LiveSession): Promise<void> {
    const name = session.title
      .replace(/[\\/\s]+/g, ' ')
      .trim()
      .slice(0, 60);
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/Log of ${name || session.id}`, query: session.id });
    const isOpen = vscode.workspace.textDocuments.some((document) => document.uri.toString() === uri.toString());
    const checking = { location: vscode.ProgressLocation.Window, title: 'Drover: checking the log' };
    const document = await vscode.window.withProgress(checking, async () => vscode.workspace.openTextDocument(uri));
    if (isOpen) this.#changed.fire(uri);
    await vscode.window.showTextDocument(document, { preview: true });
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const session = await this.#sessions.find(uri.query as SessionId);
    if (!session) return 'This session is not in the open folders any more.\n';
    const { store, uri: folder } = session.project;
    const path = vscode.Uri.joinPath(folder, '.drover', 'sessions', session.id).fsPath;
    try {
      return verifyReport({ title: session.title, path, at: new Date() }, await store.verify(session.id));
    } catch (error) {
      return `The log could not be checked: ${messageOf(error)}\n`;
    }
  }

  dispose(): void {
    this.#registration.dispose();
    this.#changed.dispose();
  }
}
