import * as vscode from 'vscode';
import { Disposables, Emitter } from '../protocol/disposable.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { Preview } from '../protocol/panel.ts';
import type { Redactor } from '../vault/redactor.ts';
import { importedPath } from './imported-id.ts';
import type { LiveSession } from './live-session.ts';
import { SessionPanel } from './panel.ts';
import { sentenceHtml } from './panel-html.ts';
import type { PanelMemory } from './panel-memory.ts';
import type { PanelActions } from './panel-messages.ts';
import type { Sessions } from './sessions.ts';

export const PANEL_TYPE = 'drover.session';

/** The window's panels, at most one per session. */
export class Panels {
  readonly #redactor: Redactor;
  readonly #extension: vscode.Uri;
  readonly #sessions: Sessions;
  readonly #actions: PanelActions;
  readonly #panels = new Map<SessionId, SessionPanel>();
  readonly #memory: PanelMemory;
  readonly #left: ReturnType<PanelMemory['left']>;
  #activeRunning: boolean | undefined;
  #activeIsolated: boolean | undefined;
  readonly #owned = new Disposables();
  readonly #visibleChanged = new Emitter<void>();
  /** A panel has come on or left the screen. */
  readonly onVisibleChange = this.#visibleChanged.on;

  /** @param redactor what it takes out never reaches a page */
  constructor(
    extension: vscode.Uri,
    sessions: Sessions,
    actions: PanelActions,
    memory: PanelMemory,
    redactor: Redactor,
  ) {
    this.#redactor = redactor;
    this.#extension = extension;
    this.#sessions = sessions;
    this.#actions = actions;
    this.#memory = memory;
    this.#left = memory.left();
    this.#owned.add(
      sessions.onChange(() => {
        for (const panel of this.#panels.values()) panel.update();
        this.#changed();
      }),
    );
  }

  open(session: LiveSession, column: vscode.ViewColumn = vscode.ViewColumn.Active): SessionPanel {
    const known = this.#panels.get(session.id);
    if (known) {
      known.show();
      return known;
    }
    const panel = vscode.window.createWebviewPanel(PANEL_TYPE, session.title, column, { enableScripts: true });
    return this.#adopt(panel, session);
  }

  get(session: LiveSession): SessionPanel | undefined {
    return this.#panels.get(session.id);
  }

  /** The session whose panel the person is in. */
  active(): LiveSession | undefined {
    return [...this.#panels.values()].find((panel) => panel.active)?.session;
  }

  visible(session: LiveSession): boolean {
    return this.#panels.get(session.id)?.visible === true;
  }

  preview(id: SessionId, preview: Preview): void {
    this.#panels.get(id)?.preview(preview);
  }

  /** Gives a tab from before a reload its life back; all it needs is the session's id. */
  async restore(panel: vscode.WebviewPanel, state: unknown): Promise<void> {
    const id = sessionIdOf(state);
    const session = id && (await this.#find(id));
    if (!session) {
      const name = id ? `The session ${id}` : 'The session this panel showed';
      panel.webview.html = sentenceHtml(
        `${name} is not in this folder any more, so there is nothing to show; close this tab, or look for it in the Sessions view.`,
      );
      return;
    }
    if (this.#panels.has(session.id)) panel.dispose();
    else this.#adopt(panel, session);
  }

  /**
   * Replaces, in place, the tabs whose host died in this window: VS Code leaves their picture on the screen and tells
   * nobody. Tabs that are there after a reload are not touched: VS Code gives them back itself when they are looked at.
   */
  async replaceOrphans(): Promise<void> {
    const left = this.#left.splice(0);
    for (const tab of ourTabs()) {
      const at = left.findIndex((one) => one.label === tab.label);
      if (at < 0) continue;
      const [was] = left.splice(at, 1);
      const column = tab.group.viewColumn;
      const session = was && (await this.#find(was.session));
      await vscode.window.tabGroups.close(tab, true);
      if (session) this.open(session, column);
    }
    this.#changed();
  }

  /** The session of an id, in a folder of the window or in the exported file that the id names; undefined if it is gone. */
  async #find(id: SessionId): Promise<LiveSession | undefined> {
    const path = importedPath(id);
    if (path === undefined) return this.#sessions.find(id);
    const { ImportedSession } = await import('./imported-session.ts');
    return ImportedSession.from(path).catch(() => undefined);
  }

  #adopt(tab: vscode.WebviewPanel, session: LiveSession): SessionPanel {
    const panel = new SessionPanel(tab, session, this.#extension, this.#actions, this.#redactor);
    this.#panels.set(session.id, panel);
    panel.onDidChange(() => {
      this.#changed();
      this.#visibleChanged.fire();
    });
    panel.onDidDispose(() => {
      this.#panels.delete(session.id);
      panel.dispose();
      this.#changed();
      this.#visibleChanged.fire();
    });
    this.#changed();
    return panel;
  }

  #changed(): void {
    const running = this.active()?.running === true;
    if (running !== this.#activeRunning)
      void vscode.commands.executeCommand('setContext', 'drover.activeRunning', running);
    this.#activeRunning = running;
    const isolated = this.active()?.state?.environment.workspace === 'isolated';
    if (isolated !== this.#activeIsolated)
      void vscode.commands.executeCommand('setContext', 'drover.activeIsolated', isolated);
    this.#activeIsolated = isolated;
    const open = [...this.#panels.values()].map((panel) => ({ session: panel.session.id, label: panel.title }));
    void this.#memory.keep(open);
  }

  dispose(): void {
    this.#owned.dispose();
    for (const panel of this.#panels.values()) panel.dispose();
  }
}

/** VS Code puts a prefix before the view type it was given. */
const ourTabs = (): vscode.Tab[] =>
  vscode.window.tabGroups.all.flatMap((group) =>
    group.tabs.filter((tab) => tab.input instanceof vscode.TabInputWebview && tab.input.viewType.endsWith(PANEL_TYPE)),
  );

function sessionIdOf(state: unknown): SessionId | undefined {
  if (typeof state !== 'object' || state === null || !('sessionId' in state)) return undefined;
  return typeof state.sessionId === 'string' ? (state.sessionId as SessionId) : undefined;
}
