import * as vscode from 'vscode';
import type { Disposable } from '../protocol/disposable.ts';
import { Disposables } from '../protocol/disposable.ts';
import type { Sessions } from './sessions.ts';
import { waitingCalls } from './waiting.ts';

/** The status bar item, the view's badge and message, and the context keys: what needs a person, at a glance. */
export class Status implements Disposable {
  readonly #sessions: Sessions;
  readonly #view: vscode.TreeView<unknown>;
  readonly #item = vscode.window.createStatusBarItem('drover.waiting', vscode.StatusBarAlignment.Left, 10);
  readonly #owned = new Disposables();
  readonly #keys = new Map<string, unknown>();

  constructor(sessions: Sessions, view: vscode.TreeView<unknown>) {
    this.#sessions = sessions;
    this.#view = view;
    this.#item.name = 'Drover';
    this.#owned.add(this.#item);
    this.#owned.add(sessions.onChange(() => this.#update()));
    void sessions.ready.then(() => this.#whenRead());
    this.#update();
  }

  /**
   * The welcome shows only where it is known that there is nothing: VS Code would show it too while the extension host
   * is restarted, and then it looks as if all sessions were gone.
   */
  #whenRead(): void {
    const update = () => this.#key('drover.noSessions', this.#sessions.all().length === 0);
    this.#owned.add(this.#sessions.onChange(update));
    update();
  }

  #update(): void {
    const waiting = waitingCalls(this.#sessions).length;
    const running = this.#sessions.active().filter((session) => session.running && !session.interrupted).length;
    this.#show(waiting, running);
    this.#key('drover.pendingApprovals', waiting);
    this.#key('drover.sessionRunning', running > 0);
    this.#view.badge =
      waiting > 0
        ? { value: waiting, tooltip: `${waiting} call${waiting === 1 ? '' : 's'} waiting for you` }
        : undefined;
    const restricted = !vscode.workspace.isTrusted && this.#sessions.all().length > 0;
    this.#view.message = restricted ? 'Restricted Mode: sessions can be read, and nothing runs.' : '';
  }

  #show(waiting: number, running: number): void {
    if (this.#sessions.all().length === 0) {
      this.#item.hide();
      return;
    }
    if (waiting > 0) {
      this.#item.text = `$(bell-dot) Drover: ${waiting} waiting`;
      this.#item.tooltip = 'An agent asks before it goes on. Click to see the oldest question.';
      this.#item.command = 'drover.focusApproval';
      this.#item.backgroundColor = new vscode.ThemeColor('statusBarItem.warningBackground');
    } else {
      this.#item.text = running > 0 ? `$(sync~spin) Drover: ${running} running` : '$(check) Drover';
      this.#item.tooltip = `${running > 0 ? 'Show the sessions' : 'Nothing waits for you. Show the sessions'}${this.#engines()}`;
      this.#item.command = 'drover.sessions.focus';
      this.#item.backgroundColor = undefined;
    }
    this.#item.accessibilityInformation = {
      label:
        waiting > 0 ? `Drover: ${waiting} calls waiting for you` : `Drover: ${running} running, nothing waits for you`,
    };
    this.#item.show();
  }

  /** Which engine runs the sandboxes and why this one, as far as one was needed. */
  #engines(): string {
    const projects = new Set(this.#sessions.all().map((session) => session.project));
    const serving = [...projects].flatMap((project) => project.running?.sandboxes.serving() ?? []);
    return serving.length > 0 ? `\nSandboxes: ${[...new Set(serving)].join('; ')}` : '';
  }

  #key(name: string, value: unknown): void {
    if (this.#keys.get(name) === value) return;
    this.#keys.set(name, value);
    void vscode.commands.executeCommand('setContext', name, value);
  }

  dispose(): void {
    this.#owned.dispose();
  }
}
