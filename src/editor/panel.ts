import * as vscode from 'vscode';
import { Disposables, disposable } from '../protocol/disposable.ts';
import type { EventId } from '../protocol/ids.ts';
import type { HostMessage, PanelMessage, Preview } from '../protocol/panel.ts';
import type { Redactor } from '../vault/redactor.ts';
import { standing, standingText } from './describe.ts';
import type { LiveSession } from './live-session.ts';
import { panelFiles, panelHtml } from './panel-html.ts';
import { handle, type PanelActions } from './panel-messages.ts';
import { PreviewBuffer } from './preview-buffer.ts';
import { RecordStream } from './record-stream.ts';

const BEAT_MS = 1000;
/** The panel gives its host up after 3.4 s of silence; after a stall of this many ms it is greeted anew. */
const STALL_MS = 2800;

/**
 * The host's side of one panel. It keeps nothing: a panel that is hidden is gone, and when it is shown again it says
 * `ready` and gets everything from the log.
 */
export class SessionPanel {
  readonly session: LiveSession;
  readonly #panel: vscode.WebviewPanel;
  readonly #redactor: Redactor;
  readonly #owned = new Disposables();
  readonly #previews: PreviewBuffer;
  /** The stream to the page that is there now; undefined until it says `ready`. */
  #stream: RecordStream | undefined;
  #lastAccess = '';
  #lastBeat = 0;
  /** What the page is to do once it is there. */
  #later: HostMessage[] = [];

  constructor(
    panel: vscode.WebviewPanel,
    session: LiveSession,
    extension: vscode.Uri,
    actions: PanelActions,
    redactor: Redactor,
  ) {
    this.#panel = panel;
    this.#redactor = redactor;
    this.session = session;
    this.#previews = new PreviewBuffer((preview) => this.#send({ type: 'preview', preview }));
    panel.webview.options = { enableScripts: true, localResourceRoots: [panelFiles(extension)] };
    panel.iconPath = {
      light: vscode.Uri.joinPath(extension, 'media', 'drover-light.svg'),
      dark: vscode.Uri.joinPath(extension, 'media', 'drover-dark.svg'),
    };
    this.#owned.add(
      panel.webview.onDidReceiveMessage((message: PanelMessage) => {
        if (message.type === 'ready') this.#greet();
        else void handle(message, this.session, actions, (reply) => this.#send(reply));
      }),
    );
    this.#owned.add(panel.onDidChangeViewState(() => this.#visibility()));
    this.#owned.add(this.#previews);
    const beat = setInterval(() => this.#beat(), BEAT_MS);
    this.#owned.add(disposable(() => clearInterval(beat)));
    this.#owned.add(disposable(() => this.#stream?.dispose()));
    panel.webview.html = panelHtml(panel.webview, extension);
    this.update();
  }

  get visible(): boolean {
    return this.#panel.visible;
  }

  get title(): string {
    return this.#panel.title;
  }

  get active(): boolean {
    return this.#panel.active;
  }

  show(): void {
    this.#panel.reveal(undefined, false);
  }

  reveal(call: EventId): void {
    this.#whenThere({ type: 'reveal', id: call });
  }

  focusApproval(): void {
    this.#whenThere({ type: 'focus_approval' });
  }

  preview(preview: Preview): void {
    this.#previews.add(preview);
  }

  /** The session may have changed: its title, and whether this window may write. */
  update(): void {
    const where = standing(this.session);
    const title = where === 'done' ? this.session.title : `${this.session.title} · ${standingText[where]}`;
    if (this.#panel.title !== title) this.#panel.title = title;
    const message = this.#access();
    const text = JSON.stringify(message);
    if (text !== this.#lastAccess) this.#send(message);
    this.#lastAccess = text;
  }

  onDidChange(listener: () => void): void {
    this.#owned.add(this.#panel.onDidChangeViewState(listener));
  }

  onDidDispose(listener: () => void): void {
    this.#owned.add(this.#panel.onDidDispose(listener));
  }

  /** Lets go of the page without closing the tab. */
  /** Closes the tab. */
  close(): void {
    this.#panel.dispose();
  }

  dispose(): void {
    this.#owned.dispose();
  }

  #greet(): void {
    this.#stream?.dispose();
    this.#lastBeat = Date.now();
    const stream = new RecordStream(
      this.session,
      (message) => this.#post(message),
      (records) => {
        this.#previews.flush();
        for (const record of records) this.#previews.settled(record);
      },
    );
    this.#stream = stream;
    const { access, interrupted } = this.#access();
    this.#send({ type: 'hello', sessionId: this.session.id, access, now: Date.now() });
    this.#send({ type: 'access', access, interrupted });
    void stream.start().then(() => {
      if (this.#stream !== stream) return;
      for (const preview of this.#previews.replay()) this.#send({ type: 'preview', preview });
      const problem = this.session.broken ?? this.session.damage;
      if (problem) this.#send({ type: 'problem', message: problem });
      for (const message of this.#later.splice(0)) this.#send(message);
    });
  }

  #access(): Extract<HostMessage, { type: 'access' }> {
    const access = this.session.access(vscode.workspace.isTrusted);
    return { type: 'access', access, interrupted: this.session.interrupted };
  }

  #visibility(): void {
    if (this.#panel.visible) return;
    // A hidden page is thrown away; it will say `ready` when it is shown again.
    this.#stream?.dispose();
    this.#stream = undefined;
  }

  #beat(): void {
    if (!this.#stream || !this.#panel.visible) return;
    const now = Date.now();
    if (now - this.#lastBeat > STALL_MS) {
      this.#greet();
    } else {
      this.#lastBeat = now;
      this.#send({ type: 'alive', now });
    }
  }

  #whenThere(message: HostMessage): void {
    if (this.#stream) this.#send(message);
    else this.#later.push(message);
  }

  /** The one way to the page. A log of before a secret was put into a vault may still have it. */
  #post(message: HostMessage): Thenable<boolean> {
    return this.#panel.webview.postMessage(this.#redactor.value(message, () => undefined));
  }

  #send(message: HostMessage): void {
    if (this.#stream) void this.#post(message);
  }
}
