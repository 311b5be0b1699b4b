import { join } from 'node:path';
import type * as vscode from 'vscode';
import type { Engine } from '../engine.ts';
import type { Catalog } from '../log/catalog.ts';
import type { SessionStore } from '../log/log.ts';
import type { CheckpointStore } from '../sandbox/checkpoints/checkpoints.ts';

/**
 * One workspace folder with what Drover keeps for it: its sessions, its catalog and, once something has to run,
 * an engine of its own. Each folder of a window is a project: paths and sessions never cross.
 */
export class Project {
  readonly uri: vscode.Uri;
  readonly name: string;
  /** Absolute path of the folder. */
  readonly path: string;
  readonly store: SessionStore;
  readonly #parts: ProjectParts;
  #catalog: Promise<Catalog> | undefined;
  #checkpoints: Promise<CheckpointStore> | undefined;
  #starting: Promise<Engine> | undefined;
  #running: Engine | undefined;

  constructor(folder: Pick<vscode.WorkspaceFolder, 'uri' | 'name'>, parts: ProjectParts) {
    this.uri = folder.uri;
    this.name = folder.name;
    this.path = folder.uri.fsPath;
    this.#parts = parts;
    this.store = parts.openStore(join(this.path, '.drover'));
  }

  /** Agents, environments and rules of this folder. Read at the first use. */
  catalog(): Promise<Catalog> {
    this.#catalog ??= this.#parts.openCatalog(this.store.root).catch((error: unknown) => {
      this.#catalog = undefined;
      throw error;
    });
    return this.#catalog;
  }

  /** The files of its sessions as they were. Loaded at the first use. */
  checkpoints(): Promise<CheckpointStore> {
    this.#checkpoints ??= this.#parts.openCheckpoints(this.store.root);
    return this.#checkpoints;
  }

  /** What runs sessions; loaded at the first use. */
  engine(): Promise<Engine> {
    this.#starting ??= this.#parts.openEngine(this).then(
      (engine) => {
        this.#running = engine;
        return engine;
      },
      (error: unknown) => {
        this.#starting = undefined;
        throw error;
      },
    );
    return this.#starting;
  }

  /** The engine, if it is loaded. */
  get running(): Engine | undefined {
    return this.#running;
  }

  async close(): Promise<void> {
    await this.#starting?.then(
      (engine) => engine.dispose(),
      () => undefined,
    );
    await this.store.dispose();
  }
}

/** How a project gets its parts; the composition root decides. */
export interface ProjectParts {
  openStore(root: string): SessionStore;
  openCatalog(root: string): Promise<Catalog>;
  openCheckpoints(root: string): Promise<CheckpointStore>;
  openEngine(project: Project): Promise<Engine>;
}
