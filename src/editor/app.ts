import { setTimeout as sleep } from 'node:timers/promises';
import * as vscode from 'vscode';
import type { ModelClient } from '../harness/model.ts';
import { openCatalog } from '../log/catalog.ts';
import { openStore } from '../log/store.ts';
import { Disposables, disposable } from '../protocol/disposable.ts';
import type { EventId, SessionId } from '../protocol/ids.ts';
import { Actions } from './actions.ts';
import { type Answer, answer } from './approvals.ts';
import { BlobFiles } from './checkpoints/blob-files.ts';
import type { CommandId } from './command-ids.ts';
import { handlers } from './commands.ts';
import { continueSession, keyStored } from './continue.ts';
import { DiffDocuments } from './diff-documents.ts';
import { Engines } from './engines.ts';
import type { Environments } from './environments/manage.ts';
import { GoingOn } from './going-on.ts';
import type { LiveSession } from './live-session.ts';
import { LogChecks } from './log-checks.ts';
import { Notifications } from './notifications.ts';
import { PanelMemory } from './panel-memory.ts';
import { Panels } from './panels.ts';
import type { Project } from './project.ts';
import { Projects } from './projects.ts';
import { DevcontainerWatch, rebuildSandbox } from './rebuild.ts';
import { noFolder, Refusal, showRefusal } from './refusal.ts';
import { Reporter } from './reporter.ts';
import { revealSecret } from './reveal-secret.ts';
import { SecretKey } from './secret-key.ts';
import { accounts, Secrets, secretStore } from './secrets.ts';
import { Sessions } from './sessions.ts';
import { showDiff } from './show-diff.ts';
import { Status } from './status.ts';
import { SessionTree } from './tree.ts';
import type { Node } from './tree-nodes.ts';
import { type VaultNode, VaultTree } from './vault-tree.ts';

/** After this many ms, VS Code has given back the panels that are on the screen after a reload: what they show needs no notification. */
const PANELS_COME_BACK_MS = 2000;

/** How often, in ms, the ages in the tree are shown anew. */
const AGES_MS = 60_000;

/** The views, which are there before the rest is loaded. */
export interface Views {
  sessions: vscode.TreeView<Node>;
  sessionsChanged: vscode.EventEmitter<Node | undefined>;
  vaults: vscode.TreeView<VaultNode>;
  vaultsChanged: vscode.EventEmitter<VaultNode | undefined>;
}

/** The editor's part of Drover, once it is loaded: everything a command or a view may need. */
export class App {
  readonly extension: vscode.Uri;
  /** Of this extension, as its manifest says. */
  readonly version: string;
  readonly storage: vscode.Uri;
  readonly reporter: Reporter;
  readonly key: SecretKey;
  readonly secrets: Secrets;
  readonly vaultTree: VaultTree;
  readonly projects: Projects;
  readonly sessions: Sessions;
  readonly actions: Actions;
  readonly tree: SessionTree;
  readonly panels: Panels;
  readonly engines: Engines;
  #view: vscode.TreeView<Node> | undefined;
  readonly logChecks: LogChecks;
  readonly #diffs = new DiffDocuments();
  readonly #owned = new Disposables();
  #environments: Promise<Environments> | undefined;

  constructor(context: vscode.ExtensionContext) {
    this.extension = context.extensionUri;
    this.version = String(context.extension.packageJSON.version);
    this.storage = context.globalStorageUri;
    this.key = new SecretKey(context.secrets);
    this.secrets = new Secrets({
      storage: secretStore(context.secrets),
      accounts,
      key: this.key,
      alarm: (sentence) => this.reporter.notice(sentence),
    });
    this.reporter = new Reporter(this.secrets.redactor);
    this.engines = new Engines({
      secrets: this.secrets,
      reporter: this.reporter,
      extension: this.extension,
      version: this.version,
      storage: this.storage,
      memory: context.workspaceState,
      sessions: () => this.sessions,
      preview: (id, preview) => this.panels.preview(id, preview),
    });
    this.projects = new Projects({
      openStore: (root) => openStore({ root, door: this.secrets.door(root) }),
      openCatalog: (root) => openCatalog(root, { onProblem: (message) => this.reporter.notice(message) }),
      openCheckpoints: async (root) => {
        const { CheckpointStore } = await import('../sandbox/checkpoints/checkpoints.ts');
        return new CheckpointStore({ root, privateFolder: vscode.Uri.joinPath(this.storage, 'checkpoints').fsPath });
      },
      openEngine: (project) => this.engines.open(project),
    });
    const storesBelow = (root: string) =>
      this.projects
        .all()
        .find(({ store }) => store.root === root)
        ?.checkpoints();
    this.#owned.add(new BlobFiles(storesBelow));
    const failed = (error: unknown) => this.#background(error);
    this.sessions = new Sessions(this.projects, failed);
    this.actions = new Actions(this.sessions, failed);
    this.logChecks = this.#owned.add(new LogChecks(this.sessions));
    this.tree = new SessionTree(this.sessions, this.projects);
    this.vaultTree = new VaultTree(this.secrets, this.projects);
    this.panels = new Panels(
      this.extension,
      this.sessions,
      this.#panelActions(),
      new PanelMemory(context.workspaceState),
      this.secrets.redactor,
    );
  }

