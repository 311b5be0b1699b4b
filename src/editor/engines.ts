import { setTimeout as sleep } from 'node:timers/promises';
import * as vscode from 'vscode';
import type { Engine } from '../engine.ts';
import type { ModelClient } from '../harness/model.ts';
import { messageOf } from '../protocol/errors.ts';
import type { SandboxId, SessionId } from '../protocol/ids.ts';
import type { Preview } from '../protocol/panel.ts';
import { workFolder } from '../sandbox/work-folder.ts';
import { editorDesk } from './desk.ts';
import { hasWork } from './going-on.ts';
import type { LiveSession } from './live-session.ts';
import type { Project } from './project.ts';
import type { Projects } from './projects.ts';
import { needTrust } from './refusal.ts';
import { Rehearsal } from './rehearsal.ts';
import type { Reporter } from './reporter.ts';
import { SandboxProgress } from './sandbox-progress.ts';
import type { Secrets } from './secrets.ts';
import type { Sessions } from './sessions.ts';
import { settings } from './settings.ts';

export interface EngineHost {
  secrets: Secrets;
  reporter: Reporter;
  extension: vscode.Uri;
  /** Of this extension. */
  version: string;
  storage: vscode.Uri;
  memory: vscode.Memento;
  sessions(): Sessions;
  preview(id: SessionId, preview: Preview): void;
}

/** Sandboxes of finished sessions are looked for this long after the start, in ms. */
const REAP_AFTER_MS = 10_000;
/** Where the sandboxes that were looked for are remembered. */
const LOOKED = 'drover.reapedSandboxes';

/** Loads what runs sessions, once something has to run and only in a trusted folder, one engine per project. */
export class Engines {
  readonly #host: EngineHost;
  readonly #rehearsal = new Rehearsal();
  readonly #progress: SandboxProgress;

  constructor(host: EngineHost) {
    this.#host = host;
    this.#progress = new SandboxProgress(() => host.sessions());
  }

  async open(project: Project): Promise<Engine> {
    needTrust();
    const [{ createEngine }, { createGuard }, { sessionSecrets }] = await Promise.all([
      import('../engine.ts'),
      import('../vault/outgoing.ts'),
      import('../vault/session-secrets.ts'),
    ]);
    const { reporter, secrets } = this.#host;
    const ownKey = await secrets.ownKey();
    const engine = createEngine({
      store: project.store,
      checkpoints: await project.checkpoints(),
      workspaceFolder: project.path,
      apiKey: () => secrets.key(),
      guard: createGuard({ redactor: secrets.redactor, maskKey: ownKey, workFolder }),
      baseUrl: () => settings(project.uri).baseUrl,
      dockerHost: settings(project.uri).dockerHost,
      rehearsalUrl: () => this.#rehearsal.url(),
      devcontainerCli: vscode.Uri.joinPath(this.#host.extension, 'dist', 'devcontainers-cli', 'devcontainer.js').fsPath,
      cacheFolder: vscode.Uri.joinPath(this.#host.storage, 'sandboxes').fsPath,
      desk: editorDesk(project.path),
      egress: {
        secrets: async (session, ids) => sessionSecrets(await secrets.vaults(project.store.root), session, ids),
        upstreamProxy: () => settings(project.uri).httpProxy || undefined,
        privateRanges: settings(project.uri).privateRanges,
        authorityKey: ownKey,
      },
      mcpTokens: (ids) => ({
        tokenFor: async (url) => (await secrets.mcpLogins(project.store.root)).tokens(ids).tokenFor(url),
      }),
      version: this.#host.version,
      limits: () => settings(project.uri).sandboxes,
      defaultImage: settings(project.uri).defaultImage,
      onProgress: (session, line) => {
        reporter.info(`${session}: ${line}`);
        this.#progress.line(session, line);
      },
    });
    engine.harness.onPreview((id, preview) => this.#host.preview(id, preview));
    void this.#reap(project, engine);
    return engine;
  }

  /** The client of the API itself, not of the rehearsal. */
  async modelClient(): Promise<ModelClient> {
    const { apiClient } = await import('../engine.ts');
    return apiClient({ apiKey: () => this.#host.secrets.key(), baseUrl: () => settings().baseUrl });
  }

  /**
   * Removes what is left of sandboxes where a session that is over had one and no window has looked since. Some time
   * after the start: nothing waits for it.
   */
  async reapLeftovers(projects: Projects): Promise<void> {
    const sessions = this.#host.sessions();
    await sessions.ready;
    await sleep(REAP_AFTER_MS, undefined, { ref: false });
    if (!vscode.workspace.isTrusted) return;
    const looked = new Set(this.#host.memory.get<string[]>(LOOKED, []));
    const over = sessions.all().filter((session) => !mayWantSandbox(session));
    const news = over.filter((session) => living(session).some((id) => !looked.has(id)));
    await this.#host.memory.update(LOOKED, over.flatMap(living));
    for (const project of projects.all()) {
      // An engine that is loaded has looked already.
      if (news.some((session) => session.project === project) && !project.running) await project.engine();
    }
  }

  /** Removes what sandboxes crashes have left, but not those of sessions that may still want them. */
  async #reap(project: Project, engine: Engine): Promise<void> {
    const { reporter } = this.#host;
    const sessions = this.#host.sessions();
    await sessions.ready;
    try {
      const gone = await engine.sandboxes.reap(project.path, this.wanted(project));
      if (gone > 0) reporter.info(`Removed ${gone} sandbox${gone === 1 ? '' : 'es'} that no session needs any more.`);
    } catch (error) {
      reporter.info(`Sandboxes that are left over could not be looked for: ${messageOf(error)}`);
    }
  }

  /** Sessions of a folder that may still want their sandboxes. */
  wanted(project: Project): Set<SessionId> {
    const sessions = this.#host.sessions().all();
    return new Set(
      sessions.filter((session) => session.project === project && mayWantSandbox(session)).map((session) => session.id),
    );
  }

  async close(): Promise<void> {
    this.#progress.dispose();
    await this.#rehearsal.close();
  }
}

/** The sandboxes of which the log tells no end; the last one is not the only one where each call has its own. */
function living({ state }: LiveSession): SandboxId[] {
  const all = [...(state?.sandboxes.values() ?? [])];
  return all.filter((box) => box.state === 'provisioning' || box.state === 'ready').map(({ id }) => id);
}

/** One that works, waits for an answer, or is run by another window. A log that can't be read gets the benefit of the doubt. */
function mayWantSandbox(session: LiveSession): boolean {
  if (!session.state) return true;
  return session.awake || session.pending.length > 0 || session.holder !== null || hasWork(session);
}
