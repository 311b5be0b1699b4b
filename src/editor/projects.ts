import * as vscode from 'vscode';
import { Emitter } from '../protocol/disposable.ts';
import { Project, type ProjectParts } from './project.ts';
import { noDisk, noFolder } from './refusal.ts';

type Folder = Pick<vscode.WorkspaceFolder, 'uri' | 'name'>;

/** The window's folders as projects; follows as folders come and go. */
export class Projects {
  readonly #parts: ProjectParts;
  readonly #byUri = new Map<string, Project>();
  readonly #changed = new Emitter<{ added: Project[]; removed: Project[] }>();
  readonly #subscription: vscode.Disposable;
  readonly onChange = this.#changed.on;

  /** @param folders those of the window, if no others are named */
  constructor(parts: ProjectParts, folders: readonly Folder[] = vscode.workspace.workspaceFolders ?? []) {
    this.#parts = parts;
    this.#add(folders);
    this.#subscription = vscode.workspace.onDidChangeWorkspaceFolders((change) => {
      const removed = change.removed.flatMap((folder) => this.#take(folder));
      const added = this.#add(change.added);
      this.#changed.fire({ added, removed });
      for (const project of removed) void project.close();
    });
  }

  all(): Project[] {
    return [...this.#byUri.values()];
  }

  /** The project a new session is for; asks where there are several. Undefined if the person changed their mind. */
  async choose(): Promise<Project | undefined> {
    const all = this.all();
    if (all.length === 0) throw vscode.workspace.workspaceFolders?.length ? noDisk() : noFolder();
    if (all.length === 1) return all[0];
    const picked = await vscode.window.showQuickPick(
      all.map((project) => ({ label: project.name, description: project.path, project })),
      { title: 'Drover: which folder is the session for?' },
    );
    return picked?.project;
  }

  /** Only folders on a disk: there is nothing to run commands on elsewhere. */
  #add(folders: readonly Folder[]): Project[] {
    const added: Project[] = [];
    for (const folder of folders) {
      const key = folder.uri.toString();
      if (folder.uri.scheme !== 'file' || this.#byUri.has(key)) continue;
      const project = new Project(folder, this.#parts);
      this.#byUri.set(key, project);
      added.push(project);
    }
    return added;
  }

  #take(folder: vscode.WorkspaceFolder): Project[] {
    const project = this.#byUri.get(folder.uri.toString());
    this.#byUri.delete(folder.uri.toString());
    return project ? [project] : [];
  }

  async close(): Promise<void> {
    this.#subscription.dispose();
    await Promise.all(this.all().map((project) => project.close()));
    this.#byUri.clear();
  }
}