  /** Starts what shows itself without being asked: views, notifications, and sessions that go on. */
  start(views: Views): void {
    const { sessions: view, sessionsChanged: treeChanged, vaultsChanged } = views;
    this.#view = view;
    this.#owned.add(this.secrets);
    const vaultsMayHaveChanged = () =>
      void this.vaultTree.changed().then((changed) => changed && vaultsChanged.fire(undefined));
    this.#owned.add(this.secrets.onChange(vaultsMayHaveChanged));
    this.#owned.add(views.vaults.onDidChangeVisibility(vaultsMayHaveChanged));
    this.#owned.add(this.sessions.onChange(() => treeChanged.fire(undefined)));
    this.#owned.add(vscode.workspace.onDidGrantWorkspaceTrust(() => this.sessions.changed()));
    const minute = setInterval(() => view.visible && treeChanged.fire(undefined), AGES_MS);
    this.#owned.add(disposable(() => clearInterval(minute)));
    void this.engines.reapLeftovers(this.projects);
    this.#owned.add(new Status(this.sessions, view));
    this.#owned.add(new GoingOn(this.sessions, this.actions));
    this.#owned.add(new DevcontainerWatch(this.sessions, (session) => rebuildSandbox(this.actions, session)));
    this.panels
      .replaceOrphans()
      .catch((error: unknown) => this.#background(error))
      .then(() => sleep(PANELS_COME_BACK_MS))
      .then(() => this.#notify());
  }

  #notify(): void {
    this.#owned.add(
      new Notifications(this.sessions, {
        visible: (session) => this.panels.visible(session),
        onVisibleChange: this.panels.onVisibleChange,
        open: async (session, call) => this.showCall(session, call),
        answer: (session, call, result, seen) => this.answer(session, { call, result, via: 'notification', seen }),
        failed: (error) => this.#background(error),
      }),
    );
  }

  /** Shows a call in its session's panel: the oldest that waits is focused, so that it can be answered at once. */
  showCall(session: LiveSession, call: EventId): void {
    const panel = this.panels.open(session);
    if (session.pending[0]?.id === call) panel.focusApproval();
    else panel.reveal(call);
  }

  /** Opens the list that searches all sessions; loaded on need. */
  async searchSessions(): Promise<void> {
    const projects = this.projects.all();
    if (projects.length === 0) throw noFolder();
    const { SearchList } = await import('./search-sessions.ts');
    const list = new SearchList({
      projects,
      sessions: this.sessions,
      show: (session, event) => this.panels.open(session).reveal(event),
      failed: (error) => this.#background(error),
    });
    this.#owned.add(list);
    list.open();
  }

  /** The folder's environments: made, changed and put away. Loaded on need. */
  async environments(): Promise<Environments> {
    this.#environments ??= import('./environments/manage.ts').then(({ Environments: Loaded }) =>
      this.#owned.add(new Loaded(this.extension, (error) => this.#background(error))),
    );
    return await this.#environments;
  }

  /** Runs a command; what it throws is shown as a sentence, with the ways out. */
  async run(id: CommandId, args: readonly unknown[]): Promise<void> {
    try {
      await handlers[id](this, args);
    } catch (error) {
      if (error instanceof Refusal) await showRefusal(error);
      else this.reporter.failed(error);
    }
  }

  /** Shows a session that was just made, and lets it begin. */
  async begin(project: Project, id: SessionId): Promise<void> {
    const session = await this.sessions.find(id);
    if (!session) throw new Refusal(`The new session is not in ${project.path} any more; something removed it.`);
    this.panels.open(session);
    this.actions.goOn(session, 'it was started');
  }

  async answer(session: LiveSession, given: Answer): Promise<void> {
    await answer(this.actions, session, given);
  }

  async showDiff(session: LiveSession, call: EventId): Promise<void> {
    await showDiff(this.#diffs, session, call);
  }

  async continueSession(session: LiveSession): Promise<void> {
    await continueSession(this.actions, session);
  }

  async keyStored(): Promise<void> {
    await keyStored(this.sessions, this.actions);
  }

  /** The client of the API itself, not of the rehearsal. */
  modelClient(): Promise<ModelClient> {
    return this.engines.modelClient();
  }

  /** True if what asks in the session is on the screen: in its panel, or as a row of the Sessions view. */
  seen(session: LiveSession): boolean {
    return this.#view?.visible === true || this.panels.visible(session);
  }

  #panelActions(): ConstructorParameters<typeof Panels>[2] {
    return {
      send: (session, content) => this.actions.send(session, content, 'panel'),
      answer: (session, given) => this.answer(session, given),
      interrupt: (session, thread) => this.actions.interrupt(session, 'panel', thread),
      showDiff: (session, call) => this.showDiff(session, call),
      checkpoint: async (session, wish) => (await import('./checkpoints/commands.ts')).fromPanel(this, session, wish),
      reveal: (session, what) => revealSecret(this.actions, session, what.tool_use_id, what.finding),
      run: async (session, command) => {
        await vscode.commands.executeCommand(`drover.${command}`, ...(command === 'takeOver' ? [session.id] : []));
      },
    };
  }

  #background(error: unknown): void {
    if (error instanceof Refusal) void showRefusal(error);
    else this.reporter.background(error);
  }

  async close(): Promise<void> {
    this.#owned.dispose();
    this.panels.dispose();
    this.sessions.dispose();
    await this.projects.close();
    await this.engines.close();
    this.#diffs.dispose();
    this.reporter.dispose();
  }
}

/** Loads and starts the editor's part; the entry of its chunk. */
export function openApp(context: vscode.ExtensionContext, views: Views): App {
  const app = new App(context);
  app.start(views);
  return app;
}
