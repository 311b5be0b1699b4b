import * as vscode from 'vscode';
import type { Disposable } from '../protocol/disposable.ts';
import { Disposables, disposable } from '../protocol/disposable.ts';
import type { Actions } from './actions.ts';
import type { LiveSession } from './live-session.ts';
import { needTrust, Refusal } from './refusal.ts';
import type { Sessions } from './sessions.ts';

/** Files change many times while somebody edits them: asked once it has been quiet, in ms. */
const QUIET_MS = 2_000;
/** What a Dockerfile copies from elsewhere is not followed. */
const FILES = '{.devcontainer.json,.devcontainer/**}';

/** Removes a session’s sandbox, so that its next call gets one made from what the folder says now. */
export async function rebuildSandbox(actions: Actions, session: LiveSession): Promise<void> {
  needTrust();
  if (session.running)
    throw new Refusal('This session is at work in its sandbox; interrupt it first, then rebuild.', [
      { title: 'Interrupt', command: 'drover.interrupt', args: [session.id] },
    ]);
  await actions.removeSandboxes(session, 'it is rebuilt');
}

/** Offers to rebuild where a sandbox was made from files that have changed since. */
export class DevcontainerWatch implements Disposable {
  readonly #owned = new Disposables();
  readonly #sessions: Sessions;
  readonly #rebuild: (session: LiveSession) => Promise<void>;
  #quiet: NodeJS.Timeout | undefined;

  /** `folders`: where the files are watched. */
  constructor(
    sessions: Sessions,
    rebuild: (session: LiveSession) => Promise<void>,
    folders: readonly { uri: vscode.Uri }[] = vscode.workspace.workspaceFolders ?? [],
  ) {
    this.#sessions = sessions;
    this.#rebuild = rebuild;
    this.#owned.add(disposable(() => clearTimeout(this.#quiet)));
    for (const folder of folders) {
      const watcher = vscode.workspace.createFileSystemWatcher(new vscode.RelativePattern(folder.uri, FILES));
      const changed = () => this.#changed(folder.uri);
      this.#owned.add(watcher);
      for (const on of [watcher.onDidChange, watcher.onDidCreate, watcher.onDidDelete]) this.#owned.add(on(changed));
    }
  }

  #changed(folder: vscode.Uri): void {
    clearTimeout(this.#quiet);
    this.#quiet = setTimeout(() => void this.#offer(folder), QUIET_MS);
  }

  async #offer(folder: vscode.Uri): Promise<void> {
    const made = this.#sessions
      .active()
      .filter((session) => session.project.uri.toString() === folder.toString() && olderThanFiles(session));
    const [first] = made;
    if (!first) return;
    const go = 'Rebuild';
    const whose = made.length === 1 ? `The sandbox of “${first.title}” was` : `${made.length} sandboxes were`;
    const message = `${whose} made before the devcontainer’s files changed. What is installed inside is lost when it is rebuilt; the workspace is not touched.`;
    if ((await vscode.window.showInformationMessage(message, go)) !== go) return;
    for (const session of made) await this.#rebuild(session);
  }

  dispose(): void {
    this.#owned.dispose();
  }
}

/** One that is just being made reads the files anyway; and folders stand in for missing ones while it is made. */
function olderThanFiles({ state }: LiveSession): boolean {
  if (!state?.sandbox || state.environment.config.type !== 'devcontainer') return false;
  const box = state.sandboxes.get(state.sandbox);
  return box?.state === 'ready' && Date.now() - Date.parse(box.at) > QUIET_MS * 2;
}
