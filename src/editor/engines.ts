import * as vscode from 'vscode';
import type { Engine } from '../engine.ts';
import type { ModelClient } from '../harness/model.ts';
import type { SessionId } from '../protocol/ids.ts';
import type { Preview } from '../protocol/panel.ts';
import type { LiveSession } from './live-session.ts';
import type { Project } from './project.ts';
import { needTrust } from './refusal.ts';
import { Rehearsal } from './rehearsal.ts';
import type { Reporter } from './reporter.ts';
import type { SecretKey } from './secret-key.ts';
import type { Sessions } from './sessions.ts';
import { settings } from './settings.ts';

export interface EngineHost {
  key: SecretKey;
  reporter: Reporter;
  extension: vscode.Uri;
  storage: vscode.Uri;
  sessions(): Sessions;
  preview(id: SessionId, preview: Preview): void;
}

/** Loads what runs sessions, once something has to run and only in a trusted folder, one engine per project. */
export class Engines {
  readonly #host: EngineHost;
  readonly #rehearsal = new Rehearsal();

  constructor(host: EngineHost) {
    this.#host = host;
  }

  async open(project: Project): Promise<Engine> {
    needTrust();
    const { createEngine } = await import('../engine.ts');
    const { log } = this.#host.reporter;
    const engine = createEngine({
      store: project.store,
      workspaceFolder: project.path,
      apiKey: () => this.#host.key.get(),
      baseUrl: () => settings(project.uri).baseUrl,
      dockerHost: settings(project.uri).dockerHost,
      rehearsalUrl: () => this.#rehearsal.url(),
      devcontainerCli: vscode.Uri.joinPath(this.#host.extension, 'dist', 'devcontainers-cli', 'devcontainer.js').fsPath,
      cacheFolder: vscode.Uri.joinPath(this.#host.storage, 'sandboxes').fsPath,
      onProgress: (session, line) => log.info(`${session}: ${line}`),
    });
    engine.harness.onPreview((id, preview) => this.#host.preview(id, preview));
    void this.#reap(project, engine);
    return engine;
  }

  /** The client of the API itself, not of the rehearsal. */
  async modelClient(): Promise<ModelClient> {
    const { apiClient } = await import('../engine.ts');
    return apiClient({ apiKey: () => this.#host.key.get(), baseUrl: () => settings().baseUrl });
  }

  /** Removes what sandboxes crashes have left, but not those of sessions that may still want them. */
  async #reap(project: Project, engine: Engine): Promise<void> {
    const { log } = this.#host.reporter;
    const sessions = this.#host.sessions();
    await sessions.ready;
    const keep = sessions.all().filter((session) => session.project === project && mayWantSandbox(session));
    try {
      const gone = await engine.sandboxes.reap(project.path, new Set(keep.map((session) => session.id)));
      if (gone > 0) log.info(`Removed ${gone} sandbox${gone === 1 ? '' : 'es'} that no session needs any more.`);
    } catch (error) {
      log.warn(`Sandboxes that are left over could not be looked for: ${String(error)}`);
    }
  }

  async close(): Promise<void> {
    await this.#rehearsal.close();
  }
}

/** One that works, waits for an answer, or is run by another window. A log that can't be read gets the benefit of the doubt. */
function mayWantSandbox(session: LiveSession): boolean {
  if (!session.state) return true;
  return session.running || session.awake || session.pending.length > 0 || session.holder !== null;
}
